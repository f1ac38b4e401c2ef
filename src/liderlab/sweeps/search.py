"""Hyperparameter search with Optuna: by validation accuracy, never by the test images.

    ask: the sampler chooses values ──▶ a run on the training images less the validation split
    tell: its final average accuracy on the validation split ◀── or pruned, after any task

A trial's run is a run like any other, in DIR/trials/NUMBER, on any engine. Several searches, on
several machines, may share a storage and a study's name: each has a folder of its own.
"""

from __future__ import annotations

import json
import logging
import re
import time
import uuid
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ..config.schema import RunConfig
from ..errors import RunFailed, Stopped, UserError
from ..files import write_atomically
from ..runs.build import completed
from ..runs.folder import LOCK, RunFolder
from ..runs.interruption import stop_requests
from ..runs.planned_run import PlannedRun
from ..training.randomness import derive
from .engine import Engine
from .optional_packages import require
from .scheduler import Outcome, Scheduler
from .search_space import Choice, Range, Space, grid_size, with_values
from .sweep import check_config, with_threads

Sampler = Literal["tpe", "grid"]
Say = Callable[[str], None]
ATTEMPTS = 10
PRUNED = "pruned"
SURPLUS = "surplus"  # two searches asked for the last trial at once: this one is not needed


@dataclass
class _Trial:
    """A trial under way. reported: the tasks that Optuna knows of. pruned: after so many."""

    optuna: Any
    number: int
    values: dict[str, Any]
    reported: set[int]
    pruned: int | None

    def __str__(self) -> str:
        values = ", ".join(f"{key} {_short(value)}" for key, value in self.values.items())
        return f"trial {self.number}: {values}"


