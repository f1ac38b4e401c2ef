"""`lider demo`: forgetting, rehearsal, and LiDER's gain, in a minute or two without any data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from .commands import command, explain_stop
from .option_types import option
from .output import new_console
from .report import write_page

if TYPE_CHECKING:
    from ..config.schema import RunConfig
    from ..runs.execute import Existing

BUFFER = 50
ROWS: dict[str, dict[str, Any]] = {
    "finetune": {"method": "finetune"},
    "er-ace": {"method": "er-ace"},
    "er-ace + LiDER": {"method": "er-ace", "regularizers": {"lider": {}}},
    "joint": {"method": "joint"},
}


@command("lider demo", "lider demo --seeds 1 --out quick-demo")
def demo(
    out: Annotated[Path, option("Where to write.", metavar="FOLDER")] = Path("demo"),
    seeds: Annotated[int, option("Number of runs of each method.", min=1)] = 3,
) -> None:
    """Compare four methods on real digits, in a minute or two.

    They are finetune, er-ace, er-ace + LiDER, and joint. Reads nothing: the digits come with the
    installation. Writes a run folder for every method and seed, demo.png and report.html into
    --out, and replaces those of an earlier demo.
    """
    from ..report.accuracy_curves import draw_accuracy_curves
    from ..report.terminal.result_tables import method_table
    from ..report.terminal.run_progress import ProgressDisplay
    from ..runs.accuracy_figure import leave_figure
    from ..runs.execute import run as execute

    runs, folders = list(demo_runs(seeds)), []
    # an interrupted demo resumes; a complete one is repeated
    existing: Existing = "replace" if (out / "demo.png").exists() else "resume"
    results: dict[str, list[dict[str, Any]]] = {}
    with explain_stop(), ProgressDisplay(new_console(stderr=True), len(runs)) as display:
        for label, config in runs:
            folder = out / f"{label.replace(' + ', '-').lower()}-seed{config.seed}"
            display.begin(f"{label}, seed {config.seed}")
            result = execute(config, folder, existing=existing, listener=display)
            leave_figure(result, folder)
            folders.append(folder)
            results.setdefault(label, []).append(result)
            display.finish()
    title = f"split-digits, buffer {BUFFER}, class-incremental"
    draw_accuracy_curves(results, out / "demo.png", title)
    print(f"{title}: mean ± std")
    new_console().print(method_table(results))
    write_page(folders, out / "report.html", "The demo: split-digits", memory=True)
    print(f"wrote {out}/: run folders, demo.png, report.html")


def demo_runs(seeds: int) -> Iterator[tuple[str, RunConfig]]:
    """Every row of the demo's table, over several seeds, on the embedded benchmark."""
    from ..config.merging import make_config

    for label, choice in ROWS.items():
        for seed in range(seeds):
            common = {"memory": {"size": BUFFER}, "seed": seed, "threads": 1}
            yield label, make_config(choice, common)
