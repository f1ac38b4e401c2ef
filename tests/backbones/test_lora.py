"""LoRA: starts unchanged, trains adapters and head alone, merges, resumes, and is refused."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from liderlab.backbones import BACKBONES
from liderlab.backbones.freezing import freeze
from liderlab.backbones.lora import (
    LoRALinear,
    add_adapters,
    is_adapter,
    merge_adapters,
    merged_weights,
)
from liderlab.backbones.network import Network
from liderlab.backbones.vit import ViT
from liderlab.config.compatibility import why_not
from liderlab.config.merging import make_config
from liderlab.errors import UserError
from liderlab.functional.spectral import weight_map
from liderlab.methods import METHODS
from liderlab.registry import Entry
from liderlab.regularizers import REGULARIZERS
from liderlab.runs.build import build as build_run
from liderlab.runs.build import completed
from liderlab.runs.execute import run
from liderlab.runs.export import export
from liderlab.runs.folder import RunFolder
from liderlab.runs.load import load
from liderlab.training.events import StepDone
from liderlab.training.loop import Loop
from short_options import SMALL, short_options

ALL = ["*.attn.*", "*.mlp.*"]
PAIRS = [
    (method, regularizer)
    for method in METHODS
    for regularizer in (None, *REGULARIZERS)
    if METHODS.class_of(method).trains == "all"
    and (regularizer is None or why_not(method, regularizer, {}) is None)
]
COVER = [(m, r) for m, r in PAIRS if r is None or m == ("er" if r != "lider" else "der++")]
CONFIG: dict[str, Any] = {
    "benchmark": {"name": "synthetic", "per_class": 8},
    "backbone": {"name": "vit", "width": 8, "depth": 2, "patch": 2, "lora": {"rank": 2}},
    "memory": {"size": 12},
    "training": {"epochs": 1, "optimizer": "adamw", "lr": 0.01},
    "regularizers": {"lider": {}},
    "threads": 1,
}


def network(modules: list[str] | None = None) -> Network:
    made = Network(ViT(4, (3, 8, 8), width=8, depth=2, patch=4))
    add_adapters(made.backbone, 3, 6.0, modules or ALL)
    return made


def moved(made: Network) -> Network:
    """A network whose adapters do something."""
    for name, value in made.named_parameters():
        if is_adapter(name):
            nn.init.normal_(value)
    return made


def trained(made: Network) -> set[str]:
    return {name for name, p in made.backbone.named_parameters() if p.requires_grad}


def test_the_formula_in_float64() -> None:
    layer = nn.Linear(5, 4).double()
    adapted = LoRALinear(layer, rank=2, alpha=3.0)
    nn.init.normal_(adapted.lora_b)
    x = torch.randn(6, 7, 5, dtype=torch.float64)
    weight = layer.weight + 3 / 2 * adapted.lora_b @ adapted.lora_a
    expected = x @ weight.T + layer.bias
    torch.testing.assert_close(adapted(x), expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(adapted.merged()(x), expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(weight_map(adapted)(x), x @ weight.T, rtol=1e-12, atol=1e-12)


def test_a_network_starts_unchanged() -> None:
    """To the bit, and with the draws of a network without adapters."""
    config = completed(make_config(CONFIG))
    plain = config.model_copy(
        update={"backbone": config.backbone.model_copy(update={"lora": None})}
    )
    adapted, unchanged = (build_run(c).loop.network for c in (config, plain))
    x = torch.rand(3, 3, 8, 8)
    assert any(is_adapter(name) for name in adapted.state_dict())
    assert torch.equal(adapted(x), unchanged(x))
    for name, value in unchanged.state_dict().items():
        assert torch.equal(value, adapted.state_dict()[name])


@pytest.mark.parametrize(
    ("patterns", "others"),
    [
        ([], {"head.weight", "head.bias"}),
        ("all-but-head", {"head.weight", "head.bias"}),
        (["blocks", "patch_embed"], {"cls_token", "pos_embed", "norm.*", "head.*"}),
        (["head", "*.bias", "*.norm*", "norm", "*_*"], set()),
    ],
)
def test_adapters_are_trained_with_what_freeze_leaves(
    patterns: list[str] | str, others: set[str]
) -> None:
    made = network()
    freeze(made, patterns)
    adapters = {n for n in trained(made) if is_adapter(n)}
    assert len(adapters) == 2 * 4 * 2  # A and B of four layers in two blocks
    names = {name for name, _ in made.backbone.named_parameters()}
    expected = {n for n in names for o in others if n == o or n.startswith(o.removesuffix("*"))}
    assert trained(made) - adapters == expected


def test_merging_keeps_the_function_and_leaves_no_adapter() -> None:
    made = moved(network())
    x = torch.rand(5, 3, 8, 8)
    before, state = made(x), merged_weights(made.state_dict())
    merge_adapters(made)
    assert not any(isinstance(module, LoRALinear) for module in made.modules())
    torch.testing.assert_close(made(x), before, rtol=1e-5, atol=1e-5)
    plain = Network(ViT(4, (3, 8, 8), width=8, depth=2, patch=4))
    assert state.keys() == plain.state_dict().keys() == made.state_dict().keys()
    assert all(torch.equal(value, state[name]) for name, value in made.state_dict().items())


@pytest.mark.parametrize(
    ("backbone", "modules", "sentence"),
    [
        ("vit", "[nothing]", "'nothing' matches no linear layer .* it has blocks.0.attn.qkv, "),
        ("vit", "[head]", "'head' matches no linear layer"),
        ("resnet18", '["*"]', r"'\*' matches no linear layer .* it has none"),
        ("vit", "[]", "backbone.lora.modules"),
    ],
)
def test_modules_that_match_nothing(
    backbone: str, modules: str, sentence: str, lider: Callable[..., tuple[int, str, str]]
) -> None:
    words = ("--backbone", backbone, "--width", "8", "--set", f"backbone.lora.modules={modules}")
    code, _, error = lider("run", "--benchmark", "synthetic", "--out", "x", *words)
    assert code == 2
    assert re.search(sentence, " ".join(error.split()))
    assert not Path("x").exists()


@pytest.mark.parametrize("value", ["rank=0", "rank=1.5", "alpha=0", "alpha=.inf", "modules=3"])
def test_bad_numbers(value: str, lider: Callable[..., tuple[int, str, str]]) -> None:
    words = ("--backbone", "vit", "--set", f"backbone.lora.{value}", "--out", "x")
    code, _, error = lider("run", "--benchmark", "synthetic", *words)
    assert code == 2
    assert f"backbone.lora.{value.partition('=')[0]}" in " ".join(error.split())


@pytest.mark.parametrize("method", [m for m in METHODS if METHODS.class_of(m).trains != "all"])
def test_a_method_that_trains_no_adapter_is_refused(method: str) -> None:
    with pytest.raises(UserError, match=f"{method} trains .* leave out backbone.lora"):
        completed(make_config(CONFIG, {"method": method, "regularizers": {"lider": None}}))


def test_layers_that_their_owner_does_not_call_have_no_adapter() -> None:
    """PyTorch's attention reads the weights of its projection, past an adapter."""
    inner = nn.Module()
    inner.attention = nn.MultiheadAttention(8, 2)
    inner.layer = nn.TransformerEncoderLayer(8, 2, 8)
    inner.hidden, inner.head = nn.Linear(8, 8), nn.Linear(8, 3)
    with pytest.raises(UserError, match=r"'layer' matches no linear layer .* it has hidden"):
        add_adapters(inner, 2, 2.0, ["layer"])
    add_adapters(inner, 2, 2.0, ["*"])
    assert [n for n, m in inner.named_modules() if isinstance(m, LoRALinear)] == ["hidden"]


