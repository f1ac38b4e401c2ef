"""sSGD: the stable training regime (Mirzadeh et al., 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

import torch.nn.functional as F
from torch import Tensor, nn

from ..errors import check_numbers, unknown
from ..types import Recipe, Task
from .base import Regularizer
from .stages import default_stages, last_linear, tapped_module, unwrap


class SSGD(Regularizer):
    r"""Biases training towards wide minima. It adds no loss term, it changes the training:

        lr_t = lr · decay^t  for task t = 0, 1, …;   dropout;   small batches

    With decay 1, dropout 0 and batch_size None it changes nothing.

    Args:
        decay: of the learning rate, from task to task.
        dropout: probability with which a number is dropped in training.
        where: "features" drops from the input of the last linear layer, "stages" from the map of
            every stage (in this package's backbones before the last activation, which for ReLU
            makes no difference).
        batch_size: of the stream; None leaves the recipe's. Replay draws keep their own size.
    """

    task_by_task = True
    off: ClassVar[Mapping[str, Any]] = {"decay": 1.0, "dropout": 0.0}
    paper = "Mirzadeh et al."
    year = 2020

    def __init__(
        self,
        decay: float = 0.9,
        dropout: float = 0.1,
        where: Literal["features", "stages"] = "features",
        batch_size: int | None = None,
    ) -> None:
        super().__init__()
        check_numbers(decay=decay, above=0, at_most=1)
        check_numbers(dropout=dropout, at_least=0, below=1)
        if where not in (allowed := ("features", "stages")):
            raise unknown("where", str(where), allowed)
        # BatchNorm needs two rows
        check_numbers(batch_size=batch_size, at_least=2, at_most=10**9, whole=True)
        self.decay, self.dropout = decay, dropout
        self.where, self.batch_size = where, batch_size
        self._handles: list[Any] = []

    def attach(self, network: nn.Module, example: Tensor | None = None) -> None:
        """Hook dropout into the network."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        if self.dropout == 0:
            return
        inner, drop = unwrap(network), Drop(self.dropout)
        if self.where == "features":
            if (classifier := last_linear(inner)) is None:
                raise ValueError(
                    'Found no linear layer to drop the features of: choose where="stages".'
                )
            self._handles = [classifier.register_forward_pre_hook(drop)]
        elif not (stages := default_stages(inner, example)):
            raise ValueError('Found no stages in this network: choose where="features".')
        else:  # before other hooks, so that they see the dropped map, in any order of attaching
            self._handles = [
                tapped_module(inner, stage).register_forward_hook(drop, prepend=True)
                for stage in stages
            ]

    def adapt(self, recipe: Recipe, task: Task) -> Recipe:
        batch_size = recipe.batch_size if self.batch_size is None else self.batch_size
        return replace(recipe, lr=recipe.lr * self.decay**task.index, batch_size=batch_size)

    def extra_repr(self) -> str:
        return (
            f"decay={self.decay}, dropout={self.dropout}, where={self.where!r}, "
            f"batch_size={self.batch_size}"
        )


class Drop:
    """A hook that drops from a module's output (as a pre-hook: from its input) in train mode.

    A copied or pickled hook does nothing: a copy of the network trains without dropout.
    """

    def __init__(self, probability: float) -> None:
        self.probability = probability

    def __call__(
        self, module: nn.Module, args: tuple[Tensor, ...], output: Tensor | None = None
    ) -> Tensor:
        return F.dropout(args[0] if output is None else output, self.probability, module.training)

    def __reduce__(self) -> tuple[type[Drop], tuple[float]]:
        return Drop, (0.0,)
