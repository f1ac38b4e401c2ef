"""All studies at smoke scale, in one folder for the whole session: they share their runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from liderlab.experiments.studies.cases import Request
from liderlab.experiments.studies.conduct import Conducted, conduct, run_in_turn


class Silent:
    """Shows nothing."""

    def begin(self, label: str) -> None: ...
    def finish(self) -> None: ...
    def __call__(self, work: Any, event: Any) -> None: ...


@pytest.fixture(scope="session")
def studies_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("studies")


@pytest.fixture(scope="session")
def conducted(studies_folder: Path) -> Callable[[str], Conducted]:
    """A study's findings, computed once."""
    kept: dict[str, Conducted] = {}

    def of(name: str) -> Conducted:
        if name not in kept:
            kept[name] = conduct(
                name, Request("smoke"), studies_folder, lambda plans: run_in_turn(plans, Silent())
            )
        return kept[name]

    return of
