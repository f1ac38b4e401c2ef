"""Optimisers by name, and the parameter groups that they train.

Each function below checks the options of one optimiser and returns what makes it; learning rate,
momentum and weight decay come from the recipe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from ..errors import UserError, check_numbers
from ..registry import Entry, Registry
from ..regularizers.base import Regularizer
from ..types import MakeOptimizer

BETAS = [0.9, 0.999]


def sgd(nesterov: bool = False, dampening: float = 0.0) -> MakeOptimizer:
    check_numbers(dampening=dampening, at_least=0, at_most=1)
    return partial(torch.optim.SGD, nesterov=nesterov, dampening=dampening)


def adam(betas: list[float] = BETAS, eps: float = 1e-8, amsgrad: bool = False) -> MakeOptimizer:
    _check_moments(betas, eps)
    return partial(torch.optim.Adam, betas=(betas[0], betas[1]), eps=eps, amsgrad=amsgrad)


def adamw(betas: list[float] = BETAS, eps: float = 1e-8, amsgrad: bool = False) -> MakeOptimizer:
    _check_moments(betas, eps)
    return partial(torch.optim.AdamW, betas=(betas[0], betas[1]), eps=eps, amsgrad=amsgrad)


def _check_moments(betas: Sequence[float], eps: float) -> None:
    if len(betas) != 2:
        raise UserError(f"Expected two betas like {BETAS}, but got {list(betas)}.")
    for beta in betas:
        check_numbers(betas=beta, at_least=0, below=1)
    check_numbers(eps=eps, at_least=0, at_most=1)


OPTIMIZERS = Registry(
    "optimizer",
    {
        "sgd": Entry(sgd, "stochastic gradient descent, with momentum or without"),
        "adam": Entry(adam, "Adam; weight decay is added to the gradient"),
        "adamw": Entry(adamw, "Adam with weight decay apart from the gradient"),
    },
)


def make_optimizer(name: str, options: Mapping[str, Any], momentum: float) -> MakeOptimizer:
    """The optimiser of a configuration, refused if momentum makes no sense with it."""
    make = OPTIMIZERS.load(name)
    if momentum and name != "sgd":
        raise UserError(
            f"{name} takes no momentum, its betas average the gradient: set training.momentum=0, "
            f"not {momentum}"
        )
    if options.get("nesterov") and (not momentum or options.get("dampening")):
        raise UserError("nesterov needs training.momentum above 0, and dampening 0")
    made: MakeOptimizer = make(**options)
    return made


def make_clip(norm: float | None, value: float | None) -> Callable[[list[torch.Tensor]], object]:
    """Clip the norm of the whole gradient, g ← g · min(1, norm / ‖g‖), or each of its numbers."""
    if norm is not None:
        return partial(torch.nn.utils.clip_grad_norm_, max_norm=norm)
    assert value is not None
    return partial(torch.nn.utils.clip_grad_value_, clip_value=value)


def regularizer_groups(regularizers: Sequence[Regularizer]) -> list[dict[str, Any]]:
    """The parameter groups of all regularisers, checked."""
    groups = []
    for regularizer in regularizers:
        owner = type(regularizer).__name__
        for group in regularizer.param_groups():
            if not group.get("params"):
                raise UserError(f"{owner} has a parameter group without parameters")
            if "lr" in group:
                raise UserError(
                    f"{owner} has a parameter group with an lr: give lr_factor, which multiplies "
                    "the learning rate of the network"
                )
            groups.append(dict(group))  # torch adds to it
    return groups
