"""The gradient and the optimizer's step: the only place that calls backward() and step().

g = ∇L(θ)                      the terms' sum, over all ranks
g ← r.perturb(g, δ ↦ ∇L(θ+δ))  of the regulariser that perturbs steps, if there is one (SAM)
g ← h.transform(g)             of the method (A-GEM's projection), then of each regulariser
g ← clip(g);  θ ← optimizer(θ, g)
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor, nn

from ..distributed.team import Team
from ..errors import UserError
from ..methods.base import Method
from ..regularizers.base import Regularizer
from ..types import Gradient, Recipe, State, Terms
from .eager_calls import eager_bookkeeping, eager_step
from .optimizers import regularizer_groups

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .step import Step

log = logging.getLogger("liderlab")


class NotFinite(ArithmeticError):
    """A loss or gradient is NaN or infinite; the network is as it was before that step."""


class Learner:
    """Sums the terms, back-propagates, steps. The optimizer is made anew for every fit.

    scale: whether to scale the loss, for gradients in float16. look_every: steps between two checks
    for non-finite gradients, each of which waits for the device. team: the ranks whose gradients
    are added up.
    """

    def __init__(
        self,
        network: nn.Module,
        method: nn.Module,
        regularizers: Sequence[Regularizer],
        on_nonfinite: Literal["stop", "skip"] = "stop",
        *,
        scale: bool = False,
        look_every: int = 1,
        team: Team | None = None,
    ) -> None:
        self._modules, self._regularizers = (network, method), regularizers
        self._on_nonfinite = on_nonfinite
        self.skipped = 0  # steps left out because they were not finite
        self.left_out = False  # whether the last step was
        self._scale, self._look_every = scale, look_every
        self._team = team or Team()
        self._unseen: list[Tensor] = []  # gradient norms not checked yet
        self._settled = False  # whether a term of the step under way has left its gradient
        self._optimizer: torch.optim.Optimizer | None = None
        self._recipe: Recipe | None = None
        regularizer_groups(regularizers)  # refuses a wrong group before the run begins
        self._perturber = _only_one([r for r in regularizers if r.perturbs])
        self._transforms = [t for h in (method, *regularizers) if (t := _transform(h))]
        self.repeats = self._perturber is not None  # whether steps evaluate their terms again

    def start(self, recipe: Recipe) -> None:
        parameters = [p for module in self._modules for p in module.parameters() if p.requires_grad]
        named = self._modules[0].named_parameters()
        self._weights = {name: p for name, p in named if p.requires_grad}
        self._recipe, device = recipe, next(self._modules[0].parameters()).device
        self._scaler = torch.amp.GradScaler(device.type, enabled=self._scale)
        momentum = {"momentum": recipe.momentum} if recipe.momentum else {}  # Adam knows none
        groups = regularizer_groups(self._regularizers)
        with eager_bookkeeping():
            self._optimizer = recipe.optimizer(
                [{"params": parameters}, *groups],
                lr=recipe.lr,
                weight_decay=recipe.weight_decay,
                **momentum,
            )
        if any("momentum" in g for g in groups) and "momentum" not in self._optimizer.defaults:
            kind = type(self._optimizer).__name__
            raise UserError(f"{kind} has no momentum, but a regularizer's parameter group sets one")

    def set_epoch(self, epoch: float) -> None:
        """Set the learning rate of a (possibly fractional) epoch."""
        assert self._optimizer is not None
        assert self._recipe is not None
        for group in self._optimizer.param_groups:
            rate = self._recipe.lr * self._recipe.schedule(epoch)
            group["lr"] = rate * group.get("lr_factor", 1.0)

    def settle(self, term: Tensor) -> Tensor:
        """Back-propagate one term of the step to come; returns its value without the graph.

        The maps of its pass are free before the next pass begins. The bits stay: autograd adds the
        gradients of later passes first, then the first pass's, and addition commutes.
        """
        if self._team.size > 1 or not term.requires_grad:
            return term  # ranks first tell each other how many rows each term has
        self._scaler.scale(_value(term)).backward()
        self._settled = True
        return term.detach()

    def step(
        self, terms: Terms, again: Callable[[], Terms] | None = None, view: Step | None = None
    ) -> Terms:
        """Take one step down the sum of the terms; returns their values, detached.

        again: evaluates the terms at the weights of that moment. view: the step as methods and
        regularisers see it. Only those that perturb steps or transform gradients need the two.
        """
        self.left_out = False
        values = self._values(terms)
        if not values:
            return values
        try:
            self._back_propagate(values)
            values = {name: value.detach() for name, value in values.items()}
            self._team.total(*self._gradients(), *values.values())
            if self._perturber or self._transforms:
                assert again is not None
                assert view is not None
                self._change_gradient(again, view)
            self._descend(values)
        finally:
            self._forget_gradients()
        return values

    def _back_propagate(self, values: Terms) -> None:
        """Add the gradient of the terms that are not settled yet."""
        loss = torch.stack(list(values.values())).sum()
        if loss.requires_grad or not self._settled:
            self._scaler.scale(loss).backward()

    def _descend(self, values: Terms) -> None:
        """Let the optimizer step, unless something is not finite."""
        assert self._optimizer is not None
        self._scaler.unscale_(self._optimizer)
        wrong = self._nonfinite(values)
        if wrong is None or (wrong == "gradient" and self._scaler.get_scale() > 1):
            self._clip()  # after the check: clipping by value would hide an infinite gradient
            self._update()
        elif self._on_nonfinite == "stop":
            raise NotFinite(f"the {wrong} is not finite")
        else:
            self._scaler.update()
            self.left_out = True
            self.skipped += 1
            if self.skipped.bit_count() == 1:  # 1, 2, 4, …: a warning each would bury the rest
                log.warning("skipped a step: the %s is not finite (%d so far)", wrong, self.skipped)

    def _values(self, terms: Terms) -> Terms:
        """This rank's part of each term's value; the ranks' parts add up to the mean over the rows
        of all. DDP could not do this: it does not know how many rows the other ranks have."""
        if self._team.size == 1:
            return {name: _value(term) for name, term in terms.items()}
        device = next(self._modules[0].parameters()).device
        sizes = [len(term) if term.dim() else 0 for term in terms.values()]
        rows = torch.tensor(sizes, dtype=torch.int64).to(device, non_blocking=True)
        self._team.total(rows)
        return {
            name: term.sum() / n.clamp_min(1) if term.dim() else term / self._team.size
            for (name, term), n in zip(terms.items(), rows, strict=True)
        }

    def _change_gradient(self, again: Callable[[], Terms], view: Step) -> None:
        """Perturb the step, then transform its gradient; both see it without the loss scale."""
        scale = self._scaler.get_scale()
        gradients = [
            torch.zeros_like(p) if p.grad is None else p.grad for p in self._weights.values()
        ]
        first = dict(zip(self._weights, _times(gradients, 1 / scale), strict=True))
        gradient = first
        if self._perturber:
            gradient = self._perturber.perturb(first, partial(self._gradient_at, again, scale))
        for transform in self._transforms:
            gradient = transform(gradient, view)
        changed = {n: p for n, p in self._weights.items() if gradient[n] is not first[n]}
        scaled = _times([gradient[name] for name in changed], scale)
        for parameter, value in zip(changed.values(), scaled, strict=True):
            parameter.grad = value

    def _gradient_at(self, again: Callable[[], Terms], scale: float, offset: Gradient) -> Gradient:
        """∇L(θ + offset), summed over the ranks; .grad is not touched."""
        with self._moved(offset):
            values = self._values(again())
            loss = self._scaler.scale(torch.stack(list(values.values())).sum())
            weights = list(self._weights.values())
            found = torch.autograd.grad(loss, weights, materialize_grads=True)
        self._team.total(*found)
        return dict(zip(self._weights, _times(found, 1 / scale), strict=True))

    @contextmanager
    def _moved(self, offset: Gradient) -> Iterator[None]:
        """The network at θ + offset, then back at θ to the bit."""
        weights = [parameter.data for parameter in self._weights.values()]
        kept = [weight.clone() for weight in weights]
        try:
            torch._foreach_add_([self._weights[name].data for name in offset], [*offset.values()])
            yield
        finally:
            torch._foreach_copy_(weights, kept)

    def _update(self) -> None:
        assert self._optimizer is not None
        if self._scale:
            self._scaler.step(self._optimizer)  # leaves out a step that it has overscaled
            self._scaler.update()
        else:
            eager_step(self._optimizer)

    def _forget_gradients(self) -> None:
        """Now, not before the next backward pass: they need not lie beside the next step's maps."""
        assert self._optimizer is not None
        self._settled = False
        for group in self._optimizer.param_groups:
            for parameter in group["params"]:
                parameter.grad = None

    def _clip(self) -> None:
        assert self._recipe is not None
        assert self._optimizer is not None
        if self._recipe.clip is not None:
            self._recipe.clip([p for g in self._optimizer.param_groups for p in g["params"]])

    def _gradients(self) -> list[Tensor]:
        assert self._optimizer is not None
        groups = self._optimizer.param_groups
        return [p.grad for group in groups for p in group["params"] if p.grad is not None]

    def _nonfinite(self, values: Terms) -> str | None:
        """The loss term or gradient that is NaN or infinite, in words; None if all is finite."""
        if gradients := self._gradients():
            self._unseen.append(torch.stack(torch._foreach_norm(gradients)).sum())
        if len(self._unseen) < self._look_every or self._all_finite():
            return None
        wrong = [name for name, value in values.items() if not bool(value.isfinite())]
        return f"loss term {wrong[0]!r}" if wrong else "gradient"

    def _all_finite(self) -> bool:
        """Check the steps since the last check; waits for the device."""
        norms, self._unseen = self._unseen, []
        return not norms or bool(torch.stack(norms).isfinite().all())

    def check(self) -> None:
        """Raise if an unchecked step was not finite, unless the scaler has left it out already."""
        if not self._all_finite() and self._scaler.get_scale() <= 1:
            raise NotFinite("the gradient is not finite")

    def state_dict(self) -> State:
        if self._optimizer is None:
            return {}
        scaler = {"scaler": self._scaler.state_dict()} if self._scale else {}
        with eager_bookkeeping():
            return self._optimizer.state_dict() | scaler

    def load_state_dict(self, state: State, *, groups: bool = True) -> None:
        """groups: also take the state's learning rate, decay and momentum, not the recipe's."""
        if state and self._optimizer is not None:
            if not groups:
                state = state | {"param_groups": self.state_dict()["param_groups"]}
            with eager_bookkeeping():
                self._optimizer.load_state_dict(deepcopy(state))  # torch would share the momentum
            self._scaler.load_state_dict(state.get("scaler", {}))


def _only_one(perturbing: list[Regularizer]) -> Regularizer | None:
    if len(perturbing) > 1:
        names = " and ".join(type(regularizer).__name__ for regularizer in perturbing)
        raise UserError(f"{names} both perturb the weights within a step: choose one of them")
    return perturbing[0] if perturbing else None


def _transform(hook: nn.Module) -> Callable[[Gradient, Step], Gradient] | None:
    """The hook's own way to change gradients, None if it has only the base class's."""
    if not isinstance(hook, Method | Regularizer):
        return None
    inherited = type(hook).transform in (Method.transform, Regularizer.transform)
    return None if inherited else hook.transform


def _times(tensors: Sequence[Tensor], factor: float) -> Sequence[Tensor]:
    return tensors if factor == 1 else torch._foreach_mul(list(tensors), factor)


def _value(term: Tensor) -> Tensor:
    """Of a term per row, the mean."""
    if term.dim() == 0:
        return term
    return term.mean() if len(term) else term.sum()
