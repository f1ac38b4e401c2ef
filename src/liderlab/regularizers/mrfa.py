"""MRFA: multi-layer rehearsal feature augmentation (Zheng et al., 2024)."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from ..errors import check_numbers
from ..functional.losses import cross_entropy
from ..functional.perturbation import along_gradient
from ..types import Batch
from .base import Regularizer
from .stages import default_stages, eval_mode, tapped_module, unwrap

if TYPE_CHECKING:
    from ..training.step import Step


class MRFA(Regularizer):
    r"""Moves the features of replayed rows towards a larger loss while the method trains on them.

        h_k ← h_k + s · u · ‖h_k‖² · ∂ℓ/∂h_k,    ℓ = mean of CE(f(x), y) over the replayed rows

    k: a stage, drawn for each row. u: uniform in 0…1, drawn for each row. The gradient comes from a
    pass of the same rows in eval mode. It adds no loss term.

    Args:
        strength: s.
        stages: module names; None takes the backbone's own list, or finds them.
    """

    needs_memory = True
    off: ClassVar[Mapping[str, Any]] = {"strength": 0.0}
    paper = "Zheng et al."
    year = 2024

    def __init__(self, strength: float = 1e-4, stages: Sequence[str] | None = None) -> None:
        super().__init__()
        check_numbers(strength=strength, at_least=0)
        self.strength, self.stages = strength, stages
        self.doing: Literal["nothing", "measuring", "moving"] = "nothing"
        self._maps: dict[str, Tensor] = {}  # by stage: zeros while measuring, then gradients
        self._shares: dict[str, Tensor] = {}  # by stage: s · u of each row, 0 in other stages

    def attach(self, network: nn.Module, example: Tensor | None = None) -> None:
        if self.strength == 0:
            return
        inner = unwrap(network)
        self.stages = self.stages or default_stages(inner, example)
        if not self.stages:
            raise ValueError(
                "mrfa found no stages in this network: name modules, "
                "--set regularizers.mrfa.stages=[NAME]"
            )
        for stage in self.stages:  # before other hooks, so that they see the moved map
            tapped_module(inner, stage).register_forward_hook(Mover(self, stage), prepend=True)

    def before_pass(self, batch: Batch, step: Step) -> None:
        """Draw stages and shares for all ranks' rows, and take the gradients."""
        self._maps, self._shares = {}, {}
        if self.strength == 0 or batch.origin == "stream" or not batch:
            return
        assert self.stages is not None
        replayed = step.gather(batch, replayed=batch.replayed)["replayed"]
        if batch.origin == "both" and not replayed.any():  # ranks draw as one process does
            return
        count, generator = len(replayed), step.generator("mrfa")
        where = torch.randint(len(self.stages), (count,), generator=generator)
        share = self.strength * torch.rand(count, generator=generator)
        own = step.part(batch)
        where, share = (drawn[own].to(batch.y.device) for drawn in (where, share))
        if len(batch) == 0:  # other ranks have rows
            return
        share = share * batch.replayed
        self._shares = {name: share * (where == k) for k, name in enumerate(self.stages)}
        weight = batch.replayed / replayed.sum().clamp_min(1)
        with self._doing("measuring"), eval_mode(step.network), torch.enable_grad():
            losses = cross_entropy(step.probe(batch.x)[:, : step.seen], batch.y)
            slopes = torch.autograd.grad((weight * losses).sum(), list(self._maps.values()))
        self._maps = dict(zip(self._maps, slopes, strict=True))

    def hear(self, batch: Batch, step: Step) -> AbstractContextManager[None]:
        return self._doing("moving") if self._shares else nullcontext()

    @contextmanager
    def _doing(self, what: Literal["measuring", "moving"]) -> Iterator[None]:
        self.doing = what
        try:
            yield
        finally:
            self.doing = "nothing"

    def changed(self, stage: str, feature: Tensor) -> Tensor:
        """A stage's map as it goes on through the network."""
        if self.doing == "measuring":  # ∂ℓ/∂h is the gradient of zeros that are added to h
            self._maps[stage] = torch.zeros_like(feature, requires_grad=True)
            return feature + self._maps[stage]
        share, slope = self._shares[stage], self._maps[stage]
        return along_gradient(feature, slope, share.to(feature.dtype))

    def extra_repr(self) -> str:
        return f"strength={self.strength}"


class Mover:
    """A hook that changes a stage's map while its regulariser asks for it; a copied or pickled hook
    does nothing."""

    def __init__(self, owner: MRFA | None, stage: str) -> None:
        self._owner = weakref.ref(owner) if owner is not None else lambda: None
        self.stage = stage

    def __call__(self, module: nn.Module, args: Any, output: Tensor) -> Tensor | None:
        owner = self._owner()
        if owner is None or owner.doing == "nothing":
            return None
        return owner.changed(self.stage, output)

    def __reduce__(self) -> tuple[type[Mover], tuple[None, str]]:
        return Mover, (None, self.stage)
