"""Collects the records of finished runs from their folders."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from ...config.diff import flat
from ...config.identity import identity
from ...errors import UserError
from ...runs.folder import RunFolder
from ..studies.cases import config_of
from .campaign import SETTINGS, CampaignRun, by_name, campaign
from .cells import cases_of_the_paper
from .record import Curves, LedgerRecord, Metrics, Tree, rounded
from .repeat_command import repeat_command

if TYPE_CHECKING:
    from torch import Tensor

POINTS = 50  # of a curve
KEPT = {
    "guessing-game": ("auc", "in_memory", "samples", "false_positive_rate", "true_positive_rate"),
    "decision-surface": ("tasks", "areas", "samples"),
    "lipschitz-vs-buffer": ("constants",),
}
"""The values of an analysis that a record keeps; its images are too large."""


@dataclass(frozen=True)
class CollectedRecords:
    """left_out: the reason for each run without a record, by the run's name."""

    records: list[LedgerRecord]
    left_out: dict[str, str]


def collect_records(folder: Path, commit: str | None = None) -> CollectedRecords:
    """The records of all finished runs of the ledger in `folder`, or in its `runs`.

    commit: of this project, with which the runs were made.
    """
    runs = _begun_runs(folder)
    finished = [run for run in runs if run.finished]
    left_out = {run.path.name: "it has not finished" for run in runs if not run.finished}
    known = _known_runs(finished)
    records = []
    for run in finished:
        try:
            if run.path.name not in known:
                raise UserError("it is not a run of the ledger")
            with run.consistent():
                records.append(make_record(run, known[run.path.name], commit))
        except UserError as error:
            left_out[run.path.name] = str(error)
    return CollectedRecords(sorted(records, key=lambda record: record.name), left_out)


def _begun_runs(folder: Path) -> list[RunFolder]:
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder")
    home = folder / "runs" if (folder / "runs").is_dir() else folder
    runs = [run for path in sorted(home.iterdir()) if (run := RunFolder(path)).begun]
    if not runs:
        raise UserError(f"{folder} holds no runs: measure some with: lider ledger measure")
    return runs


def _known_runs(runs: Iterable[RunFolder]) -> dict[str, CampaignRun]:
    """Runs of the campaign and of every cell of the paper, at the scales and seeds of `runs`."""
    found = []
    for scale, seed in sorted({_scale_and_seed(run) for run in runs}):
        cases = [run.case for run in campaign(seeds=1)]
        if scale != "smoke":  # at smoke scale, all settings share one stand-in
            cases += cases_of_the_paper()
        found += [CampaignRun("", replace(case, seed=seed), scale) for case in cases]
    return by_name(found)


def _scale_and_seed(run: RunFolder) -> tuple[str, int]:
    try:
        config = run.config()
    except UserError:  # reported when its record is made
        return "paper", 0
    return config.scale.name if config.scale else "paper", config.seed


def make_record(run: RunFolder, known: CampaignRun, commit: str | None = None) -> LedgerRecord:
    """The record of a finished run, which is the `known` one of the campaign."""
    result = run.result()
    _check_config(result["config"], known)
    lines = run.metrics()
    accuracy = result["class_incremental"]
    on_memory = _last_mean(accuracy.get("memory_accuracy") or [[]])
    faa = rounded(accuracy["faa"])
    case = replace(known.case, keep_tasks=False)
    return LedgerRecord(
        run=run.path.name,
        case=case,
        scale=known.scale,
        class_incremental=_metrics(accuracy),
        task_incremental=_metrics(result["task_incremental"]),
        memory_accuracy=on_memory,
        gap=None if on_memory is None or faa is None else rounded(on_memory - faa),
        matrix=[[rounded(value) for value in row] for row in accuracy["accuracy_matrix"]],
        curves=curves_of(lines),
        steps=max((line["step"] for line in lines), default=0),
        seconds=result["seconds"],
        seconds_cpu=result.get("seconds_cpu"),
        network=network_hash(run),
        data=result.get("data") or {},
        versions=result["versions"],
        commit=commit,
        analyses=_analyses(run.path),
        config=result["config"],
        command=repeat_command(case, known.scale),
    )


