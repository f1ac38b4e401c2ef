"""What a method is handed: the door into the network, and the memory behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from ..backbones.network import Network
from ..functional.sampling import draw_without_replacement
from ..memory import Memory
from ..regularizers.base import Regularizer
from ..types import Batch, Fit, Source, Stream, Task
from .randomness import Generators


class Step:
    """One step's view of the run.

    task, fit: what is being trained. epoch: within the fit. seen: how many classes have appeared,
    including the current task's. memory: read it here, change it through `after`.
    """

    def __init__(
        self,
        *,
        task: Task,
        fit: Fit,
        epoch: int,
        stream: Stream,
        network: Network,
        memory: Memory,
        regularizers: Sequence[Regularizer],
        generators: Generators,
        device: torch.device,
        offer: str = "every-epoch",
    ) -> None:
        self.task, self.fit, self.epoch = task, fit, epoch
        self.seen = task.classes.stop
        self.network, self.memory = network, memory
        self._stream, self._regularizers = stream, regularizers
        self._generators, self._device, self._offer = generators, device, offer
        self._after: list[Callable[[], Any]] = []

    def net(self, batch: Batch) -> Tensor:
        """The door: logits of these rows; every regulariser may listen."""
        with ExitStack() as listening:
            for regularizer in self._regularizers:
                listening.enter_context(regularizer.hear(batch, self))
            return self.network(batch.x)

    def draw(self, n: int | None = None, generator: torch.Generator | None = None) -> Batch:
        """Rows from memory, augmented: different slots, all of them if n is more. Empty if it is.

        Successive draws are independent.
        """
        generator = generator or self.generator("replay")
        n = self.fit.recipe.replay_size if n is None else n
        return self.batch(self.memory.rows(self.memory.draw(n, generator)), generator)

    def store(self, batch: Batch, **columns: Tensor) -> None:
        """Offer the batch to the memory, once the step has been taken."""
        if self._offer == "once" and self.epoch > 0:
            return
        rows = {"x": batch.raw, "y": batch.y, "task": batch.task, **columns}
        generator = self.generator("memory")
        self.after(lambda: self.memory.offer(generator, **{k: v.cpu() for k, v in rows.items()}))

    def after(self, action: Callable[[], Any]) -> None:
        """Do this once the optimizer has taken the step."""
        self._after.append(action)

    def finish(self) -> None:
        """The step has been taken."""
        for action in self._after:
            action()
        self._after = []

    def generator(self, name: str) -> torch.Generator:
        return self._generators(name)

    def batch(self, rows: dict[str, Tensor], generator: torch.Generator | None) -> Batch:
        """Stored rows made ready for the network; without a generator, not augmented."""
        view = self._stream.transform.sample(len(rows["y"]), generator)
        on_device = {name: column.to(self._device) for name, column in rows.items()}
        raw, y, task = (on_device.pop(name) for name in ("x", "y", "task"))
        slot = on_device.pop("slot", torch.full_like(y, -1))
        return Batch(view(raw), raw, y, task, slot, view, on_device)

    def plain_batches(
        self, data: Source, generator: torch.Generator, *, limit: int
    ) -> Iterator[Tensor]:
        """Inputs of at most `limit` random rows of some data, not augmented."""
        index = draw_without_replacement(min(limit, len(data)), len(data), generator)
        for part in index.split(256):
            yield self.batch(data.rows(part), None).x


def channels_last(network: nn.Module) -> nn.Module:
    """The faster layout for convolutions on CPUs (1.1x) and GPUs; no change for other layers."""
    return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
