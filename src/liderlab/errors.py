"""Errors whose message is one sentence for the user, and checks that raise them."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any


class UserError(ValueError):
    """A mistake that the user can correct: the message says what is wrong and what is allowed.

    The command line prints it and exits with code 2; library users see a `ValueError`.
    """


class RunFailed(RuntimeError):
    """A run with a valid configuration failed: the message says what is saved.

    The command line prints it and exits with code 1.
    """


class Stopped(Exception):
    """A signal interrupted the work, which is saved.

    number: of the signal. where: the folder. command: continues the work in that folder.
    """

    def __init__(self, number: int, where: str, command: str = "lider resume") -> None:
        words = f"{command} {shlex.quote(where)}" if where else command
        super().__init__(f"stopped: everything is saved; go on with: {words}")
        self.exit_code = 128 + number

    def saying(self, message: str) -> Stopped:
        """Replace the message by one about the interrupted work, and return the exception."""
        self.args = (f"stopped: {message}",)
        return self


def unknown(kind: str, name: str, allowed: Iterable[str]) -> UserError:
    """The error for a name that is not in a list, with the nearest match if there is one.

    >>> print(unknown("method", "er_ace", ["er", "er-ace"]))
    unknown method 'er_ace': did you mean 'er-ace'? Allowed: er, er-ace
    """
    names = list(allowed)
    near = get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean '{near[0]}'? " if near else ""
    return UserError(f"unknown {kind} {name!r}: {hint}Allowed: {', '.join(names)}")


def check_numbers(
    *,
    at_least: float = -math.inf,
    above: float = -math.inf,
    at_most: float = math.inf,
    below: float = math.inf,
    whole: bool = False,
    **numbers: Any,
) -> None:
    """Refuse arguments outside their range, NaN and infinities; accept None, a value left open.

    >>> check_numbers(alpha=0.1, beta=0, samples=None, at_least=0)
    >>> check_numbers(gamma=float("nan"), at_least=0, at_most=1)
    Traceback (most recent call last):
    liderlab.errors.UserError: Expected gamma ≥ 0 and ≤ 1, but got nan.
    """
    bounds = (("≥", at_least), (">", above), ("≤", at_most), ("<", below))
    wanted = " and ".join(f"{sign} {limit}" for sign, limit in bounds if abs(limit) < math.inf)
    kinds: Any = Integral if whole else Real
    for name, value in numbers.items():
        if value is None:
            continue
        if not isinstance(value, kinds):
            kind = "a whole number" if whole else "a number"
            raise UserError(f"Expected {name} {wanted}, {kind}, but got {value!r}.")
        if not (at_least <= value <= at_most and above < value < below):
            finite = " and finite" if value == math.inf == at_most == below else ""
            raise UserError(f"Expected {name} {wanted}{finite}, but got {value!r}.")


def printable(text: str) -> str:
    """The text with control characters as escapes: a file's name could command the terminal.

    >>> printable("a\\x1b[31m.png")
    'a\\\\x1b[31m.png'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
