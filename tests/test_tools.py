"""The commands around the lab, as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from liderlab.errors import Stopped
from liderlab.runs import doctor


def test_doctor_finds_nothing_wrong_here(lider, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("LIDER_DATA", str(tmp_path))
    monkeypatch.setattr(doctor, "ROOM", 0)  # a full disk is not what is tested here
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


def test_a_self_test_that_is_stopped_is_no_problem_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> None:
        raise Stopped(2, "somewhere")

    monkeypatch.setattr("liderlab.runs.execute.run", stopped)
    with pytest.raises(Stopped, match="the self-test did not end") as found:
        doctor._self_test()
    assert found.value.exit_code == 130


def test_export(lider, tmp_path: Path) -> None:
    run = tmp_path / "run"
    options = ["--benchmark", "synthetic", "--method", "finetune", "--epochs", "1"]
    assert lider("run", *options, "--out", str(run))[0] == 0
    code, out, _ = lider("export", str(run))
    assert code == 0
    assert (run / "network.pt2").is_file()
    assert "uint8 pixels" in out
    code, _, err = lider("export", str(run), "--format", "tflite")
    assert code == 2
    assert "'tflite' is not one of 'torch-export', 'onnx'" in err
    code, _, err = lider("export", str(run), "--out", str(tmp_path / "no" / "net.pt2"))
    assert code == 2
    assert err.startswith(f"lider: cannot write to {tmp_path}/no/net.pt2: No such file")


def test_import_mammoth(lider) -> None:
    code, out, err = lider(
        *("import-mammoth", "--model", "er", "--dataset", "seq-cifar10", "--lr", "0.1", "--x", "1")
    )
    assert code == 0
    assert out == (
        "lider run --benchmark split-cifar10 --backbone resnet18 --epochs 50 --batch-size 32 "
        "--method er --lr 0.1\n"
    )
    assert err == "note: --x has no counterpart here and is left out\n"
    code, _, err = lider("import-mammoth", "--model", "l2p", "--dataset", "seq-cifar10")
    assert code == 2
    assert err.startswith("lider: unknown model 'l2p'")