def small(classes: int, image_shape: tuple[int, int, int], *, width: int) -> ViT:
    return ViT(classes, image_shape, width=width, depth=1, patch=4)


@pytest.mark.parametrize(
    ("method", "regularizer"),
    [pytest.param(*p, marks=[] if p in COVER else pytest.mark.slow) for p in PAIRS],
)
def test_adapters_and_head_alone_move_with_every_method_and_regularizer(
    method: str,
    regularizer: str | None,
    build: Callable[..., Loop],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def prepare(made: Network) -> None:
        add_adapters(made.backbone, 2, 4.0, ALL)
        freeze(made, [])

    monkeypatch.setitem(BACKBONES, "small", Entry(small, ""))
    loop = build(
        method,
        {regularizer: SMALL.get(regularizer, {})} if regularizer else {},
        options=short_options(method, 1),
        backbone="small",
        epochs=1,
        prepare=prepare,
    )
    before = {name: value.clone() for name, value in loop.network.state_dict().items()}
    for event in loop:
        assert not isinstance(event, StepDone) or all(t.isfinite() for t in event.terms.values())
    after = loop.network.state_dict()
    changed = {name for name, value in after.items() if not torch.equal(value, before[name])}
    assert changed == {name for name, p in loop.network.named_parameters() if p.requires_grad}
    assert len([name for name in changed if is_adapter(name)]) == 8


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lora") / "run"
    run(make_config(CONFIG), folder)
    return folder


def test_an_export_equals_the_runs_network_and_has_no_adapter(
    finished: Path, tmp_path: Path
) -> None:
    work = build_run(RunFolder(finished).config())
    network, transform = work.loop.network, work.stream.transform
    network.load_state_dict(RunFolder(finished).state()["network"])
    assert network.backbone.get_submodule("blocks.0.attn.qkv").lora_b.abs().max() > 1e-3
    pixels = torch.randint(0, 256, (5, 3, 8, 8), dtype=torch.uint8)
    with torch.no_grad():
        scores = network.eval()(transform.sample(5, None)(pixels))
        export(finished, tmp_path / "net.pt2")
        program = torch.export.load(tmp_path / "net.pt2")
        exported = program.module()(pixels)
    assert (exported - scores).abs().max() < 1e-6
    assert not any(is_adapter(name) for name in program.state_dict)
    assert load(finished).predict(pixels) == [load(finished).names[i] for i in scores.argmax(1)]


def test_the_weights_of_a_run_with_adapters_fit_a_plain_network(finished: Path) -> None:
    """A run that starts from them takes the merged weights, and no adapters of its own."""
    config = completed(make_config({**CONFIG, "backbone": {}, "pretrained": str(finished)}))
    assert config.backbone.lora is None
    body = build_run(config).loop.network.backbone.state_dict()
    merged = merged_weights(RunFolder(finished).state()["network"])
    assert body.keys() == {name.removeprefix("backbone.") for name in merged}
    same = [name for name in body if not name.startswith("head.")]
    assert all(torch.equal(body[name], merged[f"backbone.{name}"]) for name in same)


def test_it_resumes_to_the_bit(finished: Path, differences: Callable[..., list[str]]) -> None:
    config, expected = RunFolder(finished).config(), RunFolder(finished).state()["network"]
    loop, state = build_run(config).loop, None
    for number, _ in enumerate(loop):
        if number == 3:
            state = loop.state_dict()
            break
    again = build_run(config).loop
    again.load_state_dict(state)
    for _ in again:
        pass
    assert not differences(dict(again.network.state_dict()), dict(expected))
