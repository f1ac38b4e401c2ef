"""The vision transformer: against PyTorch's own layers, its options, and its positions."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from liderlab.backbones.network import Network
from liderlab.backbones.pretrained import Misfit, load_weights
from liderlab.backbones.vit import EPS, Block, ViT
from liderlab.regularizers.lider import LiDER
from liderlab.regularizers.stages import find_stages


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def test_a_block_is_pytorchs_encoder_layer() -> None:
    block = Block(12, heads=3).double()
    theirs = nn.TransformerEncoderLayer(
        12, 3, 48, 0.0, "gelu", EPS, batch_first=True, norm_first=True, dtype=torch.float64
    )
    names = {"self_attn.in_proj_": "attn.qkv.", "self_attn.out_proj.": "attn.proj."}
    names |= {"linear1.": "mlp.fc1.", "linear2.": "mlp.fc2."}
    state = {}
    for name in theirs.state_dict():
        ours = name
        for old, new in names.items():
            ours = ours.replace(old, new)
        state[name] = block.state_dict()[ours]
    theirs.load_state_dict(state)
    x = drawn(5, 7, 12)
    torch.testing.assert_close(block(x), theirs(x), rtol=1e-12, atol=1e-12)


def test_names_and_shapes_are_timms() -> None:
    """Those of timm's vit_tiny_patch16_224, by its rule; 5,717,416 parameters are published."""
    state = ViT(1000, (3, 224, 224), patch=16, depth=12).state_dict()
    layers = {"norm1": (192,), "attn.qkv": (576, 192), "attn.proj": (192, 192)}
    layers |= {"norm2": (192,), "mlp.fc1": (768, 192), "mlp.fc2": (192, 768)}
    shapes = {"patch_embed.proj": (192, 3, 16, 16), "norm": (192,), "head": (1000, 192)}
    shapes |= {f"blocks.{i}.{name}": shape for i in range(12) for name, shape in layers.items()}
    expected = {"cls_token": (1, 1, 192), "pos_embed": (1, 197, 192)}
    expected |= {f"{name}.weight": shape for name, shape in shapes.items()}
    expected |= {f"{name}.bias": shape[:1] for name, shape in shapes.items()}
    assert {name: tuple(value.shape) for name, value in state.items()} == expected
    assert sum(value.numel() for value in state.values()) == 5_717_416


@pytest.mark.parametrize(
    ("sides", "patch"), [((32, 32), 4), ((64, 64), 8), ((28, 28), 2), ((84, 84), 7), ((9, 12), 1)]
)
def test_the_patch_leaves_eight_along_the_shorter_side(sides: tuple[int, int], patch: int) -> None:
    network = ViT(3, (3, *sides), width=4, depth=1)
    assert network.patch_embed.grid_size == (sides[0] // patch, sides[1] // patch)


@pytest.mark.parametrize(("width", "heads"), [(192, 3), (96, 1), (100, 1), (128, 2), (2, 1)])
def test_heads_have_64_channels(width: int, heads: int) -> None:
    assert ViT(3, (3, 8, 8), width=width, depth=1).blocks[0].attn.heads == heads


def test_the_features_are_the_class_token_or_the_mean_of_the_patches() -> None:
    seen: list[Tensor] = []
    network = ViT(3, (3, 8, 8), width=8, depth=1, patch=4)
    network.norm.register_forward_hook(lambda module, args, output: seen.append(output))
    token = network.features(torch.rand(2, 3, 8, 8))
    assert torch.equal(token, seen[-1][:, 0])
    network.pool = "mean"
    mean = network.features(torch.rand(2, 3, 8, 8))
    torch.testing.assert_close(mean, seen[-1][:, 1:].mean(1))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("backbone.patch=3", "a patch of 3 does not divide images of 8x8: choose backbone.patch"),
        (
            "backbone.heads=3",
            "3 heads do not divide a width of 8: choose backbone.heads among 1, 2",
        ),
        ("backbone.pool=max", "backbone.pool|pool"),
    ],
)
def test_bad_options_on_the_command_line(
    options: str, sentence: str, lider: Callable[..., tuple[int, str, str]]
) -> None:
    small = ("--benchmark", "synthetic", "--backbone", "vit", "--width", "8", "--out", "x")
    code, _, error = lider("run", *small, "--set", options)
    assert code == 2
    assert re.search(sentence, " ".join(error.split()))
    assert not Path("x").exists()


def test_weights_of_another_image_size_load() -> None:
    """The class token's position stays, the patches' are interpolated, all else is copied."""
    small, large = (ViT(3, (3, n, n), width=8, depth=2, patch=4) for n in (16, 32))
    load_weights(large, small.state_dict(), "w.pt")
    old, new = small.state_dict(), large.state_dict()
    assert torch.equal(old["pos_embed"][:, 0], new["pos_embed"][:, 0])
    assert new["pos_embed"].shape == (1, 65, 8)
    same = set(old) - {"pos_embed", "head.weight", "head.bias"}
    assert all(torch.equal(old[name], new[name]) for name in same)


def test_weights_of_another_patch_or_architecture_do_not() -> None:
    other = ViT(3, (3, 32, 32), width=8, depth=2, patch=8).state_dict()
    with pytest.raises(Misfit, match=r"patch_embed.proj.weight is 8x3x8x8, not 8x3x4x4"):
        load_weights(ViT(3, (3, 32, 32), width=8, depth=2, patch=4), other, "w.pt")
    narrow = ViT(3, (3, 8, 8), width=8, depth=2, patch=4).state_dict()
    with pytest.raises(Misfit, match=r"blocks.0.attn.proj.bias is 8, not 16"):
        load_weights(ViT(3, (3, 32, 32), width=16, depth=2, patch=4), narrow, "w.pt")


@pytest.mark.parametrize("estimator", ["spatial", "batch", "jacobian"])
def test_every_form_of_lider_has_a_gradient(estimator: str) -> None:
    network = Network(ViT(3, (3, 8, 8), width=8, depth=2, patch=2))
    lider = LiDER(alpha=0.0, beta=1.0, estimator=estimator)
    x = torch.rand(4, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    lider.attach(network, x)
    assert lider.chain == ["input", "stem", "block1", "block2"]
    lider.calibrate([x])
    with lider.watch():
        network(x)
    lider.penalty().backward()
    for name in ("patch_embed.proj", "blocks.0.attn.qkv", "blocks.1.mlp.fc2"):
        assert network.backbone.get_submodule(name).weight.grad.abs().sum() > 0


def test_stages_are_found_without_taps() -> None:
    """As in timm's networks: the patches' map, made further inside, then every block."""
    network = ViT(3, (3, 8, 8), width=8, depth=3, patch=2)
    stages = find_stages(network, torch.rand(2, 3, 8, 8))
    assert stages == ["patch_embed.proj", "blocks.0", "blocks.1", "blocks.2"]