@dataclass
class Search:
    """base: what all trials share. space: what they choose from. validation: the share held out.

    trials: how many in all, also those of other searches in the same study. seed: of the sampler.
    prune_after: trials that must have finished before another can be pruned.
    """

    base: RunConfig
    space: Space
    out: Path
    trials: int
    storage: str | None = None
    name: str = "search"
    sampler: Sampler = "tpe"
    validation: float = 0.1
    seed: int = 0
    prune_after: int = 4
    threads: int = 1
    _study: Any = field(init=False, repr=False)
    _optuna: Any = field(init=False, repr=False)
    _home: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._optuna = require("optuna", "search", "lider search")
        if self.sampler == "grid":
            self.trials = min(self.trials, grid_size(self.space))

    def check(self, device: str | None = None) -> None:
        """Build runs with every value, of ranges both ends, before anything is written.

        On `device`, if the trials will run on other machines.
        """
        first = {key: values.samples[0] for key, values in self.space.items()}
        for key, values in self.space.items():
            for value in values.samples:
                check_config(self._plan("check", {**first, key: value}).config, device)

    def run(self, engine: Engine, workers: int, say: Say, go_on: str = "the same call") -> None:
        """Until there are as many trials as asked for; goes on where an earlier search stopped.

        The engine is closed at the end. go_on: the command that goes on after Ctrl-C.
        """
        try:
            with RunFolder(self.out).lock():
                self._begin()
                self._drive(Scheduler(engine), workers, say, go_on)
        finally:
            engine.close()

    def best(self) -> tuple[float, RunConfig]:
        """The best validation accuracy, and its configuration, which tests on the test images."""
        finished = self._study.get_trials(states=(self._optuna.trial.TrialState.COMPLETE,))
        if not finished:
            raise RunFailed("no trial has finished: see error.json in the folders of the trials")
        trial = max(finished, key=lambda t: (t.value, -t.number))
        values = {**trial.params, "benchmark.validation": None}
        return float(trial.value), completed(with_values(self.base.model_dump(), values))

    def trial_rows(self) -> list[dict[str, Any]]:
        """Every trial of the study: what it tried, how it ended, how good it was."""
        return [
            {
                "number": trial.number,
                "state": trial.state.name.lower(),
                "accuracy": trial.value,
                "values": trial.params,
            }
            for trial in self._study.get_trials(deepcopy=False)
        ]

    def _begin(self) -> None:
        """A search that is refused leaves nothing behind in a folder that was not a search's."""
        home = self.out / "home"
        try:
            text = home.read_text("utf-8") if home.is_file() else ""
        except UnicodeDecodeError:
            raise UserError(f"{home} is damaged: choose another --out") from None
        whose, _, study = text.partition(" ")
        if study not in ("", self.name):
            raise UserError(f"{self.out} holds the study {study!r}: choose another --out")
        try:
            self._open()
        except UserError:
            if not home.is_file():
                (self.out / LOCK).unlink(missing_ok=True)
                if not any(self.out.iterdir()):
                    self.out.rmdir()
            raise
        self._home = whose or uuid.uuid4().hex  # which of the study's trials are this folder's
        written = f"{self._home} {self.name}".encode()
        write_atomically(home, written)

    def _open(self) -> None:
        """The study: the storage's, if it has one of this name."""
        optuna = self._optuna
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        logging.getLogger("alembic").setLevel(logging.WARNING)
        url = self.storage or f"sqlite:///{(self.out / 'search.db').absolute()}"
        try:
            storage = self._connect(_with_driver(url))
            self._study = optuna.create_study(
                storage=storage, study_name=self.name, direction="maximize", load_if_exists=True
            )
        except Exception as error:  # the drivers' errors have no common ancestor
            text = " ".join(str(error).split("\n(Background")[0].split())
            raise UserError(f"cannot use the storage {_without_password(url)}: {text}") from None
        self._check_same()
        self._check_space()
        seed = derive(self.seed, self.out.name, len(self._study.trials)) % 2**32
        self._study.sampler = self._make_sampler(seed)
        self._study.pruner = optuna.pruners.MedianPruner(
            n_startup_trials=self.prune_after, n_warmup_steps=0
        )

    def _connect(self, url: str) -> Any:
        """The storage. Where two searches make its tables at once, one finds them there already."""
        errors = require("sqlalchemy", "search", "lider search").exc
        for _ in range(ATTEMPTS):
            try:
                return self._optuna.storages.RDBStorage(url)
            except (errors.IntegrityError, errors.ProgrammingError):
                time.sleep(1)  # for the other one to finish
        return self._optuna.storages.RDBStorage(url)

    def _check_same(self) -> None:
        """All trials of a study must be comparable."""
        base = self.base.model_dump(mode="json", exclude={"threads"})
        here = json.dumps([base, self.validation], sort_keys=True)
        there = self._study.user_attrs.get("base")
        if there is None:
            self._study.set_user_attr("base", here)
        elif there != here:
            raise self._refusal("searches around another configuration")

    def _check_space(self) -> None:
        """Ranges may become wider or narrower; a list, or its order, is part of the study."""
        kinds = self._optuna.distributions
        for trial in self._study.get_trials(deepcopy=False):
            for key in sorted(self.space.keys() & trial.distributions.keys()):
                try:
                    kinds.check_distribution_compatibility(
                        trial.distributions[key], _distribution(kinds, self.space[key])
                    )
                except ValueError:
                    raise self._refusal(f"chooses {key} from other values") from None

    def _refusal(self, does: str) -> UserError:
        another = "another --out" + (" and another --study" if self.storage else "")
        return UserError(f"the study {self.name!r} in this storage {does}: choose {another}")

    def _make_sampler(self, seed: int) -> Any:
        samplers = self._optuna.samplers
        if self.sampler == "tpe":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # multivariate is "experimental" in some versions
                return samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True)

        class Grid(samplers.GridSampler):  # type: ignore[misc, name-defined]
            def after_trial(self, *arguments: Any) -> None:
                """Optuna's would stop its own loop here; ours knows when to stop."""

        values = {k: v.values for k, v in self.space.items() if isinstance(v, Choice)}
        return Grid(values, seed=seed)

    def _drive(self, scheduler: Scheduler, workers: int, say: Say, go_on: str) -> None:
        trials: dict[str, _Trial] = {}

        def begin(trial: _Trial) -> None:
            plan = self._plan(str(trial.number), trial.values)
            trials[plan.name] = trial
            scheduler.add(plan)

        for orphan in self._orphans():
            begin(orphan)
        stopping, more = False, True
        with stop_requests() as request:
            while scheduler.unfinished or (more and not stopping):
                if request.signal is not None and not stopping:
                    stopping = True
                    scheduler.stop()
                while more and not stopping and scheduler.unfinished < workers:
                    trial = self._ask()
                    more = trial is not None
                    if trial is not None:
                        try:
                            begin(trial)
                        except UserError as error:  # values that do not go together
                            self._fail(trial, str(error), say)
                for outcome in scheduler.tick():
                    self._tell(trials[outcome.plan.name], outcome, say)
                for plan in scheduler.running:
                    if self._report(trials[plan.name], plan):
                        scheduler.cancel(plan)
        if request.signal is not None:
            raise Stopped(request.signal, "", go_on)

    def _orphans(self) -> list[_Trial]:
        """Trials of this folder that nobody is running: an earlier search was interrupted."""
        running = self._study.get_trials(states=(self._optuna.trial.TrialState.RUNNING,))
        found = []
        for frozen in running:
            if frozen.user_attrs.get("home") == self._home:
                trial = self._optuna.trial.Trial(self._study, frozen._trial_id)
                found.append(self._with_values(trial, set(frozen.intermediate_values)))
        return found

    def _ask(self) -> _Trial | None:
        """A new trial with its values; None if there are enough, counting everybody's."""
        if len(self._numbers()) >= self.trials:
            return None
        trial = self._study.ask()
        trial.set_user_attr("home", self._home)
        if self._numbers().index(trial.number) >= self.trials:
            trial.set_user_attr(SURPLUS, True)
            self._study.tell(trial, state=self._optuna.trial.TrialState.FAIL)
            return None
        return self._with_values(trial, set())

    def _with_values(self, trial: Any, reported: set[int]) -> _Trial:
        """Its values: those that it has keeps it, even if it had not got all when it was left."""
        for key, values in self.space.items():
            if isinstance(values, Choice):
                trial.suggest_categorical(key, values.values)
            elif values.whole:
                trial.suggest_int(key, values.low, values.high, log=values.log)
            else:
                trial.suggest_float(key, values.low, values.high, log=values.log)
        pruned = trial.user_attrs.get(PRUNED)
        return _Trial(trial, trial.number, dict(trial.params), reported, pruned)

    def _numbers(self) -> list[int]:
        trials = self._study.get_trials(deepcopy=False)
        return sorted(trial.number for trial in trials if SURPLUS not in trial.user_attrs)

    def _plan(self, name: str, values: Mapping[str, Any]) -> PlannedRun:
        layer = {"benchmark.validation": self.validation, **values}
        config, folder = with_values(self.base.model_dump(), layer), self.out / "trials" / name
        return PlannedRun(name, with_threads(config, self.threads, folder), folder)

    def _report(self, trial: _Trial, plan: PlannedRun) -> bool:
        """Tell Optuna about the tasks done so far; whether the trial is to be pruned.

        A trial is pruned by its values alone, at the first task where they are too low, however far
        its run has come meanwhile.
        """
        for task, accuracy in accuracies(RunFolder(plan.folder)):
            if trial.pruned is not None:
                break
            if task not in trial.reported:
                trial.reported.add(task)
                trial.optuna.report(accuracy, task)
                if trial.optuna.should_prune():
                    trial.pruned = task + 1
                    trial.optuna.set_user_attr(PRUNED, trial.pruned)
                    return True
        return False

    def _tell(self, trial: _Trial, outcome: Outcome, say: Say) -> None:
        states = self._optuna.trial.TrialState
        self._report(trial, outcome.plan)
        if trial.pruned is not None:
            self._study.tell(trial.optuna, state=states.PRUNED)
            say(f"{trial}: pruned after task {trial.pruned}")
        elif outcome.state == "done":
            result = RunFolder(outcome.plan.folder).result()
            accuracy = result["class_incremental"]["faa"]
            self._study.tell(trial.optuna, accuracy)
            say(f"{trial}: {accuracy:.2f} %")
        elif outcome.state == "failed":
            self._fail(trial, outcome.error, say)
        # one that was stopped stays as it is: the next search goes on with it

    def _fail(self, trial: _Trial, error: str | None, say: Say) -> None:
        self._study.tell(trial.optuna, state=self._optuna.trial.TrialState.FAIL)
        say(f"{trial}: failed: {error}")


