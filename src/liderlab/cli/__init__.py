"""The command line: parse, call, print. Nothing heavy is imported before it is needed."""

from __future__ import annotations

import codecs
import errno
import io
import json
import sys
from typing import Annotated

import typer

from .. import __version__
from ..distributed.placement import torchrun
from ..errors import RunFailed, Stopped, UserError
from . import (
    bench,
    data,
    demo,
    inspection,
    ledger,
    pretrain,
    report,
    run,
    search,
    study,
    sweep,
    tools,
    verify_resume,
    watch,
)
from .help_pages import AROUND, Command, Group
from .shared import complain

INTERRUPTED = 130

EPILOG = """\
Each command explains itself: lider COMMAND --help. Start with: lider demo

Exit codes:
  0    it worked
  1    it failed, or found something wrong: a run, a check, the disk
  2    a mistake in what was asked for: one sentence says which
  130  stopped by Ctrl-C (143: by SIGTERM): what was running is saved

Environment:
  LIDER_DATA  the folder of data sets, their cache, and kept weights
  NO_COLOR    if set, no colours and no other escape codes"""

app = typer.Typer(
    name="lider",
    help="A lab for rehearsal-based continual learning, with LiDER at its heart.",
    epilog=EPILOG,
    no_args_is_help=True,
    cls=Group,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def _top(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        print(f"lider {__version__}")
        raise typer.Exit


PARTS = (
    demo,
    inspection,
    run,
    verify_resume,
    pretrain,
    report,
    watch,
    tools,
    sweep,
    search,
    study,
    bench,
)
GROUPS = {"data": data, "ledger": ledger}
for part in (*PARTS, *GROUPS.values()):
    for command in part.app.registered_commands:
        command.cls = Command
for part in PARTS:
    app.add_typer(part.app)
for name, part in GROUPS.items():
    app.add_typer(part.app, name=name, rich_help_panel=AROUND)


def main() -> None:
    """Run the command; a mistake of the user's is one sentence and exit code 2."""
    from typer.exceptions import TyperException

    _print_anything()
    try:
        code = app(standalone_mode=False)
        if code == INTERRUPTED:  # a second Ctrl-C, or one outside a run
            complain("interrupted")
    except typer.Abort:  # Ctrl-C or Ctrl-D instead of an answer
        complain("interrupted")
        code = INTERRUPTED
    except Stopped as stopped:
        complain(str(stopped))
        code = stopped.exit_code
    except UserError as error:
        place = torchrun()  # whose processes all make the same mistake
        code = complain(str(error)) if place is None or place.leads else 2
    except RunFailed as error:
        complain(str(error))
        code = 1
    except TyperException as error:
        # without a word: a command that needs another one was asked for nothing, and has shown help
        code = complain(message) if (message := error.format_message()) else 0
    except OSError as error:
        complain(f"{error.filename or 'cannot go on'}: {error.strerror or error}")
        code = 2 if error.errno == errno.ENAMETOOLONG else 1  # that is no fault of the disk's
    sys.exit(code if isinstance(code, int) else 0)


def _print_anything() -> None:
    """What an encoding lacks is escaped as JSON does: no crash, and --json stays JSON."""

    def escape(error: UnicodeError) -> tuple[str, int]:
        assert isinstance(error, UnicodeEncodeError)
        return json.dumps(error.object[error.start : error.end])[1:-1], error.end

    codecs.register_error("as JSON", escape)
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="as JSON")
