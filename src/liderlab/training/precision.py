"""Training passes through a network: their precision, and compilation."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Literal, cast

import torch
from torch import Tensor, nn
from torch.func import functional_call

from ..errors import UserError, unknown

Precision = Literal["float32", "bfloat16", "float16"]
HALF = {"bfloat16": torch.bfloat16, "float16": torch.float16}
GRAPHS = 1024  # more than a run has shapes of passes


class Passes:
    """Network input to logits, while training.

    precision: of the network's own arithmetic, by autocast; weights, logits and losses stay in
    float32. compile: a backend of torch.compile; attach hooks before. Every shape is compiled
    separately, so that a resumed run has the same graphs as an uninterrupted one.

    >>> Passes(nn.Linear(2, 2), "bfloat16")(torch.zeros(1, 2)).dtype
    torch.float32
    """

    def __init__(
        self, network: nn.Module, precision: Precision = "float32", compile: str | None = None
    ) -> None:
        self._network, self._half = network, HALF.get(precision)
        self._forward = cast("Callable[..., Tensor]", network)
        self.rows = 0  # images that have passed on this rank; `Step` counts them
        if compile is not None:
            self._forward = _compiled(network, compile)

    def __call__(self, x: Tensor, *asked: Tensor) -> Tensor:
        """asked: the rows' tasks, for a network that asks for them."""
        with self._autocast(x):
            return self._whole(self._forward(x, *asked))

    def with_parameters(self, parameters: Mapping[str, Tensor], x: Tensor) -> Tensor:
        """Logits with some parameters replaced, by name; never compiled."""
        with self._autocast(x):
            return self._whole(functional_call(self._network, dict(parameters), (x,)))

    def _autocast(self, x: Tensor) -> AbstractContextManager[object]:
        if self._half is None:
            return nullcontext()
        return torch.autocast(x.device.type, self._half)

    def _whole(self, logits: Tensor) -> Tensor:
        return logits if self._half is None else logits.float()


def _compiled(network: nn.Module, backend: str) -> Callable[..., Tensor]:
    import torch._dynamo as dynamo  # slow to import, and only needed here
    import torch._functorch.config as functorch

    if backend not in (known := dynamo.list_backends(exclude_tags=())):
        raise unknown("compile backend", backend, known)
    # Beyond its limits torch runs uncompiled, which rounds differently, and when it reaches them
    # depends on how often the run was interrupted.
    for limit in ("recompile_limit", "accumulated_recompile_limit"):
        setattr(dynamo.config, limit, max(getattr(dynamo.config, limit), GRAPHS))
    functorch.donated_buffer = False  # a method may go back through a pass twice (Step.gradient)
    return cast("Callable[..., Tensor]", torch.compile(network, backend=backend, dynamic=False))


def check_precision(precision: Precision, device: torch.device) -> None:
    """Refuse a precision in which the device cannot train."""
    if (half := HALF.get(precision)) is None:
        return
    if device.type == "cpu" and _products_crash(precision):
        raise UserError(
            f"this processor announces {precision} instructions that stop the program: set "
            "ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16, or choose --precision float32"
        )
    try:
        layer, x = nn.Conv2d(1, 1, 1, device=device), torch.zeros(1, 1, 2, 2, device=device)
        with torch.autocast(device.type, half):
            layer(x).sum().backward()
    except RuntimeError:
        raise UserError(
            f"{device} cannot train in {precision}: choose --precision float32"
        ) from None


@cache
def _products_crash(precision: Precision) -> bool:
    """Whether a matrix product ends a process, tried in one of its own.

    Some virtual machines announce AMX and stop at its first instruction.
    """
    product = f"import torch; x = torch.ones(64, 64, dtype=torch.{precision}); x @ x"
    return subprocess.run([sys.executable, "-c", product], capture_output=True).returncode < 0
