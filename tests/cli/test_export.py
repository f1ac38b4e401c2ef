"""`lider export`."""

from pathlib import Path


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
