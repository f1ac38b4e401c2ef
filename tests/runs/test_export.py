"""An exported file gives the scores of the run it came from, without liderlab."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import liderlab
from liderlab.config.merging import make_config
from liderlab.errors import UserError
from liderlab.runs.export import export

METHODS = ("er-ace", "icarl", "x-der-rpc", "ncm")


@pytest.fixture(scope="module", params=METHODS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("export") / request.param
    tree = {
        "benchmark": {"name": "synthetic"},
        "method": request.param,
        "memory": {"size": 20},
        "training": {"epochs": 1},
        "threads": 1,
    }
    liderlab.run(make_config(tree), out)
    return out


def images(n: int, run: Path) -> torch.Tensor:
    shape = liderlab.load(run).image_shape
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (n, *shape), generator=generator, dtype=torch.uint8)


def test_torch_export(run: Path, tmp_path: Path) -> None:
    export(run, tmp_path / "net.pt2")
    extra = {"classes.json": ""}
    program = torch.export.load(tmp_path / "net.pt2", extra_files=extra).module()
    network = liderlab.load(run)
    assert json.loads(extra["classes.json"]) == network.names
    for n in (1, 5):
        pixels = images(n, run)
        torch.testing.assert_close(program(pixels), network(pixels))


def test_onnx(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript", reason="onnx is not installed")
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    export(run, tmp_path / "net.onnx", "onnx")
    session = onnxruntime.InferenceSession(tmp_path / "net.onnx")
    network = liderlab.load(run)
    classes = session.get_modelmeta().custom_metadata_map["classes"]
    assert json.loads(classes) == network.names
    for n in (1, 5):
        pixels = images(n, run)
        (scores,) = session.run(["scores"], {"pixels": pixels.numpy()})
        expected = network(pixels).detach().numpy()
        np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-4)


def test_bad_input_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="not a run's folder"):
        export(tmp_path, tmp_path / "net.pt2")
    with pytest.raises(UserError, match=r"unknown format 'tflite'.*torch-export, onnx"):
        export(tmp_path, tmp_path / "net.pt2", "tflite")  # type: ignore[arg-type]
    monkeypatch.setattr("liderlab.runs.export.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install 'liderlab\[onnx\]'"):
        export(tmp_path, tmp_path / "net.onnx", "onnx")
    assert not list(tmp_path.iterdir())
