"""oLAP: online Laplace with Kronecker-factored curvature (Ritter et al., 2018)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from ..functional.curvature import (
    Factors,
    diagonal_fisher,
    kronecker_factors,
    kronecker_layers,
    kronecker_quadratic,
    largest_eigenvalue,
    weight_matrix,
)
from ..types import Terms
from .base import Regularizer
from .consolidation import Fisher, TaskRows, check_penalty, flat, trainable, warn_if_stiff
from .stages import evaluating, unwrap

if TYPE_CHECKING:
    from ..training.step import Step


class OLAP(Regularizer):
    r"""Holds each layer near its weights after the last task, in the directions that mattered.

        L = λ/2 [ Σ_l tr(Δ_lᵀ G̃_l Δ_l Ã_l) / m  +  Σ_j F̃_j δ_j² ]

        Ã_l ← γ Ã_l + A_l,   A_l = E[a aᵀ]      m ← γ m + 1
        G̃_l ← γ G̃_l + G_l,   G_l = E[g gᵀ]      F̃ ← γ F̃ + F

    Δ_l: how far the weight matrix of layer l (its bias the last column) has moved since the last
    task. a: the layer's inputs, g: the gradients of log p(y|x) by its outputs; for convolutions
    over patches and positions (`layer_factors`). δ and F: the same for all other trained parameters
    (BatchNorm's scales and shifts), with the diagonal of the Fisher matrix. Data, p and the
    arguments are those of oEWC.

    Each factor is a decayed sum over the tasks, and their product is divided by the mass
    m = Σ γ^age: that is K-FAC on the union of all tasks. It equals the decayed sum of the tasks'
    own Kronecker products if they share A_l, or share G_l.
    """

    task_by_task = True
    paper = "Ritter et al."
    year = 2018
    mode: Tensor
    importance: Tensor
    mass: Tensor

    def __init__(
        self,
        weight: float = 0.1,
        gamma: float = 1.0,
        samples: int | None = 1024,
        fisher: Fisher = "sampled",
    ) -> None:
        super().__init__()
        check_penalty(weight, gamma)
        self.weight, self.gamma = weight, gamma
        self._rows = TaskRows("olap", samples, fisher)
        self.blocks = nn.ModuleList()
        self.register_buffer("mass", torch.zeros((), dtype=torch.float64))
        self._mass = 0.0

    def attach(self, network: nn.Module, example: Tensor | None = None) -> None:
        """Make room for the weights of the last task and the curvature around them."""
        if self.weight > 0:
            layers, others = _parts(network)
            if not layers:
                raise ValueError("Expected a network with linear layers or convolutions.")
            self.blocks = nn.ModuleList(Block(weight_matrix(layer)) for layer in layers.values())
            theta = flat(others.values()).detach()
            self.register_buffer("mode", theta)
            self.register_buffer("importance", torch.zeros_like(theta))

    def start(self, step: Step) -> None:
        if self.weight > 0 and self.mass > 0:
            steepest = max(cast(Block, block).steepest() for block in self.blocks)
            warn_if_stiff("olap", self.weight, steepest / self.mass.item(), step.fit.recipe)

    def losses(self, step: Step) -> Terms:
        if self.weight == 0 or self._mass == 0:
            return {}
        layers, others = _parts(step.network)
        moved = flat(others.values()) - self.mode
        total = (self.importance * moved.square()).sum()
        for layer, block in zip(layers.values(), self.blocks, strict=True):
            total = total + cast(Block, block).quadratic(weight_matrix(layer)) / self._mass
        return {"olap": self.weight / 2 * total}

    def end_task(self, step: Step) -> None:
        if self.weight == 0:
            return
        network, (layers, others) = unwrap(step.network), _parts(step.network)
        blocks = {name: cast(Block, block) for name, block in zip(layers, self.blocks, strict=True)}
        share = 1 / self._rows.count(step)
        for past in (self.mass, self.importance, *(f for b in blocks.values() for f in b.factors)):
            past.mul_(self.gamma)
        with evaluating(network):
            for x, y in self._rows.batches(step):
                for name, factors in kronecker_factors(network, layers, x, y, step.seen).items():
                    for past, new in zip(blocks[name].factors, factors, strict=True):
                        past.add_(new, alpha=share)
                squares = diagonal_fisher(network, others, x, y, step.seen)
                self.importance.add_(flat(squares.values()), alpha=share)
            for name, layer in layers.items():
                blocks[name].mode.copy_(weight_matrix(layer))
            self.mode.copy_(flat(others.values()))
        self.mass += 1
        self.loaded()

    def loaded(self) -> None:
        self._mass = float(self.mass)

    def extra_repr(self) -> str:
        return f"weight={self.weight}, gamma={self.gamma}, fisher={self._rows.fisher!r}"


class Block(nn.Module):
    """One layer: its weight matrix after the last task, and the decayed sums of its factors."""

    mode: Tensor
    inputs: Tensor
    outputs: Tensor

    def __init__(self, weights: Tensor) -> None:
        super().__init__()
        rows, columns = weights.shape
        self.register_buffer("mode", weights.detach().clone())
        self.register_buffer("inputs", weights.new_zeros(columns, columns))
        self.register_buffer("outputs", weights.new_zeros(rows, rows))

    @property
    def factors(self) -> Factors:
        return self.inputs, self.outputs

    def steepest(self) -> float:
        """The largest eigenvalue of G̃ ⊗ Ã."""
        return largest_eigenvalue(self.inputs) * largest_eigenvalue(self.outputs)

    def quadratic(self, weights: Tensor) -> Tensor:
        """tr(Δᵀ G̃ Δ Ã) for Δ, the weights' distance from their mode."""
        return kronecker_quadratic(weights - self.mode, *self.factors)


def _parts(network: nn.Module) -> tuple[dict[str, nn.Module], dict[str, Tensor]]:
    """The layers with Kronecker factors, and all other trained parameters."""
    layers = kronecker_layers(unwrap(network))
    covered = {id(p) for layer in layers.values() for p in layer.parameters(recurse=False)}
    others = {name: p for name, p in trainable(network).items() if id(p) not in covered}
    return layers, others
