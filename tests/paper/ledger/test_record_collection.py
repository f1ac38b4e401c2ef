"""From run folders to records."""

import json
import shutil
from pathlib import Path

import pytest

from liderlab.errors import UserError
from liderlab.paper.ledger.record_collection import KEPT, collect_records, curves_of
from liderlab.runs.folder import RunFolder


def test_a_record_agrees_with_its_run(measured: Path) -> None:
    found = collect_records(measured, commit="abc")
    assert not found.left_out
    treated, plain = found.records
    assert [r.case.label for r in (plain, treated)] == ["ER-ACE", "ER-ACE + LiDER"]
    folder = RunFolder(measured / "runs" / treated.run)
    result = folder.result()
    accuracy = result["class_incremental"]
    assert treated.class_incremental.faa == pytest.approx(accuracy["faa"], abs=1e-4)
    assert treated.class_incremental.ff == pytest.approx(accuracy["ff"], abs=1e-4)
    known = [value for value in accuracy["memory_accuracy"][-1] if value is not None]
    assert treated.memory_accuracy == pytest.approx(sum(known) / len(known), abs=1e-4)
    assert treated.gap == pytest.approx(sum(known) / len(known) - accuracy["faa"], abs=1e-3)
    assert treated.steps == folder.state()["steps"]
    assert (treated.seconds, treated.seconds_cpu) == (result["seconds"], result["seconds_cpu"])
    assert treated.data["fingerprint"] == result["data"]["fingerprint"]
    assert (treated.config, treated.versions) == (result["config"], result["versions"])
    assert treated.commit == "abc"
    assert plain.curves is None
    assert treated.curves is not None
    assert len(treated.curves.borders) == 5
    assert treated.curves.constants.keys() == treated.curves.targets.keys()
    assert plain.network != treated.network
    assert len(treated.text()) < 8_000


def test_runs_without_a_record_are_listed_with_the_reason(measured: Path, tmp_path: Path) -> None:
    shutil.copytree(measured, tmp_path, dirs_exist_ok=True)
    one, other = sorted((tmp_path / "runs").iterdir())
    (one / "result.json").unlink()
    shutil.copytree(other, tmp_path / "runs" / "mine")
    found = collect_records(tmp_path)
    assert [record.run for record in found.records] == [other.name]
    assert found.left_out == {
        one.name: "it has not finished",
        "mine": "it is not a run of the ledger",
    }


def test_a_run_that_does_not_fit_its_name_is_refused(measured: Path, tmp_path: Path) -> None:
    shutil.copytree(measured, tmp_path, dirs_exist_ok=True)
    other = max((tmp_path / "runs").iterdir())
    result = json.loads((other / "result.json").read_text())
    result["config"]["training"]["lr"] = 7.0
    (other / "result.json").write_text(json.dumps(result))
    found = collect_records(tmp_path)
    assert found.left_out == {other.name: "its configuration does not match its name: training.lr"}
    assert len(found.records) == 1


def test_a_damaged_run_does_not_stop_the_others(measured: Path, tmp_path: Path) -> None:
    shutil.copytree(measured, tmp_path, dirs_exist_ok=True)
    one, other = sorted((tmp_path / "runs").iterdir())
    (one / "result.json").write_text("{")
    found = collect_records(tmp_path)
    assert "damaged" in found.left_out[one.name]
    assert len(found.records) == 1
    (other / "metrics.jsonl").write_text('{"step": 1}\n')
    assert "damaged" in collect_records(tmp_path).left_out[other.name]


def test_a_folder_without_runs_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no runs"):
        collect_records(tmp_path)
    with pytest.raises(UserError, match="is not a folder"):
        collect_records(tmp_path / "none")


def test_analyses_are_kept_without_their_images(measured: Path, tmp_path: Path) -> None:
    shutil.copytree(measured, tmp_path, dirs_exist_ok=True)
    one, _ = sorted((tmp_path / "runs").iterdir())
    folder = one / "analysis" / "guessing-game"
    folder.mkdir(parents=True)
    rates = [i / 999 for i in range(1000)]
    game = {"auc": 0.75, "in_memory": 3, "samples": 9, "surfaces": [[1.0]]}
    game |= {"false_positive_rate": rates, "true_positive_rate": rates}
    (folder / "result.json").write_text(json.dumps({"scale": "cpu", "measured": game}))
    found = next(r for r in collect_records(tmp_path).records if r.run == one.name).analyses
    assert found.keys() == {"guessing-game"}
    assert found["guessing-game"].keys() == {"scale", *KEPT["guessing-game"]}
    kept = found["guessing-game"]["true_positive_rate"]
    assert (len(kept), kept[0], kept[-1]) == (101, 0.0, 1.0)


def test_long_logs_become_short_curves() -> None:
    lines = [
        {"kind": "step", "step": s, "readings": {"lider/λ/a": float(s), "lider/c/a": 2.0}}
        for s in range(1, 1001)
    ]
    lines.insert(500, {"kind": "task", "step": 500})
    curves = curves_of(lines)
    assert curves is not None
    assert len(curves.step) == 50
    assert curves.constants["a"][:2] == [10.5, 30.5]  # the means of 1…20 and 21…40
    assert curves.step[:2] == [20, 40]
    assert curves.borders == [500]
    assert curves_of([{"kind": "step", "step": 1, "readings": {}}]) is None
