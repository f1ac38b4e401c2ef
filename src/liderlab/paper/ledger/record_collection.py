"""From the folder of a finished run to its record."""

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
from .record import Curves, LedgerRecord, Metrics, Tree
from .repeat_command import repeat_command

if TYPE_CHECKING:
    from torch import Tensor

POINTS = 50  # of a curve
DIGITS = 4  # of a percentage: more than the test images can tell
KEPT = {
    "guessing-game": ("auc", "in_memory", "samples", "false_positive_rate", "true_positive_rate"),
    "decision-surface": ("tasks", "areas", "samples"),
    "lipschitz-vs-buffer": ("constants",),
}


@dataclass(frozen=True)
class CollectedRecords:
    """left_out: why, by run, for those that no record was made of."""

    records: list[LedgerRecord]
    left_out: dict[str, str]


def collect_records(folder: Path, commit: str | None = None) -> CollectedRecords:
    """The records of all finished runs of the ledger in `folder`, or in its `runs`.

    commit: of this project, that the runs were made with.
    """
    records, left_out = [], {}
    finished = []
    for run in _runs(folder):
        if run.finished:
            finished.append(run)
        else:
            left_out[run.path.name] = "it has not finished"
    known = _known(finished)
    for run in finished:
        try:
            with run.consistent():
                records.append(make_record(run, _item(run, known), commit))
        except UserError as error:
            left_out[run.path.name] = str(error)
    return CollectedRecords(sorted(records, key=lambda record: record.name), left_out)


def _runs(folder: Path) -> list[RunFolder]:
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder")
    home = folder / "runs" if (folder / "runs").is_dir() else folder
    runs = [RunFolder(path) for path in sorted(home.iterdir())]
    if not (begun := [run for run in runs if run.begun]):
        raise UserError(f"{folder} holds no runs: measure some with: lider ledger measure")
    return begun


def _known(runs: Iterable[RunFolder]) -> dict[str, CampaignRun]:
    """The items that these runs may be, by name: the campaign's, and every cell of the paper."""
    found = {_scale_and_seed(run) for run in runs}
    items = []
    for scale, seed in sorted(found):
        cases = [item.case for item in campaign(seeds=1)]
        if scale != "smoke":  # where all settings have one stand-in
            cases += cases_of_the_paper()
        items += [CampaignRun("", replace(case, seed=seed), scale) for case in cases]
    return by_name(items)


def _scale_and_seed(run: RunFolder) -> tuple[str, int]:
    try:
        config = run.config()
    except UserError:  # which will be said when it is looked at
        return "paper", 0
    return config.scale.name if config.scale else "paper", config.seed


def _item(run: RunFolder, known: Mapping[str, CampaignRun]) -> CampaignRun:
    if run.path.name not in known:
        raise UserError("it is no run of the ledger")
    return known[run.path.name]


def make_record(run: RunFolder, item: CampaignRun, commit: str | None = None) -> LedgerRecord:
    """What is kept of a finished run of which it is known which one it is."""
    result = run.result()
    _check(result["config"], item)
    lines = run.metrics()
    accuracy = result["class_incremental"]
    on_memory = _mean(accuracy.get("memory_accuracy") or [[]])
    faa = _round(accuracy["faa"])
    return LedgerRecord(
        run=run.path.name,
        case=replace(item.case, keep_tasks=False),
        scale=item.scale,
        class_incremental=_metrics(accuracy),
        task_incremental=_metrics(result["task_incremental"]),
        memory_accuracy=on_memory,
        gap=None if on_memory is None or faa is None else _round(on_memory - faa),
        matrix=[[_round(value) for value in row] for row in accuracy["accuracy_matrix"]],
        curves=curves_of(lines),
        steps=max((line["step"] for line in lines), default=0),
        seconds=result["seconds"],
        seconds_cpu=result.get("seconds_cpu"),
        network=_weights(run),
        data=result.get("data") or {},
        versions=result["versions"],
        commit=commit,
        analyses=_analyses(run.path),
        config=result["config"],
        command=repeat_command(replace(item.case, keep_tasks=False), item.scale),
    )


