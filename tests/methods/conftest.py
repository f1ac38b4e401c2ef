"""Two steps to test a method in: `scene`, a real run's step in float64, and `make_step`, for which
the test chooses every number (a linear network, pixels as they are, given draws)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from liderlab.backbones.network import Network
from liderlab.memory import Column, Memory
from liderlab.memory.policies import ClassBalanced
from liderlab.methods.base import Method
from liderlab.training.loop import Loop
from liderlab.training.randomness import Generators
from liderlab.training.step import Step
from liderlab.types import Batch, Fit, Recipe, Task, Terms

SHAPE = (1, 2, 2)
DOUBLE = torch.float64


class FinishingStep(Step):
    """A step that a test can end without a loop."""

    def finish(self) -> None:
        """Run the work that waits for the optimizer's step."""
        self._deferred.run()


class RecordingStep(FinishingStep):
    """Everything in float64, and every draw on record."""

    drawn: list[Batch]

    def batch(self, rows: dict[str, Tensor], generator: torch.Generator | None) -> Batch:
        batch = super().batch(rows, generator)
        return replace(batch, x=batch.x.double())

    def draw(self, n: int | None = None, generator: torch.Generator | None = None) -> Batch:
        batch = super().draw(n, generator)
        self.drawn.append(batch)
        return batch


@dataclass
class Scene:
    """A step of some task: `batch` comes from the stream, `drawn` holds the method's draws."""

    loop: Loop
    step: RecordingStep
    batch: Batch
    drawn: list[Batch] = field(default_factory=list)

    def losses(self) -> Terms:
        return self.loop.method.losses(self.batch, self.step)

    @torch.no_grad()
    def logits(self, x: Tensor) -> Tensor:
        return self.loop.network(x)


@pytest.fixture
def scene(build: Callable[..., Loop]) -> Callable[..., Scene]:
    """A step of a method by name; its memory has been offered the 24 samples of the first task."""

    def scene(
        method: str, *, task: int = 1, rows: int = 7, size: int = 20, **options: Any
    ) -> Scene:
        loop = build(method, options=options, size=size)
        loop.network.double()
        stream, generator = loop.stream, torch.Generator().manual_seed(0)
        now, first = stream.tasks[task], stream.tasks[0].train
        if loop.method.rehearsal:
            given = first.rows(torch.randperm(len(first), generator=generator))
            if "logits" in loop.memory.data:
                given["logits"] = torch.randn(len(first), 6, generator=generator)
            loop.memory.offer(generator, **given)
        step = RecordingStep(
            task=now,
            fit=Fit(now.train, 1, Recipe(0.1, replay_size=6)),
            epoch=0,
            stream=stream,
            network=loop.network,
            memory=loop.memory,
            regularizers=[],
            generators=loop.generators,
            device=torch.device("cpu"),
        )
        index = torch.randperm(len(now.train), generator=generator)[:rows]
        batch = step.batch(now.train.rows(index), generator)
        at = Scene(loop, step, batch)
        step.drawn = at.drawn
        return at

    return scene


class Linear(nn.Module):
    """f(x) = W P x for the four pixels x."""

    def __init__(self, weight: Tensor, features: Tensor) -> None:
        super().__init__()
        self.first, self.fc = nn.Parameter(features.clone()), nn.Parameter(weight.clone())

    def features(self, x: Tensor) -> Tensor:
        return x.flatten(1) @ self.first.T

    def forward(self, x: Tensor) -> Tensor:
        return self.features(x) @ self.fc.T


class Rows:
    """A task's data, in memory."""

    def __init__(self, x: Tensor, y: Tensor, task: Tensor) -> None:
        self.columns = {"x": x, "y": y, "task": task}

    def __len__(self) -> int:
        return len(self.columns["y"])

    def rows(self, index: Tensor) -> dict[str, Tensor]:
        return {name: column[index] for name, column in self.columns.items()}


class AsItIs:
    mean, std = [0.0], [1.0]

    def sample(self, n: int, generator: torch.Generator | None) -> Callable[[Tensor], Tensor]:
        return lambda raw: raw


class ScriptedStep(FinishingStep):
    """Draws the slots that the test gives."""

    draws: list[Tensor]

    def draw(self, n: int | None = None, generator: torch.Generator | None = None) -> Batch:
        slots = self.draws.pop(0) if self.draws else torch.zeros(0, dtype=torch.int64)
        return self.batch(self.memory.rows(slots), None)

    def take(self, loss: Tensor) -> None:
        """Take the step that the learner would take, and run the deferred work."""
        self.network.zero_grad()
        loss.backward()
        with torch.no_grad():
            for parameter in self.network.parameters():
                if parameter.grad is not None:
                    parameter -= self.lr * parameter.grad
        self.finish()


def make_step(
    method: Method,
    weight: Tensor,
    *,
    features: Tensor | None = None,
    train: tuple[Tensor, Tensor],
    task: int = 1,
    tasks: int = 3,
    memory: dict[str, Tensor] | None = None,
    size: int = 5,
    draws: Sequence[Sequence[int]] = (),
    lr: float = 0.1,
    policy: Any = None,
) -> tuple[ScriptedStep, Batch]:
    """One task of `tasks` equally large ones, and its training rows (x: (n, 4), y) as a batch."""
    classes = len(weight)
    per_task = classes // tasks
    x, y = train[0].to(DOUBLE).reshape(-1, *SHAPE), train[1]
    data = Rows(x, y, torch.full_like(y, task))
    ranges = [range(i * per_task, (i + 1) * per_task) for i in range(tasks)]
    all_tasks = [Task(i, classes, data, data) for i, classes in enumerate(ranges)]
    features = torch.eye(4) if features is None else features
    backbone = Linear(weight.to(DOUBLE), features.to(DOUBLE))
    network = Network(backbone, method.readout(classes)).to(DOUBLE)
    columns = {name: Column(c.shape, DOUBLE) for name, c in method.columns(classes).items()}
    columns |= {"x": Column(None, DOUBLE)}
    store = Memory(size, SHAPE, columns, policy or ClassBalanced())
    if memory is not None:
        pixels = memory["x"].to(DOUBLE).reshape(-1, *SHAPE)
        old = {"task": memory["y"] // per_task, **memory, "x": pixels}
        store.rebuild(torch.zeros(0, dtype=torch.int64), **old)
    method.attach(network, torch.zeros(2, *SHAPE, dtype=DOUBLE))
    names = [str(c) for c in range(classes)]
    stream = SimpleNamespace(tasks=all_tasks, transform=AsItIs(), names=names)
    step = ScriptedStep(
        task=all_tasks[task],
        fit=Fit(data, 1, Recipe(lr, batch_size=4, replay_size=3)),
        epoch=0,
        stream=stream,  # type: ignore[arg-type]
        network=network,
        memory=store,
        regularizers=[],
        generators=Generators(0),
        device=torch.device("cpu"),
    )
    step.draws = [torch.tensor(slots) for slots in draws]
    return step, step.batch(data.rows(torch.arange(len(data))), None)


@pytest.fixture(scope="session", name="make_step")
def make_step_fixture() -> Callable[..., tuple[ScriptedStep, Batch]]:
    return make_step
