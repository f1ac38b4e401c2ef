"""`lider bench`: the cost of a step on this machine."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Literal

from ..errors import unknown
from . import option_types as o
from .commands import command
from .option_types import Json, argument, flag, option
from .output import new_console, print_json

NAMES = (
    "resnet18-64",
    "resnet18-16",
    "resnet18-8",
    "efficientnet-b2",
    "fresh",
    "regularizers",
    "jacobian",
    "tokens",
    "vit",
    "curvature",
    "herding",
)


@command("lider bench herding --quick", "lider bench resnet18-16 --threads 2 --out bench.json")
def bench(
    names: Annotated[
        list[str] | None, argument(f"{', '.join(NAMES)}; all by default.", values=NAMES)
    ] = None,
    clock: Annotated[
        Literal["wall", "cpu"],
        option("wall, or cpu: processor time, for a shared machine.", metavar="CLOCK"),
    ] = "wall",
    quick: Annotated[
        bool, flag("--quick", "Tiny sizes, to see that it works, not how fast it is.")
    ] = False,
    out: Annotated[
        Path | None,
        option("Write JSON here; skip measures that it already holds.", metavar="FILE"),
    ] = None,
    force: Annotated[bool, flag("--force", "Measure everything again.")] = False,
    threads: o.Threads = None,
    as_json: Json = False,
) -> None:
    """Measure what LiDER, the loop and other regularisers cost.

    Variants take turns; ratios are medians over the rounds, with their middle half. Reads no
    data; writes --out, if given.
    """
    from ..bench.measures import MEASURES, load, machine, measure
    from ..bench.results import describe_machine, read_results, result_table
    from ..files import writable_folder, write_atomically

    for name in (chosen := names or list(MEASURES)):
        if name not in MEASURES:
            raise unknown("measure", name, MEASURES)
    here = {**machine(threads), "clock": clock, "quick": quick}
    measured = {} if out is None or force else read_results(out, here)
    report = {"machine": here, "measures": measured}
    if out is not None:
        writable_folder(out.parent)
    for name in chosen:
        if name not in measured:
            print(f"measuring {name}", file=sys.stderr, flush=True)
            before = load()
            found = measure(name, quick=quick, clock=clock)
            measured[name] = {**found, "load": [before, load()]}
            if out is not None:
                text = json.dumps(report, indent=1, ensure_ascii=False)
                write_atomically(out, f"{text}\n".encode())
    if as_json:
        print_json(report)
        return
    for name in chosen:
        new_console().print(result_table(measured[name]))
    print(describe_machine(here))
