"""Smaller versions of a run: every change is listed, and nothing else changes."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from liderlab.config.diff import flat
from liderlab.config.merging import make_config
from liderlab.config.presets import preset, presets
from liderlab.config.scale import SCALES
from liderlab.config.schema import RunConfig
from liderlab.errors import UserError
from liderlab.runs.build import build, completed
from liderlab.runs.execute import run

FEW = [
    "cifar100-500-er-ace-lider",
    "cub200-400-gdumb",
    "miniimagenet-2000-der++",
    "cub200-joint",
    "cifar100-pretrained-500-er-ace",
]


def complete(*layers: dict[str, Any]) -> RunConfig:
    return completed(make_config(*layers))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", FEW)
def test_the_changes_are_exactly_the_difference(name: str, scale: str) -> None:
    paper = flat(complete({"preset": name}).model_dump())
    small = complete({"preset": name, "scale": scale})
    assert small.scale is not None
    values = flat(small.model_dump())
    different = {
        key: {"from": paper.get(key), "to": values.get(key)}
        for key in paper.keys() | values.keys()
        if values.get(key) != paper.get(key) and not key.startswith("scale")
    }
    assert small.scale.changes == different
    assert (scale == "paper") == (not different)


def test_the_changes_of_smoke_to_a_pretrained_preset() -> None:
    config = complete({"preset": "cub200-400-gdumb", "scale": "smoke"})
    assert config.scale is not None
    assert config.scale.changes == {
        "training.epochs": {"from": 50, "to": 1},
        "benchmark.train_per_class": {"from": None, "to": 8},
        "benchmark.test_per_class": {"from": None, "to": 4},
        "method.fit_epochs": {"from": 250, "to": 2},
        "pretrained": {"from": "imagenet", "to": None},
        "backbone.width": {"from": 64, "to": 8},
    }


def test_the_schedule_shrinks_with_the_epochs() -> None:
    config = complete({"preset": "miniimagenet-2000-er-ace", "scale": "cpu"})
    assert (config.training.epochs, config.training.milestones) == (4, [2, 3])  # 35, 60, 75 of 80


def test_pretrained_weights_keep_their_network() -> None:
    given = {"benchmark": "split-cub200", "backbone": "resnet50", "pretrained": "imagenet"}
    config = complete(given, {"scale": "cpu"})
    assert config.pretrained == "imagenet"
    assert config.backbone.options["width"] == 64
    assert config.benchmark.train_per_class == 50  # a wide network takes long enough with these


def test_cub200_has_a_smaller_network_and_images_at_the_cpu_scale() -> None:
    config = complete({"preset": "cub200-400-er-ace", "scale": "cpu"})
    assert config.scale is not None
    assert config.scale.changes == {
        "backbone.name": {"from": "resnet50", "to": "efficientnet-lite0"},
        "backbone.width": {"from": 64, "to": 32},
        "backbone.stem": {"from": "imagenet", "to": None},
        "backbone.dropout": {"from": None, "to": 0.0},
        "backbone.stochastic_depth": {"from": None, "to": 0.0},
        "benchmark.size": {"from": 224, "to": 96},
        "benchmark.normalize": {"from": "cub200", "to": "lite0"},
        "training.epochs": {"from": 50, "to": 4},
    }
    assert (config.pretrained, config.memory.size, config.benchmark.tasks) == ("imagenet", 400, 10)
    small = {"benchmark": {"size": 64}}
    config = complete({"preset": "cub200-400-er-ace", "scale": "cpu"}, small)
    assert config.benchmark.options["size"] == 64  # a value is never raised
    chosen = {"backbone": {"name": "efficientnet-b0"}}
    config = complete({"preset": "cub200-400-er-ace", "scale": "cpu"}, chosen)
    assert (config.backbone.name, config.benchmark.options["size"]) == ("efficientnet-b0", 224)


def test_cifar100_pretrained_takes_narrow_weights_at_the_cpu_scale() -> None:
    config = complete({"preset": "cifar100-pretrained-500-er-ace", "scale": "cpu"})
    assert config.pretrained == "tinyimagenet32-resnet18-width16"
    assert config.backbone.options["width"] == 16
    assert config.benchmark.train_per_class is None


def test_own_weights_choose_their_own_width(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "liderlab.config.scale.backbone_of", lambda pretrained: {"name": "resnet18", "width": 4}
    )
    mine = {"preset": "cifar100-pretrained-500-er-ace", "pretrained": str(tmp_path / "w.pt")}
    config = complete(mine, {"scale": "cpu"})
    assert (config.backbone.options["width"], config.pretrained) == (4, str(tmp_path / "w.pt"))
    assert complete(mine, {"scale": "paper"}).backbone.options["width"] == 64


def test_the_cpu_scale_of_cifar100_keeps_every_image() -> None:
    config = complete({"preset": "cifar100-500-er-ace", "scale": "cpu"})
    assert config.benchmark.train_per_class is None
    assert config.scale is not None
    assert config.scale.changes == {
        "training.epochs": {"from": 50, "to": 4},
        "training.milestones": {"from": [35, 45], "to": [3]},
        "backbone.width": {"from": 64, "to": 8},
    }


@pytest.mark.parametrize(("scale", "width"), [("cpu", 96), ("smoke", 12), ("paper", 96)])
def test_a_preset_may_keep_its_width(scale: str, width: int) -> None:
    config = complete({"preset": "cifar100-vit-500-er-ace", "scale": scale})
    assert config.backbone.options["width"] == width
    narrow = {"backbone": {"width": 24}}
    own = complete({"preset": "cifar100-vit-500-er-ace", "scale": "cpu"}, narrow)
    assert own.backbone.options["width"] == 24


def test_a_value_is_never_raised() -> None:
    few = {"training": {"epochs": 1}, "benchmark": {"name": "synthetic", "train_per_class": 2}}
    config = complete(few, {"scale": "smoke"})
    assert (config.training.epochs, config.benchmark.train_per_class) == (1, 2)
    assert config.scale is not None
    assert config.scale.changes.keys() == {"benchmark.test_per_class", "backbone.width"}


def test_every_preset_has_every_scale() -> None:
    for name in presets():
        complete({"preset": name, "scale": "smoke"})


def test_a_run_at_scale_says_so_and_repeats(tmp_path: Path) -> None:
    config = make_config({"benchmark": "synthetic", "method": "gdumb", "scale": "smoke"})
    result = run(config, tmp_path / "a")
    written = json.loads((tmp_path / "a/result.json").read_text())
    kept: Any = yaml.safe_load((tmp_path / "a/config.yaml").read_text())
    assert result["scale"] == written["scale"] == kept["scale"]
    assert kept["scale"]["changes"]["method.fit_epochs"] == {"from": 250, "to": 2}
    again = run(make_config(kept), tmp_path / "b")
    assert again["class_incremental"] == result["class_incremental"]
    assert again["scale"] == result["scale"]


def test_a_run_without_a_scale_has_none(tmp_path: Path) -> None:
    config = make_config({"benchmark": "synthetic", "training": {"epochs": 1}})
    assert run(config, tmp_path / "a")["scale"] is None


def test_the_first_images_of_every_class_stay() -> None:
    layer = {"benchmark": {"name": "synthetic", "train_per_class": 5, "test_per_class": 3}}
    whole = build(completed(make_config({"benchmark": "synthetic"}))).stream
    thin = build(completed(make_config(layer))).stream
    for few, task in zip(thin.tasks, whole.tasks, strict=True):
        for part, count in (("train", 5), ("test", 3)):
            assert len(getattr(few, part)) == count * len(task.classes)
            index = getattr(few, part).index.tolist()
            assert index == [
                place
                for place in getattr(task, part).index.tolist()
                if sum(
                    getattr(task, part).images.y[other] == getattr(task, part).images.y[place]
                    for other in range(place)
                )
                < count
            ]


def test_wrong_scales() -> None:
    with pytest.raises(UserError, match="unknown scale 'cup': did you mean 'cpu'"):
        make_config({"scale": "cup"})
    small = complete({"preset": "cub200-joint", "scale": "smoke"}).model_dump()
    with pytest.raises(UserError, match="at scale smoke already and cannot go to paper"):
        make_config(small, {"scale": "paper"})
    assert complete(small, {"scale": "smoke"}).model_dump() == small
    assert preset("cub200-joint").config["training"]["epochs"] == 50  # the data are untouched