def _check(config: Tree, item: CampaignRun) -> None:
    """A folder's name promises what is in it; whether it keeps the promise is looked at."""
    changed = (config.get("scale") or {}).get("changes") or {}
    wanted = flat(identity(config_of(item.case, item.request, SETTINGS), "study"))
    there = flat(config)
    apart = [
        key
        for key, value in wanted.items()
        if value is not None
        and key not in changed
        and not key.startswith(("scale", "keep_tasks"))
        and there.get(key) != value
    ]
    if apart:
        raise UserError(f"it is not what its name says: {', '.join(apart)} differ")


def curves_of(lines: Sequence[Tree], points: int = POINTS) -> Curves | None:
    """λ_k and c_k of a run's log; None if it has none.

    >>> log = [{"kind": "step", "step": s, "readings": {"lider/λ/a": s, "lider/c/a": 1}}
    ...        for s in (1, 2, 3, 4)]
    >>> curves_of(log, points=2).constants
    {'a': [1.5, 3.5]}
    """
    there = [line for line in lines if line["kind"] == "step" and line["readings"]]
    borders = [line["step"] for line in lines if line["kind"] == "task"]
    size = max(1, math.ceil(len(there) / points))
    parts = [there[i : i + size] for i in range(0, len(there), size)]
    stages = _stages(there, "λ")
    if not stages:
        return None
    return Curves(
        step=[part[-1]["step"] for part in parts],
        constants={stage: _stretches(parts, f"lider/λ/{stage}") for stage in stages},
        targets={stage: _stretches(parts, f"lider/c/{stage}") for stage in _stages(there, "c")},
        borders=borders,
    )


def _stages(lines: Sequence[Tree], symbol: str) -> list[str]:
    head = f"lider/{symbol}/"
    found = dict.fromkeys(name for line in lines for name in line["readings"])
    return [name.removeprefix(head) for name in found if name.startswith(head)]


def _stretches(parts: Sequence[Sequence[Tree]], name: str) -> list[float | None]:
    found: list[float | None] = []
    for part in parts:
        values = [line["readings"][name] for line in part if name in line["readings"]]
        finite = [value for value in values if value is not None and math.isfinite(value)]
        found.append(float(f"{fmean(finite):.4g}") if finite else None)
    return found


def _metrics(tree: Tree) -> Metrics:
    return Metrics(**{name: _round(tree.get(name)) for name in Metrics.model_fields})


def _mean(matrix: Sequence[Sequence[float | None]]) -> float | None:
    """Of the last row, where it has values."""
    values = [value for value in matrix[-1] if value is not None]
    return _round(fmean(values)) if values else None


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)


def _weights(run: RunFolder) -> str | None:
    """SHA-256 of the final network: runs of the same sum are equal to the bit. None: it is gone."""
    if not run.checkpoints.files():
        return None
    network: Mapping[str, Tensor] = run.state()["network"]
    sum_ = hashlib.sha256()
    for name in sorted(network):
        sum_.update(name.encode())
        sum_.update(network[name].contiguous().numpy().tobytes())
    return sum_.hexdigest()


def _analyses(path: Path) -> dict[str, Tree]:
    """What `lider analyze` has written beside the run, without its images."""
    found: dict[str, Tree] = {}
    for name, keys in KEPT.items():
        try:
            document = json.loads((path / "analysis" / name / "result.json").read_bytes())
        except (OSError, ValueError):
            continue
        measured = {key: document["measured"][key] for key in keys}
        found[name] = {"scale": document["scale"], **_thinned(measured)}
    return found


def _thinned(measured: Tree) -> Tree:
    """Long lists at most as long as a curve, with their first and last values."""
    return {key: _some(value) for key, value in measured.items()}


def _some(value: Any) -> Any:
    if isinstance(value, dict):
        return _thinned(value)
    if isinstance(value, float):
        return _round(value)
    if not isinstance(value, list):
        return value
    if len(value) > 2 * POINTS:
        last = len(value) - 1
        value = [value[round(i * last / (2 * POINTS))] for i in range(2 * POINTS + 1)]
    return [_some(one) for one in value]
