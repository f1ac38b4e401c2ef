"""What the tests share: a tiny stream, and runs built from names as a user would name them."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import settings

from liderlab.backbones import BACKBONES
from liderlab.backbones.network import Network, in_fast_layout
from liderlab.cli import main
from liderlab.config import imports
from liderlab.memory import POLICIES, Memory
from liderlab.methods import METHODS
from liderlab.regularizers import REGULARIZERS
from liderlab.regularizers.base import Regularizer
from liderlab.streams.augmentation import Augment
from liderlab.streams.changes import blurred, long_tail, relabelled
from liderlab.streams.domains import Permutation, Rotation, in_domains
from liderlab.streams.splitting import Images, SplitStream, split
from liderlab.training.loop import Loop
from liderlab.training.randomness import Generators, derive
from liderlab.types import Recipe

torch.set_num_threads(1)
settings.register_profile("steady", deadline=None, derandomize=True, database=None, max_examples=60)
settings.load_profile("steady")  # the same examples every time, on machines of any speed

Options = Mapping[str, Any]
NO_OPTIONS: Options = {}


def make_stream(transform: Augment | None = None, kind: str = "plain") -> SplitStream:
    """Three tasks of two classes: a colour each, in noise; learned within a few steps.

    kind: also unequal, domains, blurry or noisy (with a long tail): a stream of that kind.
    """
    generator = torch.Generator().manual_seed(0)
    colours = torch.cartesian_prod(*[torch.tensor([60.0, 195.0])] * 3)[1:7]

    def images(per_class: int) -> Images:
        y = torch.arange(6).repeat_interleave(per_class)
        noise = 25 * torch.randn(len(y), 3, 8, 8, generator=generator)
        return Images((colours[y][:, :, None, None] + noise).clamp(0, 255).to(torch.uint8), y)

    transform = transform or Augment([0.5] * 3, [0.25] * 3, padding=1, flip=True)
    tasks = {"unequal": [3, 1, 2], "domains": 1}.get(kind, 3)
    stream = split(images(12), images(8), tasks, transform=transform)
    if kind == "domains":
        swapped = torch.arange(64).flip(0)
        return in_domains(stream, [Rotation(0.0), Rotation(30.0), Permutation(swapped)])
    if kind == "blurry":
        return blurred(stream, 0.25, seed=0)
    if kind == "noisy":
        return relabelled(long_tail(stream, 0.3, range(6), seed=0), 0.2, seed=0)
    return stream


@pytest.fixture(scope="session")
def stream() -> SplitStream:
    return make_stream()


@pytest.fixture(scope="session")
def stream_of_kind() -> Callable[[str], SplitStream]:
    return cache(lambda kind: make_stream(kind=kind))


def make_loop(
    method: str = "er",
    regularizers: Mapping[str, Options] = NO_OPTIONS,
    *,
    stream: SplitStream,
    seed: int = 0,
    options: Options = NO_OPTIONS,
    backbone: str = "convnet-small",
    width: int = 8,
    policy: str | None = None,
    size: int = 18,
    epochs: int = 2,
    recipe: Recipe | None = None,
    offer: str = "every-epoch",
    memory: Options = NO_OPTIONS,
    prepare: Callable[[Network], None] | None = None,
    more: Sequence[Regularizer] = (),
    **how: Any,
) -> Loop:
    """A loop from names, ready to run: the same arguments give the same run."""
    entry, classes = METHODS.entry(method), len(stream.names)
    with torch.random.fork_rng():
        torch.manual_seed(derive(seed, "initial weights"))
        chosen = entry.load()(**options)
        body = BACKBONES.load(backbone)(classes, stream.image_shape, width=width)
        network = Network(body, chosen.readout(classes))
    network = in_fast_layout(network)
    if prepare:
        prepare(network)
    added = [REGULARIZERS.load(name)(**given) for name, given in regularizers.items()]
    added += more
    policy = policy or chosen.policy
    kept = Memory(
        size if chosen.rehearsal else 0,
        stream.image_shape,
        chosen.columns(classes),
        POLICIES.load(policy)(),
        **memory,
    )
    return Loop(
        stream=stream,
        method=chosen,
        network=network,
        memory=kept,
        regularizers=added,
        recipe=recipe or Recipe(lr=0.1, momentum=0.5, batch_size=8, replay_size=8),
        epochs=epochs,
        generators=Generators(seed),
        offer=offer,
        **how,
    )


@pytest.fixture(scope="session")
def build(stream: SplitStream) -> Callable[..., Loop]:
    return partial(make_loop, stream=stream)


def differences(a: Any, b: Any, path: str = "") -> list[str]:
    """The places where two nested states are not equal to the bit (NaN equals NaN)."""
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        same = a.dtype == b.dtype and a.shape == b.shape
        same = same and torch.equal(a.nan_to_num(nan=0.0), b.nan_to_num(nan=0.0))
        return [] if same and torch.equal(a.isnan(), b.isnan()) else [path]
    if isinstance(a, Mapping) and isinstance(b, Mapping) and a.keys() == b.keys():
        return [place for key in a for place in differences(a[key], b[key], f"{path}/{key}")]
    if isinstance(a, list | tuple) and isinstance(b, list | tuple) and len(a) == len(b):
        pairs = enumerate(zip(a, b, strict=True))
        return [place for i, (x, y) in pairs for place in differences(x, y, f"{path}/{i}")]
    both_nan = isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b)
    return [] if both_nan or (type(a) is type(b) and a == b) else [path]


@pytest.fixture(scope="session", name="differences")
def differences_fixture() -> Callable[[Any, Any], list[str]]:
    return differences


@pytest.fixture
def fresh_registries() -> Iterator[None]:
    """Forget, after the test, what imported files have registered in this process."""
    executed, modules = dict(imports._executed), set(sys.modules)
    before = [dict(registry) for registry in imports.REGISTRIES]
    yield
    imports._executed.clear()
    imports._executed.update(executed)
    for registry, entries in zip(imports.REGISTRIES, before, strict=True):
        registry.clear()
        registry.update(entries)
    for name in sys.modules.keys() - modules:
        if name.startswith("liderlab_import_"):
            del sys.modules[name]


@pytest.fixture
def lider(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., tuple[int, str, str]]:
    """Runs a command in an empty folder: (exit code, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["lider", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        return int(stop.value.code or 0), captured.out, captured.err

    return call
