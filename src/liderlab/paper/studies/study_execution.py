"""Execution of a study: plan its runs, run the missing ones, measure and compute.

DIR/runs/NAME-HASH/     the runs, shared by all studies in DIR; a finished one is not repeated
DIR/STUDY/measured/     the values that the study has measured in each run
DIR/STUDY/result.json   its findings
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ...config.schema import RunConfig
from ...errors import RunFailed, UserError
from ...runs.folder import RunFolder
from ...runs.planned_run import PlannedRun
from . import find_study
from .case_runs import plan_runs
from .cases import SMOKE, Request, stand_in
from .measured_values import measured_once
from .study_definition import Findings, FinishedCase, RunAll, Study


@dataclass(frozen=True)
class CompletedStudy:
    """A study with its findings. failed: the reason for each run that failed, by name."""

    name: str
    study: Study
    request: Request
    findings: Findings
    runs: list[PlannedRun]
    failed: dict[str, str]

    def tested(self) -> list[Path]:
        """The finished runs on test images; those that tuned something are left out."""
        return [
            plan.folder
            for plan in self.runs
            if plan.name not in self.failed and plan.config.benchmark.validation is None
        ]

    def _stand_in(self) -> str | None:
        if self.study.execute is not None and not self.request.smoke:
            return None  # it has no benchmark of the paper to replace
        return stand_in(self.study.settings, self.request)

    def document(self) -> dict[str, Any]:
        """The content of result.json."""
        from ...runs.provenance import versions

        return {
            "study": self.name,
            "title": self.study.title,
            "paper": self.study.paper,
            "scale": self.request.scale,
            "seeds": self.request.seeds,
            "stand_in": self._stand_in(),
            "notes": self.findings.notes,
            "rows": self.findings.rows,
            "data": self.findings.data,
            "runs": sorted({plan.name for plan in self.runs}),
            "failed": self.failed,
            "versions": versions(),
        }


class Display(Protocol):
    """Shows the progress of several runs; listens to each of them."""

    def begin(self, label: str) -> None: ...
    def finish(self) -> None: ...
    def __call__(self, work: Any, event: Any) -> None: ...


def run_study(
    name: str,
    request: Request,
    out: Path,
    run_all: RunAll,
    say: Callable[[str], None] = lambda text: None,
) -> CompletedStudy:
    """Run or resume every run of the study, and compute its findings.

    run_all: `run_in_turn`, or a pool of workers. say: called with each message about progress.
    """
    study = find_study(name)

    def run_missing(plans: Sequence[PlannedRun]) -> dict[str, str]:
        waiting = [plan for plan in plans if not is_finished(plan)]
        if waiting:
            check_inputs(waiting, "; or choose with --benchmark")
        if plans:
            say(f"{name}: {len(plans)} runs, {len(plans) - len(waiting)} of them finished already")
        return run_all(waiting) if waiting else {}

    if study.execute is not None:
        done = study.execute(request, out, run_missing)
        findings = done.findings.noting(*_notes(study, request, done.failed))
        return CompletedStudy(name, study, request, findings, done.runs, done.failed)
    planned = plan_runs(study, request, out)
    plans = list({plan.name: plan for _, plan in planned}.values())
    failed = run_missing(plans)
    if request.threads is not None:
        import torch

        torch.set_num_threads(request.threads)  # measuring and computing happen in this process
    finished = []
    for case, plan in planned:
        if plan.name not in failed:
            measured = _measured(study, plan, request, out / name / "measured", say)
            finished.append(
                FinishedCase(case, plan.folder, RunFolder(plan.folder).result(), measured)
            )
    if planned and not finished:
        raise RunFailed(f"no run of {name} has finished: {next(iter(failed.values()))}")
    findings = study.compute(finished, request).noting(*_notes(study, request, failed))
    return CompletedStudy(name, study, request, findings, plans, failed)


def is_finished(plan: PlannedRun) -> bool:
    """Whether its result exists; refuses a folder of that name with another configuration."""
    from ...runs.build import completed

    folder = RunFolder(plan.folder)
    if not folder.begun:
        return False
    folder.check_same(completed(_as_begun(plan)))
    return folder.intact


def run_in_turn(plans: Sequence[PlannedRun], display: Display) -> dict[str, str]:
    """Run one after the other in this process; return the reason for each that failed."""
    from ...runs.accuracy_figure import leave_figure
    from ...runs.execute import run

    failed = {}
    for number, plan in enumerate(plans):
        display.begin(f"run {number + 1}/{len(plans)} {plan.name}")
        try:
            result = run(_as_begun(plan), plan.folder, existing="resume", listener=display)
            leave_figure(result, plan.folder)
        except RunFailed as error:
            failed[plan.name] = str(error)
        display.finish()
    return failed


def _as_begun(plan: PlannedRun) -> RunConfig:
    """The configuration with the threads that the run was begun with, unless the user set them."""
    folder = RunFolder(plan.folder)
    if plan.config.threads is not None or not folder.begun:
        return plan.config
    return plan.config.model_copy(update={"threads": folder.config().threads})


def check_inputs(plans: Sequence[PlannedRun], otherwise: str = "") -> None:
    """Refuse, before the first run starts, if any run lacks its data or weights."""
    from ...config.weight_names import IMAGENET, is_file_name, kept_weights
    from ...runs.weights import hint
    from ...streams.datasets.catalogue import DATA_SETS
    from ...streams.storage.location import data_folder

    used = {plan.config.benchmark.name for plan in plans}
    home = data_folder(None)
    missing = [
        f"{data.title} (get it with: {data.command})"
        for data in DATA_SETS.values()
        if data.benchmark in used and data.find(home) is None
    ]
    for name in sorted({plan.config.pretrained or IMAGENET for plan in plans} - {IMAGENET}):
        if not is_file_name(name) and not kept_weights(name).is_file():
            missing.append(f"the weights {name} (lider pretrain --out {name}{hint(name)})")
    if missing:
        raise UserError(f"these runs need missing files: {'; '.join(missing)}{otherwise}")


def _measured(
    study: Study, plan: PlannedRun, request: Request, folder: Path, say: Callable[[str], None]
) -> dict[str, Any]:
    """The values that the study's `measure` finds in a run."""
    make = study.measure
    if make is None:
        return {}

    def measure() -> dict[str, Any]:
        say(f"measuring {plan.name}")
        return make(plan.folder, request.scale)

    return measured_once(folder / f"{plan.name}-{request.scale}.json", measure)


