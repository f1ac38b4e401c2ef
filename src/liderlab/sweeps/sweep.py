"""A sweep's file: what is varied over what, as a list of runs.

    base:     {benchmark: split-digits, training: {epochs: 2}}      # any configuration
    presets:  [cifar100-500-er-ace*]                                # names, or patterns
    points:   [{name: plain}, {name: lider, regularizers: {lider: {}}}]
    grid:     {method: [er, er-ace], training.lr: [0.1, 0.03]}      # every combination
    seeds:    3                                                     # 0, 1, 2; or a list

All are optional, and there is a run for every combination of a preset, a point, a value of each
field of the grid, and a seed. Later ones win: preset, base, point, grid, seed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from ..config.diff import flat
from ..config.merging import make_config
from ..config.presets import preset, presets
from ..config.schema import RunConfig
from ..errors import UserError, unknown
from ..runs.build import completed
from ..runs.folder import RunFolder
from ..runs.planned_run import PlannedRun
from ..runs.trackers import check_installed
from .resources import memory_need

Tree = dict[str, Any]
FIELDS = ("base", "presets", "points", "grid", "seeds")
LONGEST = 120  # bytes of a folder's name
MOST = 100_000  # runs


@dataclass(frozen=True)
class Point:
    """One run of a sweep. group: its name without the seed. fields: what makes it differ."""

    plan: PlannedRun
    group: str
    fields: Tree


@dataclass(frozen=True)
class _Choice:
    """One value along one axis: what it is called, and what it sets."""

    names: list[str] = field(default_factory=list)
    layer: Tree = field(default_factory=dict)
    fields: Tree = field(default_factory=dict)


def read_sweep(tree: Mapping[str, Any], out: Path, threads: int) -> list[Point]:
    """Every run of the sweep, below `out`, in the order of the file.

    threads: for runs that do not say how many; one that was begun with another number keeps it.
    """
    for name in tree:
        if name not in FIELDS:
            raise unknown("field of a sweep", name, FIELDS)
    base = _mapping(tree, "base")
    axes = [_presets(tree), _points(tree), *_grid(tree)]
    seeds = _seeds(tree)
    if seeds != [None] and any("seed" in choice.layer for axis in axes for choice in axis):
        raise UserError("seed cannot be varied by points or grid where seeds are given: choose one")
    if len(seeds) * prod(map(len, axes)) > MOST:
        raise UserError(f"a sweep has at most {MOST:,} runs: vary less, or make several of it")
    found: dict[str, Point] = {}
    for choices in product(*axes):
        for seed in seeds:
            point = _point(base, choices, seed, out, threads)
            if point.plan.name in found:
                raise UserError(
                    f"two runs of the sweep are the same, or would be called the same: "
                    f"{point.plan.name}"
                )
            found[point.plan.name] = point
    return list(found.values())


def _point(
    base: Tree, choices: Sequence[_Choice], seed: int | None, out: Path, threads: int
) -> Point:
    preset_choice, *others = choices
    layers = [preset_choice.layer, base, *(choice.layer for choice in others)]
    parts = [name for choice in choices for name in choice.names]
    group = _short(",".join(parts)) or "base"
    try:
        config = make_config(*layers, {} if seed is None else {"seed": seed})
        name = _short(",".join([*parts, f"seed={config.seed}"]))
        config, folder = with_threads(config, threads, out / "runs" / name), out / "runs" / name
    except UserError as error:
        raise UserError(f"{group}: {error}") from None
    fields = {key: value for choice in choices for key, value in choice.fields.items()}
    return Point(PlannedRun(name, config, folder), group, fields)


def with_threads(config: RunConfig, threads: int, folder: Path) -> RunConfig:
    """The complete configuration; results depend on the number of threads, so it is settled once.

    What says how many, in this order: the configuration, the run's folder, `threads`.
    """
    if config.devices > 1:
        raise UserError(
            f"sweeps and searches put every run on one device, not on {config.devices}: leave out "
            "devices, or use lider run"
        )
    there = RunFolder(folder)
    if config.threads is None:
        chosen = there.config().threads if there.begun else threads
        config = config.model_copy(update={"threads": chosen})
    config = completed(config)
    if there.begun:
        there.check_same(config)
    return config


def check_points(points: Sequence[Point], device: str | None = None) -> None:
    """Build every run that differs in more than a number, before the first one starts.

    device: build them there, if they will run on other machines.
    """
    for point in points:
        try:
            check_config(point.plan.config, device)
        except UserError as error:
            raise UserError(f"{point.plan.name}: {error}") from None


def check_config(config: RunConfig, device: str | None = None) -> None:
    """Refuse a run that could not begin, before anything is written."""
    check_installed(config.tracker)
    memory_need(config, device)


def _presets(tree: Mapping[str, Any]) -> list[_Choice]:
    if tree.get("presets") is None:
        return [_Choice()]
    chosen: list[str] = []
    for pattern in _list(tree["presets"], "presets"):
        names = [name for name in presets() if fnmatchcase(name, str(pattern))]
        chosen += [name for name in names or [preset(str(pattern)).name] if name not in chosen]
    return [_Choice([name], {"preset": name}, {"preset": name}) for name in chosen]


def _points(tree: Mapping[str, Any]) -> list[_Choice]:
    if tree.get("points") is None:
        return [_Choice()]
    choices = []
    for number, point in enumerate(_list(tree["points"], "points"), 1):
        if not isinstance(point, Mapping):
            raise UserError(f"point {number} must hold fields and their values, not {point!r}")
        layer = _nested({key: value for key, value in point.items() if key != "name"})
        fields = _leaves(layer)
        names = [_label(key, value) for key, value in fields.items()]
        if "name" in point:
            names, fields = [_slug(str(point["name"]))], {"point": str(point["name"]), **fields}
        choices.append(_Choice(names, layer, fields))
    return choices


def _grid(tree: Mapping[str, Any]) -> Iterator[list[_Choice]]:
    for key, values in flat(_mapping(tree, "grid")).items():
        yield [
            _Choice([_label(key, value)], _nested({key: value}), {key: value})
            for value in _list(values, f"grid: {key}")
        ]


def _seeds(tree: Mapping[str, Any]) -> list[int | None]:
    seeds = tree.get("seeds")
    if seeds is None:
        return [None]
    if isinstance(seeds, int) and not isinstance(seeds, bool) and seeds > 0:
        return list(range(min(seeds, MOST + 1)))  # more are refused, whatever else is varied
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
    return _nested(values)


def _nested(fields: Mapping[str, Any]) -> Tree:
    """Dotted names as sections.

    >>> _nested({"training.lr": 0.1, "training.epochs": 2, "seed": 0})
    {'training': {'lr': 0.1, 'epochs': 2}, 'seed': 0}
    """
    tree: Tree = {}
    for key, value in fields.items():
        *sections, last = str(key).split(".")
        place = tree
        for section in sections:
            place = place.setdefault(section, {})
            if not isinstance(place, dict):
                raise UserError(f"{key} and {section} cannot both be given: put one in the other")
        place[last] = value
    return tree


def _leaves(tree: Mapping[str, Any], prefix: str = "") -> Tree:
    """Values by their dotted names, an empty section being a value too.

    >>> _leaves({"regularizers": {"lider": {}}, "training": {"lr": 0.1}})
    {'regularizers.lider': {}, 'training.lr': 0.1}
    """
    items: Tree = {}
    for key, value in tree.items():
        inside = _leaves(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {}
        items |= inside or {f"{prefix}{key}": value}
    return items


def _label(key: str, value: Any) -> str:
    """What a value is called in names: depends on nothing else, so that a run keeps its name.

    >>> _label("training.lr", 0.1), _label("method", "er-ace"), _label("memory.size", 50)
    ('lr=0.1', 'er-ace', 'memory.size=50')
    >>> _label("regularizers.lider.alpha", 0.3), _label("regularizers", {})
    ('lider.alpha=0.3', 'regularizers=none')
    """
    if key.startswith("regularizers.") and value == {}:
        return _slug(key.removeprefix("regularizers."))
    if key in ("preset", "method", "benchmark", "backbone") and isinstance(value, str):
        return _slug(value)
    return _slug(f"{key.removeprefix('training.').removeprefix('regularizers.')}={_text(value)}")


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        items = _leaves(value).items()
        return "+".join(k if v == {} else f"{k}={_text(v)}" for k, v in items) or "none"
    if isinstance(value, list):
        return "-".join(_text(item) for item in value) or "none"
    return value if isinstance(value, str) else json.dumps(value)


def _slug(text: str) -> str:
    return re.sub(r"[^\w.+=-]+", "-", text).lstrip(".-") or "-"


def _short(name: str) -> str:
    whole = name.encode()
    if len(whole) <= LONGEST:
        return name
    start = whole[:LONGEST].decode(errors="ignore")  # perhaps cut within a letter
    return f"{start}~{hashlib.sha256(whole).hexdigest()[:8]}"
