"""The pass that a Jacobian needs: feature maps in one graph, no sample touching another."""

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

    In eval mode: BatchNorm works with its running statistics, or each sample would have a part in
    every other's output; dropout rests. Each map is on the way from the one before to the one
    after, so that autograd can differentiate between them, and is safe from what works in place.
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
        # Half precision would spoil the iteration; of attention's kernels only the plain one can be
        # differentiated twice.
        with (
            eval_mode(inner),
            torch.enable_grad(),
            torch.autocast(x.device.type, enabled=False),
            sdpa_kernel(SDPBackend.MATH),
        ):
            # on copies of the statistics: passes to come move the originals, before going back
            still = {name: buffer.clone() for name, buffer in inner.named_buffers()}
            functional_call(inner, still, (start.clone(),))
    finally:
        for handle in handles:
            handle.remove()
    return maps
