"""The command line: parse, call, print.

Each command has a file of its name, which calls the package that does the work: `lider sweep` is
`cli/sweep.py`, which calls `sweeps/`. The other files are `commands` (how commands are registered),
`options` (shared by several), `completion` (values that Tab offers), `help_page` and `output`.
Commands import modules when they run, so that `lider --help` is quick.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from importlib import import_module

import typer

from ..distributed.placement import torchrun
from ..errors import RunFailed, Stopped, UserError
from .commands import HEADINGS, app
from .output import complain

INTERRUPTED = 130

ORDER = [name for names in HEADINGS.values() for name in names]
for name in ORDER:
    import_module(f".{name.replace('-', '_')}", __name__)
app.registered_commands.sort(key=lambda command: ORDER.index(command.name or ""))


def main() -> None:
    """Run the command; a user's mistake is one sentence and exit code 2."""
    from typer.exceptions import TyperException

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # characters that the encoding lacks
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
        if code == INTERRUPTED:  # a second Ctrl-C, or one outside a run
            complain("interrupted")
    except typer.Abort:  # Ctrl-C or Ctrl-D at a question
        complain("interrupted")
        code = INTERRUPTED
    except Stopped as stopped:
        complain(str(stopped))
        code = stopped.exit_code
    except UserError as error:
        place = torchrun()  # all processes make the same mistake: one reports it
        code = complain(str(error)) if place is None or place.leads else 2
    except RunFailed as error:
        complain(str(error))
        code = 1
    except TyperException as error:
        # no message: the user named a group without a command, and has seen its help
        message = error.format_message().replace("Value error, ", "")
        code = complain(message) if message else 0
    except BrokenPipeError:  # the reader, such as head, has closed the pipe: it wants no more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except OSError as error:
        complain(f"{error.filename or 'cannot go on'}: {error.strerror or error}")
        code = 2 if error.errno == errno.ENAMETOOLONG else 1  # such a name is the user's
    sys.exit(code if isinstance(code, int) else 0)
