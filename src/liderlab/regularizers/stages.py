"""Which tensors of a network a regulariser looks at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


def unwrap(model: nn.Module) -> nn.Module:
    """The network below DDP (`module`), Fabric (`_forward_module`) and compile (`_orig_mod`)."""
    for name in ("_orig_mod", "_forward_module", "module"):
        inner = getattr(model, name, None)
        if isinstance(inner, nn.Module):
            return unwrap(inner)
    return model


def tapped_module(network: nn.Module, stage: str) -> nn.Module:
    """The module whose output is the stage's feature map.

    Our own backbones say in `taps` where a stage's output stands before its last ReLU; any other
    network's stage is the module of that name, and its output is taken as it is.
    """
    taps: dict[str, str] = getattr(network, "taps", {})
    try:
        return network.get_submodule(taps.get(stage, stage))
    except AttributeError:
        known = [*taps, *(name for name, _ in network.named_children())]
        raise ValueError(
            f"Expected stages to name modules of the network, but got {stage!r}; "
            f"it has {', '.join(known)}, and what lies below them."
        ) from None


@contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """Eval mode without gradients; every module's own mode comes back afterwards."""
    modes = [(module, module.training) for module in network.modules()]
    network.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes:
            module.training = mode


def find_stages(network: nn.Module, example: Tensor) -> list[str]:
    """The children that change the feature map, by one look at an example (n, C, H, W).

    Neighbours with equally shaped maps are one stage, named by the last of them. A network with a
    single such child (say, one big `features`) is looked into one level deeper. Outputs without
    positions (pooled features, logits) are left out.
    """
    parent, prefix = network, ""
    while True:
        shapes = _map_shapes(network, parent, prefix, example)
        names = [
            name
            for (name, shape), (_, following) in zip(
                shapes, [*shapes[1:], ("", torch.Size())], strict=True
            )
            if shape != following
        ]
        only = [child for child in parent.children() if any(True for _ in child.children())]
        if len(names) > 1 or len(only) != 1:
            return names
        prefix += next(name for name, child in parent.named_children() if child is only[0]) + "."
        parent = only[0]


def _map_shapes(
    network: nn.Module, parent: nn.Module, prefix: str, example: Tensor
) -> list[tuple[str, torch.Size]]:
    """Names and shapes (C, H, W) of the feature maps of parent's children, in running order."""
    seen: list[tuple[str, torch.Size]] = []

    def note(name: str) -> Any:
        def hook(module: nn.Module, args: Any, output: Any) -> None:
            if isinstance(output, Tensor) and output.dim() == 4 and output.shape[2:].numel() > 1:
                seen.append((name, output.shape[1:]))

        return hook

    handles = [
        child.register_forward_hook(note(prefix + name)) for name, child in parent.named_children()
    ]
    try:
        with evaluating(network):
            network(example)
    finally:
        for handle in handles:
            handle.remove()
    return seen
