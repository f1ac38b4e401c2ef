"""A pass for the Jacobian estimate: feature maps in one graph, samples independent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.attention import SDPBackend, sdpa_kernel

from .feature_recorder import INPUT, Features
from .stages import eval_mode, tapped_module, unwrap


def stage_maps(network: nn.Module, chain: Sequence[str], x: Tensor) -> Features:
    """The maps of a chain of stages, in running order, for `jacobian_lipschitz`.

    The pass runs in eval mode: BatchNorm uses its running statistics, so that samples do not
    influence each other, and dropout is off. Each map is computed from the one before, so that
    autograd can differentiate between them; in-place layers do not change it.
    """
    inner = unwrap(network)
    maps: Features = {}

    def pass_through(stage: str) -> Any:
        def hook(module: nn.Module, args: tuple[Any, ...], output: Any) -> Tensor:
            if not isinstance(output, Tensor):
                kind = type(output).__name__
                raise TypeError(f"Expected a tensor from {stage!r}, but got {kind}.")
            if stage in maps:
                raise RuntimeError(f"Stage {stage!r} ran twice in one pass.")
            maps[stage] = output.clone()
            return maps[stage].clone()

        return hook

    handles = [
        tapped_module(inner, stage).register_forward_hook(pass_through(stage))
        for stage in chain
        if stage != INPUT
    ]
    start = x.detach().clone().requires_grad_(x.is_floating_point())
    if INPUT in chain:
        maps[INPUT] = start
    try:
        # Half precision would spoil the iteration; only attention's plain kernel can be
        # differentiated twice.
        with (
            eval_mode(inner),
            torch.enable_grad(),
            torch.autocast(x.device.type, enabled=False),
            sdpa_kernel(SDPBackend.MATH),
        ):
            # on copies of the statistics: later passes change the originals before backward()
            frozen = {name: buffer.clone() for name, buffer in inner.named_buffers()}
            functional_call(inner, frozen, (start.clone(),))
    finally:
        for handle in handles:
            handle.remove()
    return maps
