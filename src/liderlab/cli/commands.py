"""The command `lider`, its headings, and how a function becomes one of its commands."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, TypeVar

import typer

from .. import __version__
from ..errors import Stopped
from .help_page import HelpCommand, HelpGroup

HEADINGS = {
    "Start here": ("demo", "list", "doctor"),
    "Train": ("run", "resume", "extend", "verify-resume", "pretrain"),
    "Look at runs": ("show", "report", "runs", "compare", "watch"),
    "Use the result": ("predict", "export"),
    "Many runs": ("sweep", "search"),
    "The paper": ("study", "analyze", "ledger"),
    "Data and tools": ("bench", "import-mammoth", "data"),
}
"""Every command under its heading, in the order of `lider --help`."""

EPILOG = """\
Each command explains itself: lider COMMAND --help. Start with: lider demo

Exit codes:
  0    success
  1    a failure: of a run, a check, or the disk
  2    a mistake in the command: one sentence says which
  130  stopped by Ctrl-C (143: by SIGTERM): runs are saved

Environment:
  LIDER_DATA  the folder of data sets, their cache, and kept weights
  NO_COLOR    if set, no colours and no other escape codes"""

app = typer.Typer(
    name="lider",
    help="A lab for rehearsal-based continual learning, with LiDER at its heart.",
    epilog=EPILOG,
    no_args_is_help=True,
    cls=HelpGroup,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
F = TypeVar("F", bound=Callable[..., Any])


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        print(f"lider {__version__}")
        raise typer.Exit


def command(*examples: str, group: typer.Typer = app, **settings: Any) -> Callable[[F], F]:
    """Register a function as the command of its name; the examples end its help."""

    def register(function: F) -> F:
        name = function.__name__.strip("_").replace("_", "-")
        heading = _heading(name) if group is app else None
        epilog = "\n".join(examples)
        registered = group.command(
            name, cls=HelpCommand, epilog=epilog, rich_help_panel=heading, **settings
        )
        return registered(function)

    return register


def command_group(name: str, *examples: str, **settings: Any) -> typer.Typer:
    """Register a command that has commands of its own."""
    group = typer.Typer(cls=HelpGroup, epilog="\n".join(examples), **settings)
    app.add_typer(group, name=name, rich_help_panel=_heading(name))
    return group


def _heading(name: str) -> str:
    return next(heading for heading, names in HEADINGS.items() if name in names)


def typed_command() -> str:
    """The command line as the user typed it; repeating it resumes the work."""
    return shlex.join(["lider", *sys.argv[1:]])


@contextmanager
def explain_stop(
    message: str = "everything is saved; go on by giving the same command again",
) -> Iterator[None]:
    """Show this message when a batch of runs is interrupted."""
    try:
        yield
    except Stopped as stopped:
        raise stopped.saying(message) from None
