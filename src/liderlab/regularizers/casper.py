"""CaSpeR: continual spectral regularizer (Frascaroli et al., 2023)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor, nn

from ..errors import UserError, check_numbers, unknown
from ..functional.neighbor_graph import neighbor_laplacian, spectral_gap
from ..functional.sampling import draw_balanced
from ..types import Recipe, Terms
from .base import Regularizer
from .feature_recorder import FEATURES, FeatureRecorder

if TYPE_CHECKING:
    from ..training.step import Step

GAPS = {"paper": 0, "released": 1}
"""How many eigenvalues beyond one for each class are pushed down."""


class CaSpeR(Regularizer):
    r"""Lets replayed features fall apart into as many groups as they have classes.

        L = ρ · ( Σ_{j ≤ g} λ_j − λ_{g+1} )

    λ_1 ≤ λ_2 ≤ …: eigenvalues of the normalised Laplacian of the graph that joins every replayed
    row to its k nearest in the space of features (the last layer's input). The graph has g separate
    parts exactly if the first g are zero. g: the classes among the rows, which are drawn from the
    memory in equal shares.

    Args:
        weight: ρ.
        neighbors: k.
        classes: drawn in a step, at most; None draws as many as a task has.
        gap: "paper", or "released": the authors' sum runs one eigenvalue further, g + 1 for g.
    """

    needs_memory = True
    on_features = True
    paper = "Frascaroli et al."
    year = 2023

    def __init__(
        self,
        weight: float = 0.01,
        neighbors: int = 10,
        classes: int | None = None,
        gap: Literal["paper", "released"] = "paper",
    ) -> None:
        super().__init__()
        check_numbers(weight=weight, at_least=0)
        check_numbers(neighbors=neighbors, classes=classes, at_least=1, whole=True)
        if gap not in GAPS:
            raise unknown("gap", str(gap), GAPS)
        self.weight, self.neighbors, self.classes, self.gap = weight, neighbors, classes, gap
        self._recorder = FeatureRecorder()

    def attach(self, network: nn.Module, example: Tensor | None = None) -> None:
        if self.weight > 0:
            self._recorder.attach(network, [FEATURES])

    def check(self, recipe: Recipe, memory: int) -> None:
        rows = min(recipe.replay_size, memory)
        if self.weight > 0 and rows <= self.neighbors:
            raise UserError(
                f"casper joins every replayed row to its {self.neighbors} nearest and needs more "
                f"rows than that, not {rows}: raise --set training.replay_size and --buffer, or "
                "lower --set regularizers.casper.neighbors"
            )

    def losses(self, step: Step) -> Terms:
        """No term in the first task, nor where the drawn classes have too few rows."""
        if self.weight == 0 or step.task.index == 0:
            return {}
        generator, memory = step.generator("casper"), step.memory
        y = memory.read("y", torch.arange(len(memory)))
        classes = self.classes or len(step.task.classes)
        slots = draw_balanced(y, classes, step.fit.recipe.replay_size, generator)
        parts = len(y[slots].unique()) + GAPS[self.gap]
        if len(slots) <= max(self.neighbors, parts):
            return {}
        batch = step.take(memory, slots, generator)
        with self._recorder.recording() as passes:
            step.probe(batch.x)
        features = passes[0][FEATURES].flatten(1)[: len(batch)]
        features = step.team.join(features.to(torch.promote_types(features.dtype, torch.float32)))
        laplacian = neighbor_laplacian(features, self.neighbors)
        return {"casper": self.weight * spectral_gap(laplacian, parts)}

    def extra_repr(self) -> str:
        return f"weight={self.weight}, neighbors={self.neighbors}, gap={self.gap!r}"
