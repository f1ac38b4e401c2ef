"""`lider demo`."""

import json
from pathlib import Path

from liderlab.config.merging import make_config


def test_an_interrupted_demo_resumes_and_a_complete_one_is_repeated(
    lider, tmp_path: Path, monkeypatch
) -> None:
    config = make_config({"benchmark": "synthetic", "training": {"epochs": 1}})
    monkeypatch.setattr("liderlab.cli.demo.demo_runs", lambda seeds: [("er", config)])
    log = tmp_path / "d/er-seed0/metrics.jsonl"
    assert lider("demo", "--out", "d")[0] == 0
    first = log.stat().st_ino
    (tmp_path / "d/demo.png").unlink()
    assert lider("demo", "--out", "d")[0] == 0
    assert log.stat().st_ino == first
    log.write_bytes(log.read_bytes() + b"\n")
    assert lider("demo", "--out", "d")[0] == 0
    assert not log.read_bytes().endswith(b"\n\n")


def test_demo(lider, tmp_path: Path) -> None:
    code, out, err = lider("demo", "--seeds", "1", "--out", "d")
    assert code == 0, err
    assert "er-ace + LiDER" in out
    assert (tmp_path / "d/demo.png").is_file()
    assert "er-ace-lider-seed0" in (tmp_path / "d/report.html").read_text()
    faa = {}
    for name in ("finetune", "er-ace", "er-ace-lider", "joint"):
        result = json.loads((tmp_path / f"d/{name}-seed0/result.json").read_text())
        faa[name] = result["class_incremental"]["faa"]
    assert faa["finetune"] < 30 < 60 < min(faa["er-ace"], faa["er-ace-lider"]) < faa["joint"]
