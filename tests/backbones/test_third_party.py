"""Third-party networks: wrapped, made by name from optional packages, regularised by LiDER."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from liderlab.backbones import BACKBONES
from liderlab.backbones.network import Network
from liderlab.backbones.pretrained import load_weights
from liderlab.backbones.third_party import ThirdParty, as_backbone
from liderlab.backbones.vit import ViT
from liderlab.config.merging import make_config
from liderlab.errors import UserError
from liderlab.registry import Entry
from liderlab.regularizers.lider import LiDER
from liderlab.runs.build import build, completed


class Theirs(nn.Module):
    """Has `features`, like many networks elsewhere, but as a map."""

    def __init__(self, classes: int = 4, channels: int = 3) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(channels, 5, 3, padding=1), nn.ReLU())
        self.hidden = nn.Linear(5, 6)
        self.head = nn.Linear(6, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.hidden(self.features(x).mean((2, 3))).relu())


def test_features_are_the_input_of_the_last_layer() -> None:
    theirs = Theirs()
    backbone: Any = as_backbone(theirs)
    x = torch.randn(2, 3, 8, 8, generator=torch.Generator())
    expected = theirs.hidden(theirs.features(x).mean((2, 3))).relu()
    assert torch.equal(backbone.features(x), expected)
    assert torch.equal(backbone(x), theirs(x))
    assert not theirs.head._forward_pre_hooks


def test_our_backbones_are_not_wrapped() -> None:
    ours = BACKBONES.load("resnet18")(3, (3, 8, 8), width=2)
    assert as_backbone(ours) is ours


def test_a_network_without_a_linear_layer_is_refused() -> None:
    with pytest.raises(ValueError, match="ends in a linear layer"):
        as_backbone(nn.Conv2d(3, 4, 1))


def test_lider_finds_the_stages() -> None:
    network = Network(as_backbone(Theirs()))
    x = torch.randn(4, 3, 8, 8, generator=torch.Generator())
    lider = LiDER(alpha=0.0, beta=1.0)
    lider.attach(network, x)
    lider.calibrate([x])
    with lider.watch():
        network(x)
    assert lider.chain == ["input", "backbone.network.features.1"]
    assert lider.penalty().item() > 0


def test_a_registered_module_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    def mine(classes: int, image_shape: tuple[int, int, int]) -> nn.Module:
        return Theirs(classes, image_shape[0])

    monkeypatch.setitem(BACKBONES, "mine", Entry(mine, "my own"))
    config = make_config({"benchmark": "synthetic", "backbone": "mine", "method": "icarl"})
    work = build(completed(config))
    before = [p.detach().clone() for p in work.loop.network.parameters()]
    next(iter(work.loop))
    pairs = zip(before, work.loop.network.parameters(), strict=True)
    assert any(not torch.equal(a, b) for a, b in pairs)


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-ins with the interfaces of timm and torchvision."""

    def create_model(name: str, *, num_classes: int, in_chans: int) -> nn.Module:
        if name != "their_net":
            raise RuntimeError(f"Unknown model ({name})")
        return Theirs(num_classes, in_chans)

    def get_model(name: str, *, weights: None, num_classes: int) -> nn.Module:
        if name != "their_net":
            raise ValueError(f"Unknown model {name}")
        return Theirs(num_classes)

    timm, torchvision = ModuleType("timm"), ModuleType("torchvision")
    timm.__dict__.update(create_model=create_model)
    torchvision.__dict__.update(models=SimpleNamespace(get_model=get_model))
    for package in (timm, torchvision):
        monkeypatch.setitem(sys.modules, package.__name__, package)
        monkeypatch.setitem(sys.modules, f"{package.__name__}.models", ModuleType("models"))


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize("family", ["timm", "torchvision"])
def test_by_name_from_a_package(family: str) -> None:
    backbone = BACKBONES.load(f"{family}:their_net")(9, (3, 8, 8))
    assert isinstance(backbone, ThirdParty)
    assert backbone(torch.zeros(2, 3, 8, 8)).shape == (2, 9)
    with pytest.raises(UserError, match=f"{family} cannot make 'other_net': Unknown model"):
        BACKBONES.load(f"{family}:other_net")(9, (3, 8, 8))


@pytest.mark.usefixtures("packages")
def test_timm_takes_any_number_of_channels_and_torchvision_does_not() -> None:
    assert BACKBONES.load("timm:their_net")(9, (1, 8, 8))(torch.zeros(2, 1, 8, 8)).shape == (2, 9)
    with pytest.raises(UserError, match="takes colour images"):
        BACKBONES.load("torchvision:their_net")(9, (1, 8, 8))


@pytest.mark.parametrize("family", ["timm", "torchvision"])
def test_a_missing_package(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, family, None)
    with pytest.raises(UserError, match=f"needs the package {family}: pip install {family}"):
        BACKBONES.load(f"{family}:resnet18")(9, (3, 8, 8))


def test_another_family_is_unknown() -> None:
    with pytest.raises(UserError, match="unknown backbone 'keras:resnet18'"):
        BACKBONES.entry("keras:resnet18")


class TheirTransformer(ViT):
    """Made for images of one size, like timm's; `taps` would make it one of ours."""

    def __init__(self, classes: int, channels: int, size: tuple[int, int]) -> None:
        super().__init__(classes, (channels, *size), width=8, depth=2, patch=4)
        self.patch_embed.img_size, self.patch_embed.patch_size = size, (4, 4)
        del self.taps


def test_a_transformer_of_timm_is_made_for_the_images(
    packages: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def create_model(
        name: str, *, num_classes: int, in_chans: int, img_size: tuple[int, int] = (24, 24)
    ) -> nn.Module:
        size = tuple(side // 4 * 4 for side in img_size)  # timm drops the pixels of a part patch
        return TheirTransformer(num_classes, in_chans, size)

    monkeypatch.setattr(sys.modules["timm"], "create_model", create_model)
    make = BACKBONES.load("timm:vit")
    backbone = make(9, (3, 8, 8))
    assert backbone(torch.zeros(2, 3, 8, 8)).shape == (2, 9)
    lider = LiDER()
    lider.attach(Network(backbone), torch.rand(2, 3, 8, 8))
    inner = [f"backbone.network.{name}" for name in ("patch_embed.proj", "blocks.0", "blocks.1")]
    assert lider.chain == ["input", *inner]
    load_weights(backbone, make(9, (3, 24, 24)).network.state_dict(), "w.pt")  # other positions
    with pytest.raises(UserError, match="patches of 4x4, which do not divide images of 10x8"):
        make(9, (3, 10, 8))
