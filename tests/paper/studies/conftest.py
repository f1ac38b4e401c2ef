"""All studies at smoke scale, in one folder for the whole session: they share their runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from liderlab.paper.studies.cases import Request
from liderlab.paper.studies.study_execution import CompletedStudy, run_in_turn, run_study
from liderlab.runs import accuracy_figure
from liderlab.runs.planned_run import PlannedRun


class Silent:
    """Shows nothing."""

    def begin(self, label: str) -> None: ...
    def finish(self) -> None: ...
    def __call__(self, work: Any, event: Any) -> None: ...


def leave_a_mark(result: Any, folder: Path) -> None:
    (folder / accuracy_figure.NAME).touch()


def in_turn(plans: Sequence[PlannedRun]) -> dict[str, str]:
    return run_in_turn(plans, Silent())


@pytest.fixture(scope="session")
def studies_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("studies")


@pytest.fixture(scope="session")
def conducted(studies_folder: Path) -> Callable[[str], CompletedStudy]:
    """A study's findings, computed once."""
    kept: dict[str, CompletedStudy] = {}

    def of(name: str) -> CompletedStudy:
        if name not in kept:
            with pytest.MonkeyPatch.context() as patched:
                # drawing it takes half a second for each of a hundred runs
                patched.setattr(accuracy_figure, "leave_figure", leave_a_mark)
                kept[name] = run_study(name, Request("smoke"), studies_folder, in_turn)
        return kept[name]

    return of