def _notes(study: Study, request: Request, failed: dict[str, str]) -> list[str]:
    """Notes on scale and seeds, which a reader needs to judge the numbers."""
    notes = []
    instead = stand_in(study.settings, request)
    if instead and study.settings:
        size = SMOKE["benchmark"]["train_per_class"]
        small = f" ({size} images per class, {SMOKE['training']['epochs']} epochs at most; "
        small += "chosen so that effects show: it proves that the code runs, nothing about methods)"
        notes.append(
            f"Stand-in: run on {instead}{small if request.smoke else ''} with a network and "
            "learning rate of its own and a tenth of the buffer, not on the paper's benchmarks. "
            "The paper's numbers stand in the table for orientation and cannot be compared; the "
            "figure leaves them out."
        )
    elif request.scale != "paper" and study.settings:
        notes.append(
            f"Scale {request.scale}: smaller than the paper's; every run's config.yaml lists "
            "the changes. The paper's numbers are at its own scale."
        )
    if request.lr is not None and study.execute is None:
        notes.append(f"All runs have the learning rate {request.lr:g} instead of the paper's.")
    if request.epochs is not None:
        notes.append(f"All runs train {request.epochs} epoch(s) of every task.")
    if request.changes:
        notes.append(f"All runs have {', '.join(request.changes)}.")
    notes.append(
        "One seed: no standard deviation and no interval."
        if request.seeds == 1
        else f"{request.seeds} seeds: mean ± sample standard deviation; differences are paired "
        "by seed, with Student's 95 % interval."
    )
    notes += [f"Failed and left out: {name}: {reason}" for name, reason in failed.items()]
    return notes
