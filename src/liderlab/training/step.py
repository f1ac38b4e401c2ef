"""The view of a run that methods and regularisers are given in every step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor

from ..backbones.network import Network
from ..distributed.batchnorm import frozen_statistics, idle
from ..distributed.team import Team
from ..functional.sampling import draw_without_replacement
from ..memory import Memory
from ..regularizers.base import Regularizer
from ..types import Batch, Fit, Origin, Source, Stream, Task, View, seen_classes
from .deferred import Deferred
from .heads import Heads
from .precision import Passes
from .randomness import Generators


class Step:
    """A method's and a regulariser's view of one step of the run.

    task, fit: what is being trained. epoch: within the fit. lr: the learning rate of this step.
    seen: all classes that have appeared, the current task's included, are below this number; past:
    the same before the current task. network: read its weights here, and let rows pass through
    `net` or `probe`. memory: read it here, change it through `store` or `after`. team: the ranks
    that share the run. Each has its own part of every batch; a method that decides by what `gather`
    or `present` return works on any number of them. task_free: whether the stream hides where its
    tasks begin and end; `task`, `seen` and `past` are then for evaluation alone.
    """

    def __init__(
        self,
        *,
        task: Task,
        fit: Fit,
        epoch: float,
        stream: Stream,
        network: Network,
        memory: Memory,
        regularizers: Sequence[Regularizer],
        generators: Generators,
        device: torch.device,
        deferred: Deferred | None = None,
        passes: Passes | None = None,
        offer: str = "every-epoch",
        team: Team | None = None,
        repeated: bool = False,
        heads: Heads | None = None,
        appeared: Tensor | None = None,
        progress: float | None = None,
        settle: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        self._settle, self._heard = settle, False
        self.task_free, self._appeared = appeared is not None, appeared
        self._repeated = repeated  # the step's terms are evaluated again, at other weights
        self.task, self.fit, self.epoch = task, fit, int(epoch)
        self.team = team or Team()
        self.lr = fit.recipe.lr * fit.recipe.schedule(epoch if progress is None else progress)
        self.network, self.memory = network, memory
        self._stream, self._regularizers = stream, regularizers
        self._generators, self._device, self._offer = generators, device, offer
        self._passes = passes or Passes(network)
        self._deferred = deferred or Deferred(network, team)
        self._heads = heads  # None: all classes compete

    @cached_property
    def past(self) -> int:
        return 1 + max(seen_classes(self._stream.tasks[: self.task.index]), default=-1)

    @cached_property
    def seen(self) -> int:
        return 1 + max(seen_classes(self._stream.tasks[: self.task.index + 1]), default=-1)

    def net(self, batch: Batch, *, update_stats: bool = True) -> Tensor:
        """Logits of these rows; regularisers may watch the pass. Classes that the run's heads close
        to a row (`training.heads`) have the lowest score.

        update_stats: False leaves BatchNorm's running statistics as they are.
        """
        for regularizer in self._regularizers:
            regularizer.before_pass(batch, self)
        with ExitStack() as around:
            if not update_stats or self._repeated:
                around.enter_context(frozen_statistics(self.network))
            elif self.team.size > 1:
                own = len(batch) / (1 if batch.total is not None else self.team.size)
                self._deferred.rows += own
                self._deferred.rows_in_all += batch.rows_in_all
            for regularizer in self._regularizers:
                hearing = regularizer.hear(batch, self)
                self._heard = self._heard or not isinstance(hearing, nullcontext)
                around.enter_context(hearing)
            asked = (batch.task,) if getattr(self.network, "asks_task", False) else ()
            logits = self._pass(self._passes, batch.x, *asked)
        return logits if self._heads is None else self._heads(logits, batch, self.task)

    def settle(self, term: Tensor) -> Tensor:
        """Back-propagate this term at once, so that the maps of its pass do not wait for the other
        terms: a step then holds one pass less. Only for a term whose pass no later term uses.
        Returns what stands for the term. Nothing happens if a regulariser hears the pass, which may
        need it, or if several ranks share the step.
        """
        if self._settle is None or self._heard or self._repeated:
            return term
        return self._settle(term)

    def _pass(self, forward: Callable[..., Tensor], x: Tensor, *asked: Tensor) -> Tensor:
        """A rank without rows lets two blank ones pass, which do not count: so it exchanges the
        messages that the other ranks expect, in the backward pass too."""
        if len(x) or self.team.size == 1:
            self.count(len(x))
            return forward(x, *asked)
        with idle(self.network):
            tasks = [task.new_zeros(2) for task in asked]
            return forward(x.new_zeros(2, *x.shape[1:]) + x.sum(), *tasks)[:0]

    def probe(self, x: Tensor, params: Mapping[str, Tensor] | None = None) -> Tensor:
        """Logits without a trace: no regulariser watches, BatchNorm's running statistics stay.

        params: used in place of the network's own, by name.
        """
        with frozen_statistics(self.network):
            return self._pass(partial(self._passes.with_parameters, params or {}), x)

    def count(self, images: int) -> None:
        """Count passes of these images through another network, such as a copy of an earlier one;
        `net` and `probe` count their own."""
        self._passes.rows += images

    def gradient(self, rows: Tensor) -> dict[str, Tensor]:
        """d(mean of all ranks' rows)/dθ by parameter name. `.grad` is not touched, and the graph
        behind rows can be used again."""
        params = {n: p for n, p in self.network.named_parameters() if p.requires_grad}
        alone = self.team.size == 1
        gradients = torch.autograd.grad(
            rows.mean() if alone else rows.sum(),
            list(params.values()),
            retain_graph=True,
            materialize_grads=True,
        )
        if not alone:
            count = rows.new_tensor(len(rows))
            self.team.total(*gradients, count)
            gradients = tuple(gradient / count for gradient in gradients)
        return dict(zip(params, gradients, strict=True))

    def draw(self, n: int | None = None, generator: torch.Generator | None = None) -> Batch:
        """Draw n different rows of the memory (all, if it has fewer), augmented: a replay batch.

        n: the recipe's replay size by default. Successive draws are independent. The batch is empty
        if the memory has fewer than two rows: BatchNorm cannot normalise a single one.
        """
        generator = generator or self.generator("replay")
        n = self.fit.recipe.replay_size if n is None else n
        slots = self.memory.draw(n, generator)
        return self.take(self.memory, slots if len(slots) > 1 else slots[:0], generator)

    def take(self, data: Source, index: Tensor, generator: torch.Generator | None) -> Batch:
        """This rank's part of these rows as a batch; without a generator, not augmented.

        All ranks draw the same numbers from the generator: each row is augmented as if one rank had
        all of them.
        """
        if self.team.size == 1:
            return self.batch(data.rows(index), generator)
        part = self.team.share(len(index))
        rows = data.rows(index[part])
        view = self._stream.transform.sample(len(index), generator, part)
        mixed = "slot" in rows and data is not self.memory  # other ranks' rows may differ
        return self._batch(rows, view, "both" if mixed else _origin(rows), len(index))

    def part(self, batch: Batch) -> slice:
        """This rank's rows within the whole batch, as `gather` returns it."""
        return slice(0, len(batch)) if batch.total is None else self.team.share(batch.total)

    def gather(self, batch: Batch, **rows: Tensor) -> dict[str, Tensor]:
        """These columns for the whole batch: the rows of all ranks, in order. Columns from other
        ranks carry no gradient."""
        return rows if batch.total is None else self.team.gather(rows, batch.total)

    @property
    def unseen(self) -> Tensor:
        """(classes,) mask of the classes that no task so far shows; if the stream is task-free, of
        those that no batch before this one has shown."""
        if self._appeared is not None:
            return ~self._appeared
        mask = torch.ones(len(self._stream.names), dtype=torch.bool)
        mask[seen_classes(self._stream.tasks[: self.task.index + 1])] = False
        return mask.to(self._device, non_blocking=True)

    def present(self, batch: Batch, classes: int) -> Tensor:
        """(classes,) mask of the classes in the batch, on any rank."""
        count = torch.zeros(classes, dtype=torch.int32, device=batch.y.device)
        count[batch.y] = 1
        self.team.total(count)
        return count > 0

    def store(self, batch: Batch, **columns: Tensor) -> None:
        """Offer the batch to the memory once the step is taken, with these columns beside it."""
        if self._offer == "never" or (self._offer == "once" and self.epoch > 0):
            return
        rows = {"x": batch.raw, "y": batch.y, "task": batch.task, **columns}
        self.after(partial(self.memory.offer, self.generator("memory")), of=batch, **rows)

    def after(self, action: Callable[..., Any], of: Batch | None = None, **rows: Tensor) -> None:
        """Call `action(**rows)` on every rank once the optimizer has taken the step; not at all if
        the step is left out.

        of: the batch whose rows these are; the action then gets the rows of all ranks.
        """
        if of is None:
            self._deferred.actions.append(partial(action, **rows))
        else:
            self._deferred.actions.append(lambda: action(**self.gather(of, **rows)))

    @property
    def task_of(self) -> Tensor:
        """(classes,) the first task of every class."""
        first = {c: task.index for task in reversed(self._stream.tasks) for c in task.classes}
        later = len(self._stream.tasks)  # of classes to come
        tasks = [first.get(c, later) for c in range(len(self._stream.names))]
        return torch.tensor(tasks).to(self._device, non_blocking=True)

    def generator(self, name: str) -> torch.Generator:
        """The run's random generator of this name; its state is part of the checkpoint."""
        return self._generators(name)

    def batch(self, rows: dict[str, Tensor], generator: torch.Generator | None) -> Batch:
        """Stored rows as a batch, the same on every rank; without a generator, not augmented."""
        view = self._stream.transform.sample(len(rows["y"]), generator)
        return self._batch(rows, view, _origin(rows))

    def _batch(
        self, rows: dict[str, Tensor], view: View, origin: Origin, total: int | None = None
    ) -> Batch:
        on_device = {n: column.to(self._device, non_blocking=True) for n, column in rows.items()}
        raw, y, task = (on_device.pop(name) for name in ("x", "y", "task"))
        slot = on_device.pop("slot") if "slot" in rows else torch.full_like(y, -1)
        return Batch(view(raw), raw, y, task, slot, view, on_device, origin, total)

    def inputs_of(
        self, data: Source, generator: torch.Generator, *, limit: int | None, augmented: bool
    ) -> Iterator[Tensor]:
        """Yield the inputs of at most `limit` random rows (None: of all)."""
        n = len(data) if limit is None else min(limit, len(data))
        index = draw_without_replacement(n, len(data), generator)
        for part in index.split(256):
            yield self.batch(data.rows(part), generator if augmented else None).x


def _origin(rows: Mapping[str, Tensor]) -> Origin:
    """Where stored rows come from; their slots are on the host."""
    if "slot" not in rows:
        return "stream"
    replayed = rows["slot"].numpy() >= 0
    return "memory" if replayed.all() else "both" if replayed.any() else "stream"
