"""X-DER with regular polytope classifier: eXtended DER (Boschini et al., 2022)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from ..errors import check_numbers
from ..functional.losses import (
    cross_entropy,
    head_margin,
    implant_logits,
    logit_distance,
    simplex_vertices,
)
from ..functional.sampling import keep_first
from ..memory import Column
from ..types import Batch, Terms
from .base import Method

if TYPE_CHECKING:
    from ..training.step import Step


class XDER(Method):
    """L = CE(f_now(x), y) + α · MSE(f(x'), z') + β · CE(f_past(x''), y'') + η · L_future

        L_future = mean of h > 0,   h = m + max f_future(x) − max f_own(x),  over x, x' and x''

    f_now, f_past, f_future: the logits of the current task's classes, of earlier and of later
    ones; f_own: of the row's own task. x', x'': two independent draws from the memory, passed
    without updating BatchNorm's statistics; rows drawn twice count once in L_future, which is off
    in the last task. f = (the network's output without its last unit) × (a fixed regular simplex).

    z': the logits at the end of the sample's task, kept up to date: a later network's logits of
    newer classes are implanted, scaled so that they do not beat the true class (`implant_logits`).
    That happens to all samples at the end of each task, and within a task to the rows just drawn,
    with probability 1/(times drawn in this task).

    Args:
        alpha, beta: weights of the two replay terms.
        gamma: largest implanted logit, as a share of the true class's.
        eta, margin: η and m of the constraint on future classes.
    """

    rehearsal = True
    policy = "class-balanced"
    new_classes = True
    paper = "Boschini et al., Class-Incremental Continual Learning into the eXtended DER-verse"
    year = 2022
    heads = ("all",)  # it compares the scores of present and future classes

    def __init__(
        self,
        alpha: float = 0.1,
        beta: float = 0.5,
        gamma: float = 0.85,
        eta: float = 0.1,
        margin: float = 0.3,
    ) -> None:
        super().__init__()
        check_numbers(alpha=alpha, beta=beta, eta=eta, margin=margin, at_least=0)
        check_numbers(gamma=gamma, at_least=0, at_most=1)  # above 1, implants beat the true class
        self.alpha, self.beta, self.gamma = alpha, beta, gamma
        self.eta, self.margin = eta, margin

    def columns(self, classes: int) -> Mapping[str, Column]:
        return {"logits": Column((classes,)), "draws": Column((), torch.int64)}

    def readout(self, classes: int) -> nn.Module:
        return Simplex(classes)

    def losses(self, batch: Batch, step: Step) -> Terms:
        past, seen = step.past, step.seen
        logits = step.net(batch)
        terms = {"stream": cross_entropy(logits[:, past:seen], batch.y - past)}
        task = batch.task
        if (first := step.draw()) and (second := step.draw()):
            one, two = (step.net(replay, update_stats=False) for replay in (first, second))
            terms["logits"] = self.alpha * logit_distance(one, first.columns["logits"])
            terms["replay"] = self.beta * cross_entropy(two[:, :past], second.y)
            drawn = step.gather(first, one=first.slot, two=second.slot)
            slots = torch.cat([drawn["one"], drawn["two"]])
            once = keep_first(slots)
            of_one, of_two = once.split([len(drawn["one"]), len(drawn["two"])])
            mine = torch.cat([of_one[step.part(first)], of_two[step.part(second)]])
            logits = torch.cat([logits, torch.cat([one, two])[mine]])
            task = torch.cat([task, torch.cat([first.task, second.task])[mine]])

            def refresh(one: Tensor, two: Tensor) -> None:
                self._refresh_drawn(slots[once], torch.cat([one, two])[once], step)

            step.after(refresh, of=first, one=one.detach(), two=two.detach())
        if self.eta > 0 and seen < logits.shape[1]:
            terms["future"] = self.eta * self._lack(logits, task, step)
        return terms

    def _lack(self, logits: Tensor, task: Tensor, step: Step) -> Tensor:
        """h of the rows that violate the constraint."""
        task_of = step.task_of
        own, future = task_of == task[:, None], task_of > step.task.index
        lack = head_margin(logits, own, future, self.margin)
        return lack[lack > 0]

    def _refresh_drawn(self, slots: Tensor, output: Tensor, step: Step) -> None:
        slots, output = slots.cpu(), output.cpu()
        draws = step.memory.read("draws", slots) + 1
        step.memory.update(slots, draws=draws)
        chance = torch.rand(len(slots), generator=step.generator("x-der"))
        chosen = chance * draws < 1
        self._implant(slots[chosen], output[chosen], step)

    def _implant(self, slots: Tensor, output: Tensor, step: Step) -> None:
        """Update stored logits of past samples: the current and later classes are newer."""
        newer = range(step.past, output.shape[1])
        stored, y = (step.memory.read(name, slots) for name in ("logits", "y"))
        logits = implant_logits(stored, output, y, newer, self.gamma)
        step.memory.update(slots, logits=logits)

    def end_task(self, step: Step) -> None:
        """Store a share of the task, and bring all stored logits up to date."""
        memory, task = step.memory, step.task
        for index in torch.arange(len(task.train)).split(1024):
            rows = task.train.rows(index)
            memory.offer(step.generator("memory"), x=rows["x"], y=rows["y"], task=rows["task"])
        order = memory.draw(len(memory), step.generator("x-der"))
        new = memory.read("task", order) == task.index
        for slots, output in self._outputs(order[new], step):
            y, older = memory.read("y", slots), range(step.past)
            logits = implant_logits(output, output, y, older, self.gamma)
            memory.update(slots, logits=logits)
        for slots, output in self._outputs(order, step):
            past = memory.read("task", slots) < task.index
            self._implant(slots[past], output[past], step)
        memory.update(order, draws=torch.zeros(len(order)))

    def _outputs(self, slots: Tensor, step: Step) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield slots and logits of augmented memory rows, in batches of equal size; none has a
        single row, which BatchNorm could not normalise."""
        n = len(slots)
        parts = min(math.ceil(n / step.fit.recipe.replay_size), max(1, n // 2))
        for part in slots.tensor_split(parts) if n else ():
            rows = part if len(part) > 1 else part.repeat(2)
            batch = step.batch(step.memory.rows(rows), step.generator("x-der"))
            with torch.no_grad():
                output = step.probe(batch.x)
            yield part, output[: len(part)].cpu()


class Simplex(nn.Module):
    """Scores (n, c): an output (n, c), without its last unit, times the vertices of a simplex."""

    vertices: Tensor

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.register_buffer("vertices", simplex_vertices(classes))

    def forward(self, output: Tensor) -> Tensor:
        return output[:, :-1] @ self.vertices
