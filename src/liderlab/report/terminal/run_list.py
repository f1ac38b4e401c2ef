"""Runs as a list in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from ..formatting import number, plain
from ..run_records import RunRecord, settings_among

STATE_STYLES = {"finished": "green", "running": "cyan", "stopped": "yellow"}


def run_list(records: Sequence[RunRecord]) -> Table:
    """The runs with their metrics, in 80 columns; long names are folded."""
    table = Table(box=None, padding=(0, 1, 0, 0), expand=True, caption_justify="left")
    table.caption = f"FAA and FF: {settings_among(r.setting for r in records)}, percent"
    table.add_column("run", overflow="fold", ratio=3)
    table.add_column("method", overflow="fold", ratio=2, style="bold")
    several = len({record.benchmark for record in records}) > 1
    if several:
        table.add_column("benchmark", overflow="fold", ratio=2)
    for name, width in (("buffer", 6), ("seed", 4), ("FAA", 6), ("FF", 6)):
        table.add_column(name, justify="right", no_wrap=True, min_width=width)
    table.add_column("state", no_wrap=True, min_width=8)
    for record in records:
        cells = [record.name, record.label, *([record.benchmark] if several else [])]
        cells += [plain(record.buffer), str(record.seed)]
        cells += [number(record.metric("class_incremental", metric)) for metric in ("faa", "ff")]
        state = Text(record.state, style=STATE_STYLES[record.state])
        table.add_row(*map(Text, cells), state)
    return table