def accuracies(folder: RunFolder) -> list[tuple[int, float]]:
    """After each task so far, the mean accuracy on the tasks up to it."""
    if not (folder.path / "metrics.jsonl").is_file():
        return []
    lines = [line for line in folder.metrics() if line["kind"] == "task"]
    found = []
    for line in lines:
        seen = line["class_incremental"][: line["task"] + 1]
        if None not in seen:
            found.append((int(line["task"]), sum(seen) / len(seen)))
    return found


def _distribution(kinds: Any, values: Choice | Range) -> Any:
    """What Optuna keeps of a field's values."""
    if isinstance(values, Choice):
        return kinds.CategoricalDistribution(values.values)
    kind = kinds.IntDistribution if values.whole else kinds.FloatDistribution
    return kind(values.low, values.high, log=values.log)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _with_driver(url: str) -> str:
    """SQLAlchemy's usual driver for PostgreSQL changes with its version; ours is psycopg2.

    >>> _with_driver("postgresql://host/db")
    'postgresql+psycopg2://host/db'
    """
    return re.sub(r"^postgres(ql)?://", "postgresql+psycopg2://", url)


def _without_password(url: str) -> str:
    """
    >>> _without_password("postgresql://me:secret@host/db")
    'postgresql://me:…@host/db'
    """
    return re.sub(r"(://[^:/@]*:)[^@]*@", r"\1…@", url)
