"""A sweep's file: the fields to vary, as a list of runs.

    base:     {benchmark: split-digits, training: {epochs: 2}}      # any configuration
    presets:  [cifar100-500-er-ace*]                                # names, or patterns
    points:   [{name: plain}, {name: lider, regularizers: {lider: {}}}]
    grid:     {method: [er, er-ace], training.lr: [0.1, 0.03]}      # every combination
    seeds:    3                                                     # 0, 1, 2; or a list

All are optional. There is a run for every combination of a preset, a point, a value of each field
of the grid, and a seed. Where two of them set the same field, the later one wins, in the order
preset, base, point, grid, seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from ..config.merging import make_config
from ..config.presets import preset, presets
from ..config.schema import RunConfig
from ..errors import UserError, unknown
from ..runs.build import completed
from ..runs.folder import RunFolder
from ..runs.planned_run import PlannedRun
from ..runs.trackers import check_installed
from .dotted_names import Tree, dotted, nested
from .memory_estimate import memory_need
from .run_names import joined, slug, value_label

FIELDS = ("base", "presets", "points", "grid", "seeds")
MOST = 100_000  # runs


@dataclass(frozen=True)
class SweepRun:
    """One run of a sweep. group: its name without the seed. fields: the values that vary."""

    plan: PlannedRun
    group: str
    fields: Tree


@dataclass(frozen=True)
class _Variant:
    """One choice along an axis. labels: for the name. layer: of the configuration. fields: for the
    table."""

    labels: list[str] = field(default_factory=list)
    layer: Tree = field(default_factory=dict)
    fields: Tree = field(default_factory=dict)


def read_sweep(tree: Mapping[str, Any], out: Path, threads: int) -> list[SweepRun]:
    """Every run of the sweep, with folders below `out`, in the order of the file.

    threads: of runs that set none; a run that was begun keeps its number.
    """
    for name in tree:
        if name not in FIELDS:
            raise unknown("field of a sweep", name, FIELDS)
    base = _mapping(tree, "base")
    axes = [_presets(tree), _points(tree), *_grid(tree)]
    seeds = _seeds(tree)
    if seeds != [None] and any("seed" in variant.layer for axis in axes for variant in axis):
        raise UserError("seed cannot be varied by points or grid where seeds are given: choose one")
    if len(seeds) * prod(map(len, axes)) > MOST:
        raise UserError(f"a sweep has at most {MOST:,} runs: vary less, or write several sweeps")
    found: dict[str, SweepRun] = {}
    for variants in product(*axes):
        for seed in seeds:
            run = _sweep_run(base, variants, seed, out, threads)
            name = run.plan.name
            if name in found:
                raise UserError(
                    f"two runs of the sweep are the same, or have the same name: {name}"
                )
            found[name] = run
    return list(found.values())


def _sweep_run(
    base: Tree, variants: Sequence[_Variant], seed: int | None, out: Path, threads: int
) -> SweepRun:
    preset_layer, *layers = [variant.layer for variant in variants]
    labels = [label for variant in variants for label in variant.labels]
    group = joined(labels) or "base"
    try:
        config = make_config(preset_layer, base, *layers, {} if seed is None else {"seed": seed})
        name = joined([*labels, f"seed={config.seed}"])
        folder = out / "runs" / name
        config = with_threads(config, threads, folder)
    except UserError as error:
        raise UserError(f"{group}: {error}") from None
    fields = {key: value for variant in variants for key, value in variant.fields.items()}
    return SweepRun(PlannedRun(name, config, folder), group, fields)


def with_threads(config: RunConfig, threads: int, folder: Path) -> RunConfig:
    """Complete the configuration and fix its number of threads, on which results depend.

    The number comes from the configuration, else from the run that was begun in the folder, else
    from `threads`.
    """
    if config.devices > 1:
        raise UserError(
            f"sweeps and searches put every run on one device, not on {config.devices}: leave out "
            "devices, or use lider run"
        )
    begun = RunFolder(folder) if RunFolder(folder).begun else None
    if config.threads is None:
        chosen = begun.config().threads if begun else threads
        config = config.model_copy(update={"threads": chosen})
    config = completed(config)
    if begun:
        begun.check_same(config)
    return config


def check_runs(runs: Sequence[SweepRun], device: str | None = None) -> None:
    """Refuse a sweep with a run that cannot begin. device: as for `check_config`."""
    for run in runs:
        try:
            check_config(run.plan.config, device)
        except UserError as error:
            raise UserError(f"{run.plan.name}: {error}") from None


def check_config(config: RunConfig, device: str | None = None) -> None:
    """Refuse a run that cannot begin, before any file is written.

    device: build the run there, if another machine will execute it.
    """
    check_installed(config.tracker)
    memory_need(config, device)


def _presets(tree: Mapping[str, Any]) -> list[_Variant]:
    if tree.get("presets") is None:
        return [_Variant()]
    chosen: list[str] = []
    for pattern in _list(tree["presets"], "presets"):
        names = [name for name in presets() if fnmatchcase(name, str(pattern))]
        chosen += names or [preset(str(pattern)).name]
    return [_Variant([name], {"preset": name}, {"preset": name}) for name in dict.fromkeys(chosen)]


def _points(tree: Mapping[str, Any]) -> list[_Variant]:
    if tree.get("points") is None:
        return [_Variant()]
    variants = []
    for number, point in enumerate(_list(tree["points"], "points"), 1):
        if not isinstance(point, Mapping):
            raise UserError(f"point {number} must hold fields and their values, not {point!r}")
        layer = nested({key: value for key, value in point.items() if key != "name"})
        fields = dotted(layer)
        labels = [value_label(key, value) for key, value in fields.items()]
        if "name" in point:
            labels, fields = [slug(str(point["name"]))], {"point": str(point["name"]), **fields}
        variants.append(_Variant(labels, layer, fields))
    return variants


def _grid(tree: Mapping[str, Any]) -> Iterator[list[_Variant]]:
    for key, values in dotted(_mapping(tree, "grid")).items():
        yield [
            _Variant([value_label(key, value)], nested({key: value}), {key: value})
            for value in _list(values, f"grid: {key}")
        ]


def _seeds(tree: Mapping[str, Any]) -> list[int | None]:
    seeds = tree.get("seeds")
    if seeds is None:
        return [None]
    if type(seeds) is int and seeds > 0:
        return list(range(min(seeds, MOST + 1)))  # more are refused in any case
    if isinstance(seeds, list) and seeds and all(type(seed) is int for seed in seeds):
        return list(seeds)
    raise UserError(f"seeds must be a number of seeds, or a list of them, not {seeds!r}")


def _list(values: Any, name: str) -> list[Any]:
    if not isinstance(values, list) or not values:
        raise UserError(f"{name} must be a list of values, not {values!r}")
    return values


def _mapping(tree: Mapping[str, Any], name: str) -> Tree:
    values = tree.get(name)
    if values is None:
        return {}
    if not isinstance(values, Mapping) or not all(isinstance(key, str) for key in values):
        raise UserError(f"{name} must hold fields and their values, not {values!r}")
    return nested(values)
