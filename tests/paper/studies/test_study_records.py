"""benchmarks/study_records.py: a study goes on from the runs of another machine."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

from liderlab.paper.studies.cases import Request
from liderlab.paper.studies.study_execution import CompletedStudy, run_study

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "study_records.py"


def test_restored_runs_are_not_repeated(
    conducted: Callable[[str], CompletedStudy], studies_folder: Path, tmp_path: Path
) -> None:
    script = runpy.run_path(str(SCRIPT))
    first = conducted("fixed-target")
    record, elsewhere = tmp_path / "record.json", tmp_path / "elsewhere"
    saved = script["save"](studies_folder, record)
    assert saved == len(list((studies_folder / "runs").iterdir()))
    assert script["restore"](elsewhere, record) == saved
    again = run_study(
        "fixed-target", Request("smoke"), elsewhere, lambda plans: pytest.fail("a run began")
    )
    assert again.findings == first.findings


def test_restoring_leaves_existing_files_alone(tmp_path: Path) -> None:
    script = runpy.run_path(str(SCRIPT))
    run = tmp_path / "study" / "runs" / "a"
    run.mkdir(parents=True)
    (run / "result.json").write_text('{"faa": 1}')
    record = tmp_path / "record.json"
    script["save"](tmp_path / "study", record)
    (run / "result.json").write_text('{"faa": 2}')
    script["restore"](tmp_path / "study", record)
    assert (run / "result.json").read_text() == '{"faa": 2}'