def _check_config(config: Tree, known: CampaignRun) -> None:
    """Refuse a run whose configuration is not the one that its name stands for."""
    changed = (config.get("scale") or {}).get("changes") or {}
    wanted = flat(identity(config_of(known.case, known.request, SETTINGS), "study"))
    actual = flat(config)
    different = [
        key
        for key, value in wanted.items()
        if value is not None
        and key not in changed
        and not key.startswith(("scale", "keep_tasks"))
        and actual.get(key) != value
    ]
    if different:
        raise UserError(f"its configuration does not match its name: {', '.join(different)}")


def curves_of(lines: Sequence[Tree], points: int = POINTS) -> Curves | None:
    """λ_k and c_k of a run's log; None if it has none.

    >>> log = [{"kind": "step", "step": s, "readings": {"lider/λ/a": s, "lider/c/a": 1}}
    ...        for s in (1, 2, 3, 4)]
    >>> curves_of(log, points=2).constants
    {'a': [1.5, 3.5]}
    """
    steps = [line for line in lines if line["kind"] == "step" and line["readings"]]
    size = max(1, math.ceil(len(steps) / points))
    stretches = [steps[i : i + size] for i in range(0, len(steps), size)]
    constants = _stage_means(stretches, "lider/λ/")
    if not constants:
        return None
    return Curves(
        step=[stretch[-1]["step"] for stretch in stretches],
        constants=constants,
        targets=_stage_means(stretches, "lider/c/"),
        borders=[line["step"] for line in lines if line["kind"] == "task"],
    )


def _stage_means(stretches: Sequence[Sequence[Tree]], prefix: str) -> dict[str, list[float | None]]:
    """By stage, the mean of each stretch over its finite readings; None where it has none."""
    names = dict.fromkeys(name for part in stretches for line in part for name in line["readings"])
    means: dict[str, list[float | None]] = {}
    for name in names:
        if name.startswith(prefix):
            stage = means.setdefault(name.removeprefix(prefix), [])
            for part in stretches:
                values = [line["readings"].get(name) for line in part]
                finite = [v for v in values if v is not None and math.isfinite(v)]
                stage.append(float(f"{fmean(finite):.4g}") if finite else None)
    return means


def _metrics(tree: Tree) -> Metrics:
    return Metrics(**{name: rounded(tree.get(name)) for name in Metrics.model_fields})


def _last_mean(matrix: Sequence[Sequence[float | None]]) -> float | None:
    """The mean of the last row's values."""
    values = [value for value in matrix[-1] if value is not None]
    return rounded(fmean(values)) if values else None


def network_hash(run: RunFolder) -> str | None:
    """SHA-256 of the final network: equal for runs equal to the bit. None without a checkpoint."""
    if not run.checkpoints.files():
        return None
    network: Mapping[str, Tensor] = run.state()["network"]
    digest = hashlib.sha256()
    for name in sorted(network):
        digest.update(name.encode())
        digest.update(network[name].contiguous().numpy().tobytes())
    return digest.hexdigest()


def _analyses(path: Path) -> dict[str, Tree]:
    """The results that `lider analyze` has written into the run's folder, shortened."""
    found: dict[str, Tree] = {}
    for name, keys in KEPT.items():
        try:
            document = json.loads((path / "analysis" / name / "result.json").read_bytes())
        except (OSError, ValueError):
            continue
        measured = {key: document["measured"][key] for key in keys}
        found[name] = {"scale": document["scale"], **_shortened(measured)}
    return found


def _shortened(value: Any) -> Any:
    """Rounded, with long lists thinned out between their first and last values."""
    if isinstance(value, dict):
        return {key: _shortened(one) for key, one in value.items()}
    if isinstance(value, float):
        return rounded(value)
    if not isinstance(value, list):
        return value
    if len(value) > 2 * POINTS:
        last = len(value) - 1
        value = [value[round(i * last / (2 * POINTS))] for i in range(2 * POINTS + 1)]
    return [_shortened(one) for one in value]
