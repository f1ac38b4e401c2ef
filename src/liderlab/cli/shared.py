"""What the commands share."""

from __future__ import annotations

import json
import math
import os
import shlex
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import UserError
from . import completion

if TYPE_CHECKING:
    from rich.console import Console

RunArgument = Annotated[
    Path,
    typer.Argument(
        help="A run's folder.",
        metavar="RUN",
        show_default=False,
        autocompletion=completion.run_folders,
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print JSON, and nothing else, to standard output.")
]
DeviceOption = Annotated[
    str | None,
    typer.Option(
        help="cpu, cuda, cuda:1, …, mps or auto.",
        metavar="DEVICE",
        show_default="cpu",
        autocompletion=completion.one_of("cpu", "cuda", "mps", "auto"),
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="FIELD=VALUE",
        help="Any field of the configuration, repeatable: --set training.momentum=0.9",
    ),
]


def complain(message: str) -> int:
    """Say what is wrong, in one line."""
    print(f"lider: {' '.join(message.split())}", file=sys.stderr)
    return 2


def leave_out(complaints: Iterable[str]) -> None:
    """Say of each damaged run that a page does without it."""
    for complaint in complaints:
        complain(f"left out: {complaint}")


AGAIN = "everything is saved; go on by giving the same command again"
"""What whoever stops more than one run is told."""


def given(**options: Any) -> dict[str, Any]:
    """Those options that stand on the command line."""
    return {name: value for name, value in options.items() if value is not None}


def this_command() -> str:
    """What was typed: it goes on with what it was stopped at."""
    return shlex.join(["lider", *sys.argv[1:]])


def refuse_file(out: Path) -> None:
    """Results need a folder: a file in its place, or above it, is said before anything begins."""
    for path in (out, *out.parents):
        if path.exists() and not path.is_dir():
            raise UserError(f"{path} is a file: choose a folder for --out")


def print_json(tree: Any) -> None:
    print(json.dumps(_finite(tree), indent=1, ensure_ascii=False))


def _finite(tree: Any) -> Any:
    """null for NaN and infinity, which a damaged file may hold and JSON does not know."""
    if isinstance(tree, Mapping):
        return {key: _finite(value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [_finite(value) for value in tree]
    return None if isinstance(tree, float) and not math.isfinite(tree) else tree


def new_console(stderr: bool = False, repaints: bool = False) -> Console:
    """Where tables and progress go; with NO_COLOR, plain text without any escape code. No markup:
    a path may have square brackets.

    repaints: for what is nothing if it cannot move the cursor.
    """
    from rich.console import Console

    if not os.environ.get("NO_COLOR"):
        return Console(stderr=stderr, markup=False)
    terminal = None if repaints else False
    return Console(stderr=stderr, markup=False, color_system=None, force_terminal=terminal)
