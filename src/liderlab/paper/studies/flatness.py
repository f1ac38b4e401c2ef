"""What the two studies of flatness share: the runs they look at."""

from __future__ import annotations

from collections.abc import Iterable

from .cases import Addition, Case

SETTINGS = ("cifar100",)
BUFFER = 500
METHODS = ("der++", "er-ace")
ADDITIONS: tuple[Addition, ...] = ("", "lider")


def flatness_cases(settings: Iterable[str]) -> list[Case]:
    return [
        Case(setting, BUFFER, method, addition)
        for setting in settings
        for method in METHODS
        for addition in ADDITIONS
    ]
