"""`lider doctor`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from liderlab.errors import Stopped
from liderlab.runs import doctor


def test_doctor_finds_nothing_wrong_here(lider, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("LIDER_DATA", str(tmp_path))
    monkeypatch.setattr(doctor, "ROOM", 0)  # the disk may be full
    code, out, _ = lider("doctor")
    assert code == 0, out
    assert "self-test: a run" in out
    assert "lider data prepare cifar100" in out
    code, out, _ = lider("doctor", "--no-self-test", "--json")
    assert code == 0
    findings = {finding["what"]: finding for finding in json.loads(out)}
    assert findings["torch"]["state"] == "fine"
    assert "self-test" not in findings


def test_doctor_names_each_problem_and_its_remedy(lider, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(doctor, "ROOM", 1e30)
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    code, out, _ = lider("doctor", "--no-self-test")
    assert code == 1
    assert "make room there" in out
    assert "pip install 'liderlab[wandb]'" in out
    assert "3 problem(s)" in out


def test_a_failing_self_test_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no kernel\nmore")

    monkeypatch.setattr("liderlab.runs.execute.run", broken)
    finding = doctor._self_test()
    assert (finding.state, finding.found) == ("problem", "no kernel")


def test_a_stopped_self_test_is_not_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> None:
        raise Stopped(2, "somewhere")

    monkeypatch.setattr("liderlab.runs.execute.run", stopped)
    with pytest.raises(Stopped, match="the self-test did not end") as found:
        doctor._self_test()
    assert found.value.exit_code == 130
