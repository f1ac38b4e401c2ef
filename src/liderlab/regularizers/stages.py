"""Stages of a network: the modules whose feature maps a regulariser reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn


def unwrap(model: nn.Module) -> nn.Module:
    """The network below compile (`_orig_mod`), Fabric (`_forward_module`) and DDP (`module`)."""
    for name in ("_orig_mod", "_forward_module", "module"):
        inner = getattr(model, name, None)
        # A network may have a child called `module` among others; a wrapper has just that one.
        if isinstance(inner, nn.Module) and (name != "module" or [*model.children()] == [inner]):
            return unwrap(inner)
    return model


def tapped_module(network: nn.Module, stage: str) -> nn.Module:
    """The module whose output is the stage's feature map.

    This package's backbones name in `taps` the module before a stage's last ReLU; for any other
    network it is the module of the stage's name.
    """
    taps: dict[str, str] = getattr(network, "taps", {})
    try:
        return network.get_submodule(taps.get(stage, stage))
    except AttributeError:
        known = [*taps, *(name for name, _ in network.named_children())]
        raise ValueError(
            f"Expected stages to name modules of the network, but got {stage!r}; "
            f"it has {', '.join(known)}, and the modules below them."
        ) from None


def last_linear(network: nn.Module) -> nn.Module | None:
    """The trained linear layer that comes last: the classifier. Its input are the features."""
    layers = [
        module
        for module in network.modules()
        if isinstance(module, nn.Linear) and module.weight.requires_grad
    ]
    return layers[-1] if layers else None


@contextmanager
def eval_mode(network: nn.Module) -> Iterator[None]:
    """Eval mode; afterwards every module's own mode again."""
    modes = [(module, module.training) for module in network.modules()]
    network.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


@contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """Eval mode without gradients."""
    with eval_mode(network), torch.no_grad():
        yield


def default_stages(network: nn.Module, example: Tensor | None) -> list[str]:
    """The backbone's own list, or the stages found with an example; [] without either."""
    if (taps := getattr(network, "taps", None)) is not None:
        return list(taps)
    return [] if example is None else find_stages(network, example)


def find_stages(network: nn.Module, example: Tensor) -> list[str]:
    """The stages among a network's children, found in one pass of an example (n, C, H, W).

    Successive children with equally shaped maps are one stage, named by the last of them. If a
    single child makes all the maps (say, one big `features`), its children are taken instead.
    Outputs without positions (pooled features, logits) and modules that run several times (a shared
    activation) are left out. A transformer's blocks follow, one stage each; if its patches are
    made further inside, their map comes first.
    """
    maps, blocks = _find_maps(network, example), _find_blocks(network, example)
    if blocks and not maps:
        maps = _find_stem(network, example, blocks)
    return maps + [name for name in blocks if name not in maps]


def _find_maps(network: nn.Module, example: Tensor) -> list[str]:
    parent, found = "", list[str]()
    while True:
        shapes = _output_shapes(network, _children(network, parent), example, dimensions=4)
        names = [name for name, shape in shapes.items() if shape[1:].numel() > 1]
        ends = [a for a, b in pairwise(names) if shapes[a] != shapes[b]] + names[-1:]
        found = ends or found
        trained = [name for name in shapes if [*network.get_submodule(name).parameters()]]
        inside = [name for name in _children(network, parent) if _children(network, name)]
        inside = [name for name in inside if name in shapes] or inside
        if len(trained) > 1 or len(inside) != 1:
            return found
        parent = inside[0]


def _find_blocks(network: nn.Module, example: Tensor) -> list[str]:
    """The longest row of siblings of one type that give tokens (n, N, D) of one shape."""
    names = [name for name, module in network.named_modules() if name and [*module.children()]]
    groups: dict[tuple[str, type, torch.Size], list[str]] = {}
    for name, shape in _output_shapes(network, names, example, dimensions=3).items():
        key = (name.rpartition(".")[0], type(network.get_submodule(name)), shape)
        groups.setdefault(key, []).append(name)
    longest = max(groups.values(), key=len, default=[])
    return longest if len(longest) > 1 else []


def _find_stem(network: nn.Module, example: Tensor, blocks: list[str]) -> list[str]:
    """The last map (n, C, H, W) with more than one position that is made before the blocks."""
    modules = [name for name, _ in network.named_modules() if name]
    before = modules[: modules.index(blocks[0])]
    names = [name for name in before if not blocks[0].startswith(f"{name}.")]
    shapes = _output_shapes(network, names, example, dimensions=4)
    return [name for name, shape in shapes.items() if shape[1:].numel() > 1][-1:]


def _children(network: nn.Module, parent: str) -> list[str]:
    prefix = f"{parent}." if parent else ""
    return [prefix + name for name, _ in network.get_submodule(parent).named_children()]


def _output_shapes(
    network: nn.Module, names: Iterable[str], example: Tensor, dimensions: int
) -> dict[str, torch.Size]:
    """Shapes, without the batch, of the outputs with so many dimensions, in running order.

    Modules that run more than once are left out.
    """
    seen: list[tuple[str, torch.Size]] = []

    def note(name: str) -> Any:
        def hook(module: nn.Module, args: Any, output: Any) -> None:
            if isinstance(output, Tensor) and output.dim() == dimensions:
                seen.append((name, output.shape[1:]))

        return hook

    handles = [network.get_submodule(name).register_forward_hook(note(name)) for name in names]
    try:
        with evaluating(network):
            network(example)
    finally:
        for handle in handles:
            handle.remove()
    times = Counter(name for name, _ in seen)
    return {name: shape for name, shape in seen if times[name] == 1}
