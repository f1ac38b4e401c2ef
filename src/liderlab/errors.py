"""What goes wrong because of the user's input, said in one sentence."""

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(ValueError):
    """A mistake that the user can mend: the message says what was wrong and what is allowed.

    The command line prints it and exits with code 2; library users see a `ValueError`.
    """


class RunFailed(RuntimeError):
    """A run could not go on, through no mistake of the user's: the message says what is saved.

    The command line prints it and exits with code 1.
    """


def unknown(kind: str, name: str, allowed: Iterable[str]) -> UserError:
    """The error for a name that is not in a list, with the nearest match if there is one.

    >>> print(unknown("method", "er_ace", ["er", "er-ace"]))
    unknown method 'er_ace': did you mean 'er-ace'? Allowed: er, er-ace
    """
    names = list(allowed)
    near = get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean '{near[0]}'? " if near else ""
    return UserError(f"unknown {kind} {name!r}: {hint}Allowed: {', '.join(names)}")
