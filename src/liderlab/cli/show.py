"""`lider show`: one finished run."""

from __future__ import annotations

from .commands import command
from .option_types import Json, RunPath
from .output import new_console, print_json


@command("lider show runs/x", "lider show runs/x --json")
def show(run: RunPath, as_json: Json = False) -> None:
    """Show a finished run: its choices, metrics, accuracy matrix.

    Reads result.json in RUN, which --json prints unchanged; writes nothing.
    """
    from ..report.terminal.result_tables import (
        accuracy_tables,
        metric_table,
        provenance,
        remarks,
        run_time,
    )
    from ..runs.folder import RunFolder

    result = RunFolder.open(run).result()
    if as_json:
        print_json(result)
        return
    console, config = new_console(), result["config"]
    scale = f", scale {result['scale']['name']}" if result.get("scale") else ""
    regularizers = "".join(f" + {name}" for name in config["regularizers"])
    console.print(
        f"{run}: {config['method']['name']}{regularizers} on {config['benchmark']['name']}, "
        f"{config['backbone']['name']}, buffer {config['memory']['size']}, seed {config['seed']}, "
        f"{run_time(result)}{scale}"
    )
    for line in provenance(result):
        console.print(line)
    console.print(metric_table(result))
    for remark in remarks(result):
        console.print(remark)
    console.print(accuracy_tables(result))
