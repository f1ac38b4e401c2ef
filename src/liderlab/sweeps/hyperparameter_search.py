"""Hyperparameter search by validation accuracy, never by the test images.

    ask: the sampler chooses values ──▶ a run on the training images less the validation split
    tell: its final average accuracy on the validation split ◀── or pruned, after any task

A trial is a run like any other, in OUT/trials/NUMBER, on any engine. Searches on several machines
may share a study, each with a folder of its own.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..config.identity import identity
from ..config.imports import import_checksums
from ..config.merging import make_config
from ..config.schema import RunConfig
from ..errors import RunFailed, Stopped, UserError
from ..files import delete_lock, write_atomically
from ..runs.build import completed
from ..runs.folder import LOCK, RunFolder
from ..runs.interruption import stop_requests
from ..runs.planned_run import PlannedRun
from ..runs.result_schema import setting_of
from ..training.randomness import derive
from .dotted_names import nested
from .engine import Engine
from .optional_packages import require
from .optuna_study import OptunaStudy, Sampler, Trial
from .scheduler import Outcome, Scheduler
from .search_space import Space, grid_size
from .sweep_file import check_config, with_threads

Say = Callable[[str], None]


@dataclass
class Search:
    """base: the configuration that all trials share. space: the values that they choose from.

    trials: number of trials of the study, including those of other searches. validation: share of
    the training images held out. seed: of the sampler. prune_after: trials that must have finished
    before another can be pruned.
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
    _study: OptunaStudy = field(init=False, repr=False)

    def __post_init__(self) -> None:
        require("optuna", "search", "lider search")
        if self.sampler == "grid":
            self.trials = min(self.trials, grid_size(self.space))

    def check(self, device: str | None = None) -> None:
        """Build runs with every listed value and both ends of ranges, before a file is written.

        device: build them there, if other machines will execute them.
        """
        first = {key: values.samples[0] for key, values in self.space.items()}
        for key, values in self.space.items():
            for value in values.samples:
                check_config(self._plan("check", {**first, key: value}).config, device)

    def run(self, engine: Engine, workers: int, say: Say, go_on: str = "the same call") -> None:
        """Run trials until the study has enough; resumes those of an interrupted search.

        Closes the engine at the end. go_on: the command that resumes after Ctrl-C.
        """
        try:
            with RunFolder(self.out).lock():
                self._study = self._open_study()
                self._drive(Scheduler(engine), workers, say, go_on)
        finally:
            engine.close()

    def best(self) -> tuple[float, RunConfig]:
        """The best validation accuracy and its configuration, without the validation split."""
        best = self._study.best()
        if best is None:
            raise RunFailed("no trial has finished: see error.json in the folders of the trials")
        accuracy, values = best
        return accuracy, completed(self._config(None, values))

    def trial_rows(self) -> list[dict[str, Any]]:
        """A row per trial of the study."""
        return self._study.rows()

    def setting(self) -> str | None:
        """The setting of the accuracies; None if no finished trial is in this folder."""
        for file in sorted(self.out.glob("trials/*/result.json")):
            return setting_of(RunFolder(file.parent).result())
        return None

    def importances(self) -> dict[str, float]:
        """How much each field matters, 0 to 1; {} for too few trials."""
        return self._study.importances()

    def _open_study(self) -> OptunaStudy:
        """Open the study. The file `home` holds the mark of this folder's trials and its name."""
        file = self.out / "home"
        text = file.read_text("utf-8", errors="replace") if file.is_file() else ""
        home, _, name = text.partition(" ")
        if name not in ("", self.name):
            raise UserError(f"{self.out} holds the study {name!r}: choose another --out")
        home = home or uuid.uuid4().hex
        try:
            study = self._join_study(home)
        except UserError:
            if not text:  # leave no traces in a folder that was not a search's
                delete_lock(self.out / LOCK)
                if not any(self.out.iterdir()):
                    self.out.rmdir()
            raise
        write_atomically(file, f"{home} {self.name}".encode())
        return study

    def _join_study(self, home: str) -> OptunaStudy:
        url = self.storage or f"sqlite:///{(self.out / 'search.db').absolute()}"
        study = OptunaStudy(url, self.name, self.space, home)
        shared = [identity(self.base, "processes"), self.validation]
        shared += [file["sha256"] for file in import_checksums(self.base.imports)]
        if mismatch := study.mismatch(json.dumps(shared, sort_keys=True)):
            another = "another --out" + (" and another --study" if self.storage else "")
            raise UserError(f"the study {self.name!r} in this storage {mismatch}: choose {another}")
        # A search that goes on draws other points, but a grid's points keep their order: by their
        # places in it the study knows which are left.
        place = () if self.sampler == "grid" else (self.out.name, study.size())
        seed = derive(self.seed, *place) % 2**32
        study.sample_by(self.sampler, seed, self.prune_after)
        return study

    def _drive(self, scheduler: Scheduler, workers: int, say: Say, go_on: str) -> None:
        trials: dict[str, Trial] = {}  # running ones, by the names of their runs

        def begin(trial: Trial) -> None:
            plan = self._plan(str(trial.optuna.number), trial.values)
            trials[plan.name] = trial
            scheduler.add(plan)

        for trial in self._study.unfinished():
            begin(trial)
        more = True
        with stop_requests() as request:
            while scheduler.unfinished or more:
                if request.signal is not None:
                    more = False
                    scheduler.stop()
                while more and scheduler.unfinished < workers:
                    new = self._study.ask(self.trials)
                    more = new is not None
                    if new is not None:
                        try:
                            begin(new)
                        except UserError as error:  # values that do not go together
                            self._study.tell(new, None)
                            say(f"{new}: failed: {error}")
                for outcome in scheduler.tick():
                    self._finish(trials, outcome, say)
                for plan in scheduler.running:
                    if self._pruned(trials, plan, say):
                        scheduler.cancel(plan)
        if request.signal is not None:
            raise Stopped(request.signal, "", go_on)

    def _plan(self, name: str, values: Mapping[str, Any]) -> PlannedRun:
        config, folder = self._config(self.validation, values), self.out / "trials" / name
        return PlannedRun(name, with_threads(config, self.threads, folder), folder)

    def _config(self, validation: float | None, values: Mapping[str, Any]) -> RunConfig:
        fields = {**values, "benchmark.validation": validation}
        return make_config(self.base.model_dump(), nested(fields))

    def _pruned(self, trials: dict[str, Trial], plan: PlannedRun, say: Say) -> bool:
        """Report the accuracy after every finished task; return whether the trial is pruned.

        The first accuracy that is too low prunes it, no matter how many tasks have followed.
        """
        if plan.name not in trials:
            return True
        trial = trials[plan.name]
        for task, accuracy in task_accuracies(RunFolder(plan.folder)):
            if self._study.report(trial, task, accuracy):
                say(f"{trial}: pruned after task {task + 1}")
                del trials[plan.name]
                return True
        return False

    def _finish(self, trials: dict[str, Trial], outcome: Outcome, say: Say) -> None:
        """Tell the study about a run's end. A stopped trial stays for the next search to resume."""
        if self._pruned(trials, outcome.plan, say):
            return
        trial = trials[outcome.plan.name]
        if outcome.state == "done":
            result = RunFolder(outcome.plan.folder).result()
            accuracy = result["class_incremental"]["faa"]
            self._study.tell(trial, accuracy)
            say(f"{trial}: {accuracy:.2f} % {setting_of(result)}")
        elif outcome.state == "failed":
            self._study.tell(trial, None)
            say(f"{trial}: failed: {outcome.error}")


def task_accuracies(folder: RunFolder) -> list[tuple[int, float]]:
    """For each task done, its index and the mean accuracy on the tasks up to it."""
    if not (folder.path / "metrics.jsonl").is_file():
        return []
    found = []
    for line in folder.metrics():
        if line["kind"] == "task":
            seen = line["class_incremental"][: line["task"] + 1]
            if None not in seen:
                found.append((int(line["task"]), sum(seen) / len(seen)))
    return found
