"""Pre-training writes weights that another run starts from."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from liderlab.backbones.pretrained import read_weights
from liderlab.cli import main
from liderlab.errors import UserError
from liderlab.experiments.build import build, completed
from liderlab.experiments.config import make_config
from liderlab.experiments.load import load
from liderlab.experiments.pretrain import export_weights, name_of, pretraining
from liderlab.experiments.run import run
from liderlab.experiments.weights import find_weights, kept_weights

TINY: dict[str, Any] = {
    "benchmark": {"name": "synthetic", "per_class": 6},
    "backbone": {"name": "resnet18", "width": 4},
    "training": {"epochs": 1},
}


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pretraining")
    run(pretraining(TINY), folder / "run")
    export_weights(folder / "run", folder / "tiny.pt")
    return folder / "tiny.pt"


def test_the_papers_recipe() -> None:
    config = pretraining({})
    training = config.training
    assert (config.benchmark.name, config.benchmark.options["size"]) == ("split-tinyimagenet", 32)
    assert (config.method.name, config.benchmark.tasks) == ("joint", 1)
    assert (training.epochs, training.lr, training.gamma) == (50, 0.1, 0.5)
    assert training.milestones == [20, 30, 40, 45]
    assert config.backbone.name == "resnet18"
    assert name_of(config) == "tinyimagenet32-resnet18"  # what the presets ask for


def test_only_a_joint_run_pretrains() -> None:
    with pytest.raises(UserError, match="a joint run, not one of er"):
        pretraining({"method": "er"})


def test_the_file_holds_the_trained_backbone(weights: Path) -> None:
    trained: Any = load(weights.parent / "run")
    state = trained.classifier.backbone.state_dict()
    read = read_weights(weights)
    assert read.keys() == state.keys()
    assert all(torch.equal(read[name], state[name]) for name in state)
    about = json.loads(torch.load(weights, weights_only=True)["about"])
    assert about["classes"] == 6
    assert about["backbone"]["width"] == 4


def test_a_run_starts_from_it_with_a_new_classifier(weights: Path, tmp_path: Path) -> None:
    layers = (TINY, {"method": {"name": "gdumb", "fit_epochs": 1}})
    fresh = build(completed(make_config(*layers))).loop.network
    config = completed(make_config(*layers, {"pretrained": str(weights)}))
    loop = build(config).loop
    read = read_weights(weights)
    for name, value in loop.network.backbone.state_dict().items():
        origin = fresh.backbone.state_dict() if name.startswith("fc.") else read
        assert torch.equal(value, origin[name]), name
    result = run(config, tmp_path / "x")
    assert result["config"]["pretrained"] == str(weights)


def test_a_finished_run_is_used_without_the_file(weights: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.pt"
    copy.write_bytes(weights.read_bytes())
    run(make_config(TINY, {"pretrained": str(copy)}), tmp_path / "x")
    copy.unlink()
    assert load(tmp_path / "x").names == [str(c) for c in range(6)]


def test_weights_are_kept_by_name(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIDER_DATA", str(tmp_path))
    assert kept_weights("tiny") == tmp_path / "weights" / "tiny.pt"
    command = (
        "lider pretrain --out tinyimagenet32-resnet18 --benchmark split-tinyimagenet --size 32 "
        "--backbone resnet18"
    )
    with pytest.raises(UserError, match=command):
        find_weights("tinyimagenet32-resnet18", "resnet18")
    export_weights(weights.parent / "run", kept_weights("tiny"))
    assert find_weights("tiny", "resnet18").keys() == read_weights(weights).keys()


def test_weights_that_do_not_fit_are_refused_before_anything_is_written(
    weights: Path, tmp_path: Path
) -> None:
    config = make_config(TINY, {"backbone": {"width": 8}, "pretrained": str(weights)})
    with pytest.raises(UserError, match=r"bn1\.bias is 4, not 8"):
        run(config, tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lider(line: str) -> tuple[int, str, str]:
        """(exit code, standard output, standard error)"""
        monkeypatch.setattr(sys, "argv", ["lider", *line.split()])
        with pytest.raises(SystemExit) as stop:
            main()
        return int(stop.value.code or 0), *capsys.readouterr()

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LIDER_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "80")
    synthetic = "--benchmark synthetic --backbone convnet-small --threads 1"
    code, out, err = lider(f"pretrain {synthetic} --scale smoke")
    assert code == 0, err
    assert "lider run --pretrained synthetic-convnet-small" in out
    assert (tmp_path / "data/weights/synthetic-convnet-small.pt").is_file()
    start = "--pretrained synthetic-convnet-small --width 4"  # smoke took an eighth of 32
    code, out, err = lider(f"run {synthetic} --epochs 1 {start} --out x")
    assert code == 0, err
    code, _, err = lider(f"run {synthetic} --pretrained nowhere --out y")
    assert code == 2
    assert err.startswith("lider: there are no weights named 'nowhere'")
    assert len(err.splitlines()) == 1


def test_a_folder_that_cannot_be_written(weights: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write"):
        export_weights(weights.parent / "run", tmp_path / "file" / "w.pt")
