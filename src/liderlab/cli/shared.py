"""What the commands share."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

RunArgument = Annotated[Path, typer.Argument(help="A run's folder.", show_default=False)]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def complain(message: str) -> int:
    """Say what is wrong, in one line."""
    print(f"lider: {' '.join(message.split())}", file=sys.stderr)
    return 2


def given(**options: Any) -> dict[str, Any]:
    """Those options that stand on the command line."""
    return {name: value for name, value in options.items() if value is not None}


def this_command() -> str:
    """What was typed: it goes on with what it was stopped at."""
    return shlex.join(["lider", *sys.argv[1:]])


def new_console(stderr: bool = False) -> Console:
    from rich.console import Console

    return Console(stderr=stderr)
