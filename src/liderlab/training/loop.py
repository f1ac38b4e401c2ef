"""The whole run.

    for task in stream:
        for fit in method.plan(task):                 # usually one: the task's training data
            learner.start(fit)                        # a new optimizer; LiDER calibrates
            for epoch in range(fit.epochs):
                for batch in shuffled(fit.data):
                    terms  = method.losses(batch)             # asks for replay as it likes
                    terms |= regularizer.losses()             # for each: what it heard at the door
                    learner.step(terms)                       # the only backward() and step()
                    step.finish()                             # memory takes what was offered
        method.end_task(); regularizer.end_task()
        evaluation.after_task()

A run is a pure function of its configuration and data. It can be left after any event and taken up
again from `state_dict()`, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

import torch
from torch import Tensor

from ..backbones.network import Network
from ..memory import Memory
from ..methods.base import Method
from ..regularizers.base import Regularizer
from ..types import Fit, Recipe, State, Stream, Task, Terms
from .evaluation import Evaluation
from .learner import Learner
from .randomness import Generators, derive
from .step import Step


@dataclass(frozen=True)
class Cursor:
    """The next thing to do."""

    task: int = 0
    fit: int = 0
    epoch: int = 0
    batch: int = 0


@dataclass(frozen=True)
class StepDone:
    """A batch has been trained on. terms: values on the device, nothing waits for them."""

    task: Task
    fit: Fit
    fits: int
    epoch: int
    batch: int
    batches: int
    terms: Terms


@dataclass(frozen=True)
class TaskDone:
    """A task has been trained and evaluated."""

    task: Task
    evaluation: Evaluation


Event = StepDone | TaskDone


class Loop:
    """Iterate over it to run it; every event is a point where it may stop."""

    def __init__(
        self,
        *,
        stream: Stream,
        method: Method,
        network: Network,
        memory: Memory,
        regularizers: Sequence[Regularizer],
        recipe: Recipe,
        epochs: int,
        generators: Generators,
        offer: str = "every-epoch",
    ) -> None:
        self.stream, self.method, self.network, self.memory = stream, method, network, memory
        self.regularizers, self.generators = list(regularizers), generators
        self.evaluation = Evaluation(len(stream.tasks))
        self.cursor = Cursor()
        self.steps = 0
        self._recipe, self._epochs, self._offer = recipe, epochs, offer
        self._device = next(network.parameters()).device
        self._initial = {name: value.clone() for name, value in network.state_dict().items()}
        self._learner = Learner(network, method, self.regularizers)
        self._trained = False  # whether there is anything to evaluate yet
        self._resume: State | None = None

    def __iter__(self) -> Iterator[Event]:
        if self.cursor == Cursor():
            self.evaluation.before_training(self.network, self.stream)
        for task in self.stream.tasks[self.cursor.task :]:
            recipe = self._recipe
            for regularizer in self.regularizers:
                recipe = regularizer.adapt(recipe, task)
            fits = self.method.plan(task, self.stream, recipe, self._epochs, self.memory)
            for fit in fits[self.cursor.fit :]:
                yield from self._run_fit(task, fit, len(fits))
                self.cursor = Cursor(task.index, self.cursor.fit + 1)
            self._end_task(task, fits)
            self.cursor = Cursor(task.index + 1)
            yield TaskDone(task, self.evaluation)

    def _run_fit(self, task: Task, fit: Fit, fits: int) -> Iterator[StepDone]:
        self._start_fit(task, fit)
        while self.cursor.epoch < fit.epochs:
            epoch = self.cursor.epoch
            batches = self._shuffled(fit, self.cursor)
            for number in range(self.cursor.batch, len(batches)):
                self._learner.set_epoch(epoch + number / len(batches))
                terms = self._train_on(batches[number], self._step(task, fit, epoch))
                self.cursor = replace(self.cursor, batch=number + 1)
                yield StepDone(task, fit, fits, epoch, number, len(batches), terms)
            self.cursor = replace(self.cursor, epoch=epoch + 1, batch=0)

    def _start_fit(self, task: Task, fit: Fit) -> None:
        begun = self.cursor.epoch > 0 or self.cursor.batch > 0
        if not begun:
            if fit.restart:
                self.network.load_state_dict(self._initial)
            for regularizer in self.regularizers:
                regularizer.start(self._step(task, fit, 0))
        self._learner.start(fit.recipe)
        if begun and self._resume is not None:
            self._learner.load_state_dict(self._resume)
        self._resume = None

    def _train_on(self, index: Tensor, step: Step) -> Terms:
        self._seed_dropout()
        self.network.train()
        augment = self.generators("augment") if step.fit.augment else None
        batch = step.batch(step.fit.data.rows(index), augment)
        terms = self.method.losses(batch, step)
        for regularizer in self.regularizers:
            terms = terms | regularizer.losses(step)
        values = self._learner.step(terms)
        step.finish()
        self.steps += 1
        self._trained = self._trained or bool(values)
        return values

    def _seed_dropout(self) -> None:
        """Dropout draws from torch's default generators: each step on a seed of its own."""
        seed = derive(self.generators.seed, "step", self.steps)
        torch.default_generator.manual_seed(seed)
        if self._device.type == "cuda":
            torch.cuda.manual_seed_all(seed)

    def _shuffled(self, fit: Fit, cursor: Cursor) -> list[Tensor]:
        """The epoch's batches: an order that depends on nothing but where we are."""
        key = ("order", cursor.task, cursor.fit, cursor.epoch)
        order = torch.randperm(len(fit.data), generator=self.generators.keyed(*key))
        batches = list(order.split(fit.recipe.batch_size))
        if len(batches) > 1 and len(batches[-1]) == 1:  # BatchNorm cannot normalise one row
            batches[-2:] = [torch.cat(batches[-2:])]
        return batches

    def _end_task(self, task: Task, fits: list[Fit]) -> None:
        fit = fits[-1] if fits else Fit(task.train, 0, self._recipe)
        step = self._step(task, fit, fit.epochs)
        if fits:
            self.method.end_task(step)
            for regularizer in self.regularizers:
                regularizer.end_task(step)
            step.finish()
        if self._trained:
            classifier = self.method.classifier(self.network)
            self.evaluation.after_task(classifier, self.stream, task)

    def _step(self, task: Task, fit: Fit, epoch: int) -> Step:
        return Step(
            task=task,
            fit=fit,
            epoch=epoch,
            stream=self.stream,
            network=self.network,
            memory=self.memory,
            regularizers=self.regularizers,
            generators=self.generators,
            device=self._device,
            offer=self._offer,
        )

    def state_dict(self) -> State:
        """Everything that the rest of the run depends on."""
        return {
            "cursor": asdict(self.cursor),
            "steps": self.steps,
            "trained": self._trained,
            "network": self.network.state_dict(),
            "initial": self._initial,
            "method": self.method.state_dict(),
            "regularizers": [r.state_dict() for r in self.regularizers],
            "optimizer": self._learner.state_dict(),
            "memory": self.memory.state_dict(),
            "generators": self.generators.state_dict(),
            "evaluation": self.evaluation.state_dict(),
        }

    def load_state_dict(self, state: State) -> None:
        self.cursor = Cursor(**state["cursor"])
        self.steps, self._trained = state["steps"], state["trained"]
        self.network.load_state_dict(state["network"])
        self._initial = state["initial"]
        self.method.load_state_dict(state["method"])
        for regularizer, saved in zip(self.regularizers, state["regularizers"], strict=True):
            regularizer.load_state_dict(saved)
        self._resume = state["optimizer"]
        self.memory.load_state_dict(state["memory"])
        self.generators.load_state_dict(state["generators"])
        self.evaluation.load_state_dict(state["evaluation"])
