"""What a method is handed: the door into the network, and the memory behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from ..backbones.network import Network
from ..functional.sampling import draw_without_replacement
from ..memory import Memory
from ..regularizers.base import Regularizer
from ..types import Batch, Fit, Origin, Source, Stream, Task
from .passes import Passes
from .randomness import Generators


class Step:
    """One step's view of the run.

    task, fit: what is being trained. epoch: within the fit. lr: the learning rate of this step.
    seen: how many classes have appeared, including the current task's. memory: read it here, change
    it through `after`.
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
        passes: Passes | None = None,
        offer: str = "every-epoch",
    ) -> None:
        self.task, self.fit, self.epoch = task, fit, int(epoch)
        self.lr = fit.recipe.lr * fit.recipe.schedule(epoch)
        self.seen = task.classes.stop
        self.network, self.memory = network, memory
        self._stream, self._regularizers = stream, regularizers
        self._generators, self._device, self._offer = generators, device, offer
        self._passes = passes or Passes(network)
        self._after: list[Callable[[], Any]] = []

    def net(self, batch: Batch, *, update_stats: bool = True) -> Tensor:
        """The door: logits of these rows; every regulariser may listen.

        update_stats: False leaves BatchNorm's running statistics as they are.
        """
        with ExitStack() as around:
            if not update_stats:
                around.enter_context(frozen_statistics(self.network))
            for regularizer in self._regularizers:
                around.enter_context(regularizer.hear(batch, self))
            return self._passes(batch.x)

    def probe(self, x: Tensor, params: Mapping[str, Tensor] | None = None) -> Tensor:
        """Logits that nobody hears of: BatchNorm's running statistics stay as they are.

        params: used in place of the network's own, by name.
        """
        with frozen_statistics(self.network):
            return self._passes.with_parameters(params or {}, x)

    def gradient(self, rows: Tensor) -> dict[str, Tensor]:
        """d(mean of rows)/dθ by parameter name; `.grad` and the graph behind rows stay usable."""
        params = {n: p for n, p in self.network.named_parameters() if p.requires_grad}
        gradients = torch.autograd.grad(
            rows.mean(), list(params.values()), retain_graph=True, materialize_grads=True
        )
        return dict(zip(params, gradients, strict=True))

    def draw(self, n: int | None = None, generator: torch.Generator | None = None) -> Batch:
        """Rows from memory, augmented: different slots, all of them if n is more. Empty if it is.

        Successive draws are independent. A single row is no batch (BatchNorm cannot normalise it):
        then, too, the draw is empty.
        """
        generator = generator or self.generator("replay")
        n = self.fit.recipe.replay_size if n is None else n
        slots = self.memory.draw(n, generator)
        return self.batch(self.memory.rows(slots if len(slots) > 1 else slots[:0]), generator)

    def store(self, batch: Batch, **columns: Tensor) -> None:
        """Offer the batch to the memory, once the step has been taken."""
        if self._offer == "once" and self.epoch > 0:
            return
        rows = {"x": batch.raw, "y": batch.y, "task": batch.task, **columns}
        generator = self.generator("memory")
        self.after(lambda: self.memory.offer(generator, **rows))

    def after(self, action: Callable[[], Any]) -> None:
        """Do this once the optimizer has taken the step."""
        self._after.append(action)

    def finish(self) -> None:
        """The step has been taken."""
        for action in self._after:
            action()
        self._after = []

    @property
    def task_of(self) -> Tensor:
        """(classes,) the task of every class."""
        tasks = [task.index for task in self._stream.tasks for _ in task.classes]
        return torch.tensor(tasks).to(self._device, non_blocking=True)

    def generator(self, name: str) -> torch.Generator:
        return self._generators(name)

    def batch(self, rows: dict[str, Tensor], generator: torch.Generator | None) -> Batch:
        """Stored rows made ready for the network; without a generator, not augmented."""
        view = self._stream.transform.sample(len(rows["y"]), generator)
        origin = _origin(rows)
        on_device = {n: column.to(self._device, non_blocking=True) for n, column in rows.items()}
        raw, y, task = (on_device.pop(name) for name in ("x", "y", "task"))
        slot = on_device.pop("slot") if "slot" in rows else torch.full_like(y, -1)
        return Batch(view(raw), raw, y, task, slot, view, on_device, origin)

    def plain_batches(
        self, data: Source, generator: torch.Generator, *, limit: int
    ) -> Iterator[Tensor]:
        """Inputs of at most `limit` random rows of some data, not augmented."""
        index = draw_without_replacement(min(limit, len(data)), len(data), generator)
        for part in index.split(256):
            yield self.batch(data.rows(part), None).x


def _origin(rows: Mapping[str, Tensor]) -> Origin:
    """Where stored rows come from, told on the host, where their slots are."""
    if "slot" not in rows:
        return "stream"
    replayed = rows["slot"].numpy() >= 0
    return "memory" if replayed.all() else "both" if replayed.any() else "stream"


@contextmanager
def frozen_statistics(network: nn.Module) -> Iterator[None]:
    """BatchNorm normalises as it would, but its running statistics do not move."""
    moving = [
        module
        for module in network.modules()
        if isinstance(module, _BatchNorm) and module.track_running_stats and module.training
    ]
    for module in moving:
        module.track_running_stats = False
    try:
        yield
    finally:
        for module in moving:
            module.track_running_stats = True
