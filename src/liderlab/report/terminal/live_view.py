"""Snapshots of runs in the terminal: one run in full, several as a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ..formatting import duration, number
from ..run_records import settings_among
from .run_list import STATE_STYLES
from .run_snapshot import Snapshot, Values

LEVELS = "▁▂▃▄▅▆▇█"
STATES = ("running", "stopped", "finished")


def sparkline(values: Sequence[float | None], width: int, top: float | None = None) -> str:
    """A curve in one line of text. Scale: from 0 or a lower minimum to `top` or the maximum.

    >>> sparkline([0.0, 50.0, 100.0], 3), sparkline([1.0, None, float("inf")], 8)
    ('▁▅█', '█··')
    """
    size = max(1, -(-len(values) // width))
    parts = [values[i : i + size] for i in range(0, len(values), size)]
    finite = [[v for v in part if v is not None and math.isfinite(v)] for part in parts]
    means = [sum(part) / len(part) if part else None for part in finite]
    known = [value for value in means if value is not None]
    low = min([0.0, *known])
    high = max(known, default=0.0) if top is None else top
    return "".join("·" if value is None else _level(value, low, high) for value in means)


def _level(value: float, low: float, high: float) -> str:
    share = (value - low) / (high - low) if high > low else 0.0
    return LEVELS[min(len(LEVELS) - 1, max(0, round(share * (len(LEVELS) - 1))))]


def view(snapshots: Sequence[Snapshot], width: int, height: int | None = None) -> RenderableType:
    """One run in full; several as a table, running ones first if they do not all fit."""
    if not snapshots:
        return Text("no run can be read")
    if len(snapshots) == 1:
        return one_run(snapshots[0], width)
    rows = len(snapshots) if height is None else max(1, height - 4)
    shown = snapshots
    if len(snapshots) > rows:
        shown = sorted(snapshots, key=lambda s: STATES.index(s.record.state))[:rows]
    count = {state: sum(s.record.state == state for s in snapshots) for state in STATES}
    text = ", ".join(f"{n} {state}" for state, n in count.items() if n)
    hidden = len(snapshots) - len(shown)
    text += f"; {hidden} not shown" if hidden else ""
    settings = settings_among(s.record.setting for s in snapshots)
    return Group(many_runs(shown), Text(f"{text}; accuracy in %, {settings}", style="dim"))


def many_runs(snapshots: Sequence[Snapshot]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), expand=True)
    table.add_column("run", overflow="ellipsis", no_wrap=True, ratio=1)
    table.add_column("state", no_wrap=True, min_width=8)
    table.add_column("done", no_wrap=True, min_width=4, justify="right")
    table.add_column("left", no_wrap=True, min_width=6, justify="right")
    table.add_column("accuracy", no_wrap=True, min_width=15)
    table.add_column("loss", no_wrap=True, min_width=10)
    for snapshot in snapshots:
        record, accuracy = snapshot.record, snapshot.accuracy
        curve, latest = sparkline(accuracy, 8, 100), number(_latest(accuracy))
        table.add_row(
            Text(record.name),
            Text(record.state, style=STATE_STYLES[record.state]),
            f"{100 * snapshot.done:.0f}%",
            duration(snapshot.left) if record.state == "running" else "",
            Text.assemble((f"{curve:<8} ", "cyan"), f"{latest:>6}"),
            Text(sparkline(snapshot.loss, 10), style="magenta"),
        )
    return table


def one_run(snapshot: Snapshot, width: int) -> Panel:
    record, inner = snapshot.record, max(20, width - 4)
    step = f"step {snapshot.step}" + (f" of {snapshot.planned}" if snapshot.planned else "")
    left = f", {duration(snapshot.left)} left" if record.state == "running" else ""
    buffer = "" if record.buffer is None else f", buffer {record.buffer}"
    experiment = _both_ends(
        Text(f"{record.label} on {record.benchmark}{buffer}, seed {record.seed}"),
        Text(record.state, style=STATE_STYLES[record.state]),
    )
    bar = ProgressBar(total=1.0, completed=snapshot.done)
    progress = _both_ends(bar, f"{100 * snapshot.done:3.0f}%  {step}{left}")
    curves = Table.grid(padding=(0, 2, 0, 0))
    curves.add_column(no_wrap=True, overflow="ellipsis", max_width=inner // 3)
    curves.add_column(no_wrap=True)
    curves.add_column(no_wrap=True, justify="right")
    for row in _curves(snapshot, max(8, inner - inner // 3 - 16)):
        curves.add_row(*row)
    parts = Group(experiment, progress, Text(), curves)
    title, below = Text(record.name, style="bold"), Text(f"accuracy: {record.setting}")
    return Panel(
        parts,
        title=title,
        title_align="left",
        subtitle=below,
        subtitle_align="left",
        width=width,
    )


def _both_ends(left: RenderableType, right: RenderableType) -> Table:
    """A line with text at both ends; a table of its own, so that lines have their own widths."""
    line = Table.grid(expand=True, padding=(0, 1))
    line.add_column(ratio=1)
    line.add_column(justify="right", no_wrap=True)
    line.add_row(left, right)
    return line


def _curves(snapshot: Snapshot, width: int) -> Iterator[tuple[Text, Text, str]]:
    """Accuracy, every loss term and every reading: name, curve, latest value."""
    if accuracy := snapshot.accuracy:
        curve = Text(sparkline(accuracy, width, 100), style="cyan")
        yield Text("accuracy so far (%)"), curve, number(_latest(accuracy))
    for field, style in (("terms", "magenta"), ("readings", "blue")):
        for name, values in snapshot.logged(field):
            latest = _latest(values)
            text = "nan" if latest is None else f"{latest:.4g}"
            yield Text(name), Text(sparkline(values, width), style=style), text


def _latest(values: Values) -> float | None:
    return next((value for value in reversed(values) if value is not None), None)
