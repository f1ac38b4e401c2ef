"""GMED: gradient-based memory editing (Jin et al., 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.random import fork_rng

from ..errors import check_numbers
from ..functional.losses import cross_entropy
from ..memory import Column
from ..types import Batch, Terms
from .base import Method

if TYPE_CHECKING:
    from ..training.step import Step

WHITE = 255.0


class GMED(Method):
    """L = CE(f(x), y) + CE(f(x̂'), y'),  x̂' drawn from a reservoir memory and edited first:

        x̂' = x' + α γ^k ∇_x' [ℓ(x', y'; θ⁺) − ℓ(x', y'; θ) − β ℓ(x', y'; θ)]      (Eq. 3)

    ℓ: cross-entropy. θ⁺ = θ − lr · ∇_θ CE(f(x), y): the weights after one more step on the stream.
    k: how often the sample has been edited before. The memory stores the edited sample.

    Args:
        alpha: size of an edit, for pixels in 0…1.
        beta: weight of the present loss, which an edit should not raise.
        gamma: factor from one edit of a sample to the next.
    """

    rehearsal = True
    task_free = True
    paper = (
        "Jin et al., Gradient-based Editing of Memory Examples for Online Task-free "
        "Continual Learning"
    )
    year = 2021
    heads = ("all", "seen")  # its edits score the rows without their task

    def __init__(self, alpha: float = 0.1, beta: float = 0.01, gamma: float = 1.0) -> None:
        super().__init__()
        check_numbers(alpha=alpha, beta=beta, at_least=0)
        check_numbers(gamma=gamma, at_least=0, at_most=1)
        self.alpha, self.beta, self.gamma = alpha, beta, gamma

    def columns(self, classes: int) -> Mapping[str, Column]:
        # Pixels as float: rounding to whole numbers would lose the edits.
        return {"x": Column(None), "edits": Column((), torch.int64)}

    def losses(self, batch: Batch, step: Step) -> Terms:
        stream = cross_entropy(step.net(batch), batch.y)
        terms = {"stream": stream}
        if replay := step.draw():
            edited = self.edited(replay, stream, step)
            terms["stream"] = step.settle(stream)
            terms["replay"] = cross_entropy(step.net(replay.replace(raw=edited)), replay.y)
            edits = replay.columns["edits"] + 1
            step.after(step.memory.update, of=replay, slots=replay.slot, x=edited, edits=edits)
        step.store(batch)
        return terms

    def edited(self, replay: Batch, stream: Tensor, step: Step) -> Tensor:
        """The replayed pixels after an edit: a step that raises Eq. 3's objective."""
        gradient = step.gradient(stream)
        weights = {n: p.detach() for n, p in step.network.named_parameters() if n in gradient}
        ahead = {name: weight - step.lr * gradient[name] for name, weight in weights.items()}
        pixels = replay.raw.clone().requires_grad_()
        x = replay.view(pixels)
        with fork_rng([x.device] if x.is_cuda else []):  # the same dropout in both passes
            now = cross_entropy(step.probe(x), replay.y)
        then = cross_entropy(step.probe(x, ahead), replay.y)
        (uphill,) = torch.autograd.grad((then - (1 + self.beta) * now).sum(), pixels)
        stride = self.alpha * self.gamma ** replay.columns["edits"]
        # A step α ∂/∂p of pixels p in 0…1 is one of 255² α ∂/∂(255 p) in 0…255.
        return pixels.detach() + WHITE**2 * stride.reshape(-1, 1, 1, 1) * uphill
