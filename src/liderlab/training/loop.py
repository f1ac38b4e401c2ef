"""The training loop: a whole run, task by task.

    for task in stream:
        for fit in method.plan(task):                 # usually one: the task's training data
            learner.start(fit)                        # a new optimizer; LiDER calibrates
            for epoch in range(fit.epochs):           # or until the budget's share is spent
                for batch in shuffled(fit.data):              # each one `updates` times
                    anytime.measure()                         # every so many steps, if wanted
                    terms  = method.losses(batch)             # draws replay batches, settles terms
                    terms |= regularizer.losses()             # of each, from the passes it watched
                    learner.step(terms)                       # backward(), then the optimizer
                    deferred.run()                            # memory takes what was offered
                if stopping.stops(): break                    # early, at the best weights
        method.end_task(); regularizer.end_task()     # not if the stream is task-free
        evaluation.after_task()

Before that, methods and regularisers meet the network in one order. It is complete (weights loaded,
on its device); then `method.attach`; then each `regularizer.attach`, in the configuration's order;
then it is compiled. So regularisers know the parameters that the method froze, and all hooks are in
place before compilation.

Several ranks (`team`) run this loop together: each trains on its part of every batch, the learner
adds up their gradients, and all of them change their memories in the same way.

A run is a pure function of its configuration and data. It can be left after any event and continued
from `state_dict()`, bit for bit.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from ..backbones.network import Network
from ..distributed.team import OutOfStep, Team
from ..memory import Memory
from ..memory.buffer import digest
from ..methods.base import Method
from ..regularizers.base import Regularizer
from ..types import Batch, Fit, Recipe, State, Stream, Task, Terms
from .anytime import Anytime, Point
from .batches import cut
from .budget import Budget
from .cost import Cost
from .deferred import Deferred
from .early_stopping import EarlyStopping
from .evaluation import Evaluation
from .events import Cursor, Event, Measured, StepDone, TaskDone
from .heads import HeadKind, Heads
from .learner import Learner, NotFinite
from .precision import Passes, Precision
from .randomness import Generators
from .step import Step


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
        on_nonfinite: Literal["stop", "skip"] = "stop",
        look_every: int = 1,
        evaluate: Literal["every", "seen", "last"] = "every",
        anytime: Anytime | None = None,
        budget: Budget | None = None,
        stopping: EarlyStopping | None = None,
        precision: Precision = "float32",
        compile: str | None = None,
        team: Team | None = None,
        optimizer_per_task: bool = True,
        heads: HeadKind = "all",
        task_free: bool = False,
    ) -> None:
        self.team, self._optimizer_per_task = team or Team(), optimizer_per_task and not task_free
        self.stream, self.method, self.network, self.memory = stream, method, network, memory
        self.regularizers, self.generators = list(regularizers), generators
        self.cursor, self.cost, self.evaluation = Cursor(), Cost(), Evaluation(len(stream.tasks))
        self.evaluating = [0.0] * len(stream.tasks)  # seconds, by task; no part of the state
        self._evaluate, self._on_nonfinite = evaluate, on_nonfinite
        self._recipe, self._epochs, self._offer, self.budget = recipe, epochs, offer, budget
        self.anytime, self.stopping = anytime, stopping
        self._device = next(network.parameters()).device
        self._heads = None if heads == "all" else Heads(heads, stream, self._device)
        example = torch.zeros(2, *stream.image_shape, device=self._device)
        method.attach(network, example)
        for regularizer in self.regularizers:
            regularizer.attach(network, example)
            regularizer.check(recipe, memory.size)
            regularizer.to(self._device)
        # the classes that a task-free stream has shown; None if its tasks are known
        classes = len(stream.names)
        self._appeared = torch.zeros(classes, device=self._device).bool() if task_free else None
        self._initial = {name: value.clone() for name, value in network.state_dict().items()}
        self._passes = Passes(network, precision, compile)  # behind all hooks
        self._learner = Learner(
            network,
            method,
            self.regularizers,
            on_nonfinite,
            scale=precision == "float16",
            look_every=look_every,
            team=self.team,
        )
        self._resume: State | None = None
        self._trained = method.trains == "nothing"  # whether there is anything to evaluate yet

    def __iter__(self) -> Iterator[Event]:
        for task in self.stream.tasks[self.cursor.task :]:
            fits = self._plan(task)
            for fit in fits[self.cursor.fit :]:
                yield from self._run_fit(task, fit, len(fits))
                self.cursor = Cursor(task.index, self.cursor.fit + 1)
            point = self._end_task(task, fits)
            self.cursor = Cursor(task.index + 1)
            yield TaskDone(task, self.evaluation, point)

    @property
    def steps(self) -> int:
        """How many steps have been taken."""
        return self.cost.steps

    @property
    def skipped(self) -> int:
        """How many steps were left out because they were not finite."""
        return self._learner.skipped

    def planned_steps(self) -> int:
        """How many steps the whole run will take, by the plans as they are now."""
        if self.budget and (planned := self.budget.planned_steps(self.cost)):
            return planned
        fits = (fit for task in self.stream.tasks for fit in self._plan(task))
        return sum(fit.epochs * len(cut(torch.arange(len(fit.data)), fit)) for fit in fits)

    def _plan(self, task: Task) -> list[Fit]:
        recipe = self._recipe
        for regularizer in self.regularizers:
            recipe = regularizer.adapt(recipe, task)
        return self.method.plan(task, self.stream, recipe, self._epochs, self.memory)

    def _run_fit(self, task: Task, fit: Fit, fits: int) -> Iterator[StepDone | Measured]:
        with self.cost.timed():
            self._start_fit(task, fit)
        share = self.budget and self.budget.share(
            self.stream.tasks, self._plan, task.index, self.cursor.fit, fits
        )
        while share or self.cursor.epoch < fit.epochs:
            epoch = self.cursor.epoch
            batches = self._shuffled(fit, self.cursor)
            for number in range(self.cursor.batch, len(batches)):
                begun, progress = bool(epoch or number), epoch + number / len(batches)
                if share:
                    spent = self.cost.spent(share.unit, self.team)
                    progress = share.epoch(spent, fit.epochs)
                    if begun and spent >= share.end:
                        return
                # before the next step, not after the last: a resumed run then measures it as well
                if self.anytime and begun and self.anytime.due(self.steps):
                    yield Measured(task, self._measure(self.anytime, task))
                self._learner.set_epoch(progress)
                last = (number + 1) % fit.recipe.updates == 0
                view = partial(self._step, task, fit, epoch, progress=progress, offers=last)
                try:
                    with self.cost.timed():
                        terms = self._train_on(batches[number], view)
                except NotFinite as error:
                    where = f"in task {task.index + 1}, epoch {epoch + 1}, step {number + 1}"
                    raise NotFinite(f"{error} {where}") from None
                self.cursor = replace(self.cursor, batch=number + 1)
                yield StepDone(task, fit, fits, epoch, number, len(batches), terms)
            self.cursor = replace(self.cursor, epoch=epoch + 1, batch=0)
            if not batches or (self.stopping and self._stops_after_epoch(self.stopping, task)):
                break
        if self.stopping:
            self.stopping.restore(self.network, [self.method, *self.regularizers])

    def _stops_after_epoch(self, stopping: EarlyStopping, task: Task) -> bool:
        with self.cost.timed():
            tasks = [task] if self.method.task_by_task else self.stream.tasks[: task.index + 1]
            reached = stopping.accuracy(self.network, tasks, self.team)
            return stopping.stops(reached, self.network, [self.method, *self.regularizers])

    def _start_fit(self, task: Task, fit: Fit) -> None:
        begun = self.cursor.epoch > 0 or self.cursor.batch > 0
        if not begun:
            if fit.restart:
                self.network.load_state_dict(self._initial)
            deferred = Deferred(self.network, self.team)
            step = self._step(task, fit, 0, deferred)
            if self.cursor.fit == 0 and self._appeared is None:
                self.method.begin_task(step)
            if self.stopping:
                self.stopping.begin(task.index)
            for regularizer in self.regularizers:
                regularizer.start(step)
            deferred.run()
            self.team.broadcast(*(p.data for r in self.regularizers for p in r.parameters()))
        optimizer = self._optimizer_state()
        self._learner.start(fit.recipe)
        if begun:
            self._learner.load_state_dict(optimizer)
        elif not self._optimizer_per_task and not fit.restart:
            self._learner.load_state_dict(optimizer, groups=False)
        self._resume = None

    def _train_on(self, index: Tensor, view: Callable[..., Step]) -> Terms:
        """Train on these rows of the fit. view: makes the step."""
        deferred = Deferred(self.network, self.team)
        step = view(deferred)
        fit, passed = step.fit, self._passes.rows
        mine = () if self.team.size == 1 else (self.team.rank,)
        self.generators.seed_dropout("step", self.steps, *mine)  # other rows, other masks
        self.network.train()
        skips = self._on_nonfinite == "skip"
        statistics = {n: b.clone() for n, b in self.network.named_buffers()} if skips else {}
        batch = step.take(fit.data, index, self.generators("augment") if fit.augment else None)
        before = self.generators.state_dict() if self._learner.repeats else {}
        terms = self._terms(batch, step)

        def again() -> Terms:
            self.generators.rewind(before)
            self.generators.seed_dropout("step", self.steps, *mine)
            return self._terms(batch, view(repeated=True))

        self._check_alike(terms, deferred)
        values = self._learner.step(terms, again, step)
        if self._learner.left_out:  # its logits and statistics may not be finite either
            for name, buffer in self.network.named_buffers():
                buffer.copy_(statistics[name])
            deferred.drop()
        else:
            deferred.run()
        if self._appeared is not None:
            self._appeared |= step.present(batch, len(self._appeared))
        self.cost.step(self._passes.rows - passed, self.team)
        self._trained = self._trained or bool(values)
        return values

    def _terms(self, batch: Batch, step: Step) -> Terms:
        terms = self.method.losses(batch, step)
        if terms:  # otherwise there is nothing to regularise either
            for regularizer in self.regularizers:
                terms = terms | regularizer.losses(step)
        return terms

    def _check_alike(self, terms: Terms, deferred: Deferred) -> None:
        """Refuse ranks whose next messages differ: they would wait for each other forever."""
        if self.team.size > 1:
            waiting = len(deferred.actions)
            doing = repr([(name, term.dim()) for name, term in terms.items()]) + str(waiting)
            try:
                self.team.check_same("what a step does", zlib.crc32(doing.encode()))
            except OutOfStep as error:
                raise OutOfStep(
                    f"{error}: a method or regularizer decides by a rank's own rows where it "
                    "should use step.gather or step.present"
                ) from None

    def _shuffled(self, fit: Fit, cursor: Cursor) -> list[Tensor]:
        """The epoch's batches, in an order that depends on the seed and the position alone."""
        key = ("order", cursor.task, cursor.fit, cursor.epoch)
        order = torch.randperm(len(fit.data), generator=self.generators.keyed(*key))
        return cut(order, fit)

    def _end_task(self, task: Task, fits: list[Fit]) -> Point | None:
        fit = fits[-1] if fits else Fit(task.train, 0, self._recipe)
        deferred = Deferred(self.network, self.team)
        step = self._step(task, fit, fit.epochs, deferred)
        self.generators.seed_dropout("end of task", task.index)
        if fits and self._appeared is None:
            with self.cost.timed():
                self.method.end_task(step)
                for regularizer in self.regularizers:
                    regularizer.end_task(step)
                deferred.run()
        if self.team.size > 1:
            self.team.check_same("the network", digest(self.network.state_dict()))
            self.team.check_same("the memory", self.memory.digest())
        last = task.index == len(self.stream.tasks) - 1
        if self._trained and (last or self._evaluate != "last"):
            started = time.monotonic()
            if ahead := self._evaluate == "every":
                self._evaluate_untrained(task)
            classifier = self.method.classifier(self.network)
            self.evaluation.after_task(classifier, self.stream, task, self.team, ahead=ahead)
            self.evaluation.remember(classifier, self.stream, self.memory, task, self.team)
            self.evaluating[task.index] += time.monotonic() - started
        return self._measure(self.anytime, task) if self.anytime and self._trained else None

    def _measure(self, anytime: Anytime, task: Task) -> Point:
        started = time.monotonic()
        classifier = self.method.classifier(self.network)
        point = anytime.measure(classifier, task, self.steps, self.team)
        self.evaluating[task.index] += time.monotonic() - started
        return point

    def _evaluate_untrained(self, now: Task) -> None:
        """Measure the initial network, with which FWT compares, on tasks that need it now: not
        earlier, so that a run starts by training."""
        missing = self.evaluation.untrained.isnan().tolist()
        tasks = [task for task in self.stream.tasks[: now.index + 2] if missing[task.index]]
        untrained = self.network.frozen_copy()
        untrained.load_state_dict(self._initial)
        self.evaluation.before_training(untrained, self.stream, tasks, self.team)

    def _step(
        self,
        task: Task,
        fit: Fit,
        epoch: float,
        deferred: Deferred | None = None,
        *,
        progress: float | None = None,
        offers: bool = True,
        repeated: bool = False,
    ) -> Step:
        return Step(
            task=task,
            fit=fit,
            epoch=epoch,
            progress=progress,
            stream=self.stream,
            network=self.network,
            memory=self.memory,
            regularizers=self.regularizers,
            generators=self.generators,
            device=self._device,
            deferred=deferred,
            passes=self._passes,
            offer=self._offer if offers else "never",
            team=self.team,
            repeated=repeated,
            heads=self._heads,
            appeared=self._appeared,
            settle=self._learner.settle,
        )

    def check(self) -> None:
        """Raise `NotFinite` if an unchecked step was not finite; for ranks that save no state."""
        self._learner.check()

    def state_dict(self) -> State:
        """Everything that the rest of the run depends on, beside its configuration and data."""
        self._learner.check()
        return {
            "cursor": asdict(self.cursor),
            "steps": self.steps,
            "skipped": self.skipped,
            "passes": self.cost.passes,
            "trained": self._trained,
            "network": self.network.state_dict(),
            "method": self.method.state_dict(),
            "regularizers": [r.state_dict() for r in self.regularizers],
            "optimizer": self._optimizer_state(),
            "memory": self.memory.state_dict(),
            "generators": self.generators.state_dict(),
            "evaluation": self.evaluation.state_dict(),
            **({"anytime": self.anytime.state_dict()} if self.anytime else {}),
            **({} if self._appeared is None else {"appeared": self._appeared.clone()}),
            **({"stopping": self.stopping.state_dict()} if self.stopping else {}),
        }

    def _optimizer_state(self) -> State:
        """The optimizer's state; a loaded one counts until a fit has taken it up."""
        return self._learner.state_dict() if self._resume is None else self._resume

    def load_state_dict(self, state: State) -> None:
        self.cursor = Cursor(**state["cursor"])
        self.cost.steps, self._trained = state["steps"], state["trained"]
        self._learner.skipped, self.cost.passes = state.get("skipped", 0), state.get("passes")
        self.network.load_state_dict(state["network"])
        self.method.load_state_dict(state["method"])
        for regularizer, saved in zip(self.regularizers, state["regularizers"], strict=True):
            regularizer.load_state_dict(saved)
        self._resume = state["optimizer"]
        self.memory.load_state_dict(state["memory"])
        self.generators.load_state_dict(state["generators"])
        self.evaluation.load_state_dict(state["evaluation"])
        if self.anytime:
            self.anytime.load_state_dict(state["anytime"])
        if self._appeared is not None:
            self._appeared.copy_(state["appeared"])
        if self.stopping:
            self.stopping.load_state_dict(state["stopping"])
