"""The only place that calls backward() and step()."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ..regularizers.base import Regularizer
from ..types import Recipe, State, Terms


class Learner:
    """Sums the terms, back-propagates, steps. The optimizer is made anew for every fit."""

    def __init__(self, network: nn.Module, method: nn.Module, regularizers: Sequence[Regularizer]):
        self._modules, self._regularizers = (network, method), regularizers
        self._optimizer: torch.optim.Optimizer | None = None
        self._recipe: Recipe | None = None

    def start(self, recipe: Recipe) -> None:
        parameters = [p for module in self._modules for p in module.parameters() if p.requires_grad]
        groups = [group for r in self._regularizers for group in r.param_groups()]
        self._recipe = recipe
        self._optimizer = torch.optim.SGD(
            [{"params": parameters}, *groups],
            lr=recipe.lr,
            momentum=recipe.momentum,
            weight_decay=recipe.weight_decay,
        )

    def set_epoch(self, epoch: float) -> None:
        """The learning rate of a (possibly fractional) epoch: a function of it, not a state."""
        assert self._optimizer is not None
        assert self._recipe is not None
        for group in self._optimizer.param_groups:
            group["lr"] = self._recipe.lr * self._recipe.schedule(epoch)

    def step(self, terms: Terms) -> Terms:
        """Take one step down the sum of the terms; returns their values, detached."""
        assert self._optimizer is not None
        values = {name: term if term.dim() == 0 else _mean(term) for name, term in terms.items()}
        if values:
            self._optimizer.zero_grad(set_to_none=True)
            torch.stack(list(values.values())).sum().backward()
            self._optimizer.step()
        return {name: value.detach() for name, value in values.items()}

    def state_dict(self) -> State:
        return {} if self._optimizer is None else self._optimizer.state_dict()

    def load_state_dict(self, state: State) -> None:
        if state and self._optimizer is not None:
            self._optimizer.load_state_dict(state)


def _mean(term: Tensor) -> Tensor:
    return term.mean() if len(term) else term.sum()
