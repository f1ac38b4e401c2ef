"""What the commands that train have in common: run, resume, pretrain."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..errors import UserError
from .shared import new_console

if TYPE_CHECKING:
    from ..config.schema import RunConfig
    from ..runs.build import Run
    from ..runs.execute import Existing


def assigned(texts: list[str] | None) -> dict[str, Any]:
    """The values that --set gives."""
    from ..config.merging import merge
    from ..config.yaml_values import parse_assignment

    assigned: dict[str, Any] = {}
    for text in texts or []:
        assigned = merge(assigned, parse_assignment(text))
    return assigned


def _ask_about(out: Path) -> Existing:
    """What to do about an unfinished run, if nobody said."""
    from ..runs.folder import RunFolder

    folder = RunFolder(out)
    if not folder.begun or folder.finished or folder.foreign:
        return "refuse"
    answers = sys.stdin is not None and sys.stdin.isatty()  # None: closed by who started us
    if answers and typer.confirm(f"{out} holds an unfinished run: resume it?"):
        return "resume"
    raise UserError(
        f"{out} holds an unfinished run: --resume to go on with it, --force to start again"
    )


def train(config: RunConfig, out: Path, existing: Existing | None) -> bool:
    """Run, show how far it is, and print what came out.

    existing: None asks, if need be. Returns whether this process leads the run, if several share
    it: the others say nothing and write nothing.
    """
    from ..distributed.placement import find_place
    from ..runs.accuracy_figure import leave_figure

    leads = find_place(config.devices).leads
    existing = existing or (_ask_about(out) if leads else "refuse")
    from ..report.terminal.progress import ProgressDisplay
    from ..report.terminal.tables import duration, metrics, remarks
    from ..runs.execute import run as execute

    if not leads:
        execute(config, out, existing=existing)
        return False
    console, progress = new_console(), new_console(stderr=True)
    started: list[Run] = []

    def on_start(work: Run) -> None:
        started.append(work)
        for line in _settled(work):
            progress.print(line, soft_wrap=not progress.is_terminal, highlight=False)

    with ProgressDisplay(progress) as display:
        result = execute(config, out, existing=existing, listener=display, on_start=on_start)
    leave_figure(result, out)
    console.print(metrics(result))
    for remark in remarks(result):
        console.print(remark, soft_wrap=True, highlight=False)
    done = f"wrote {out} in {duration(result)}"
    if not started:
        done = f"{out} had finished already: nothing was done"
    console.print(done, soft_wrap=True, highlight=False)
    return True


def _settled(work: Run) -> Iterator[str]:
    """Which stages are regularised, whether they were named or found."""
    from ..runs.result import resolved

    for name, found in resolved(work).items():
        left_out = ", ".join(found["left_out"])
        rest = f"; nothing to regularise in {left_out}" if left_out else ""
        yield f"{name} regularises {' → '.join(found['chain'])}{rest}"
