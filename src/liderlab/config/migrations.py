"""Complete configurations of every schema, brought to the current one. No torch needed.

A run writes a complete configuration: neither its preset nor its benchmark may add anything to it.
The number `schema` marks such a file; a field that it lacks takes the field's default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import UserError

SCHEMA = 5
SCHEMA_1 = {
    *("preset", "scale", "benchmark", "method", "regularizers", "backbone", "pretrained"),
    *("memory", "training", "seed", "device", "precision", "compile", "devices", "strategy"),
    *("threads", "deterministic", "evaluate", "tracker", "log_every", "checkpoint_every"),
    *("keep_tasks", "on_nonfinite"),
}
"""Fields of the last complete configuration that carried no number."""

NEW_FIELDS: dict[str, Any] = {
    "training.optimizer": {"name": "sgd", "nesterov": False, "dampening": 0.0},
    "training.optimizer_per_task": True,
    "training.clip": None,
    "training.schedule": {"name": "multistep", "by": "epoch", "warmup": 0.0},
    "training.heads": "all",
    "backbone.freeze": [],
    "training.updates_per_batch": 1,
    "training.budget": None,
    "training.patience": None,
    "imports": [],
    "benchmark.base": None,
    "benchmark.imbalance": 1.0,
    "benchmark.blurry": 0.0,
    "benchmark.noise": 0.0,
    "benchmark.task_free": False,
    "benchmark.room": 0,
    "benchmark.then": [],
    "extends": None,
    "training.drop_last": False,
    "regularizers.lider.target_lr": 1.0,
    "regularizers.lider.order": "c-0",
    "regularizers.lider.control": False,
    "regularizers.lider.calibrate": "start",
    "regularizers.lider.calibration_rows": 256,
    "regularizers.lider.calibration_augmented": False,
    "regularizers.lider.calibration_data": "fit",
    "backbone.lora": None,
}
"""Fields that joined with schemas 3 to 5, by dotted name, at the values of every older run. A run
that has these values keeps its identity (identity.py), so that older results still count for it."""

FEWEST = 16
"""Fields of the first one that could name a preset. A hand-written file has fewer."""

Tree = dict[str, Any]


def is_complete(tree: Mapping[str, Any]) -> bool:
    """Whether a run wrote it, even if it was edited since then."""
    return "schema" in tree or len(SCHEMA_1 & tree.keys()) >= FEWEST


def migrate(tree: Mapping[str, Any]) -> Tree:
    """A complete configuration of any schema in the current one.

    >>> migrate({"seed": 0, "precision": "bfloat16"})["precision"]
    'bfloat16'
    """
    number = tree.get("schema", 1)
    if type(number) is not int or number < 1:
        raise UserError(f"schema: expected a whole number from 1 to {SCHEMA}, but got {number!r}")
    if number > SCHEMA:
        raise UserError(
            f"a newer version of liderlab wrote this configuration: it has schema {number}, and "
            f"this version reads up to {SCHEMA}"
        )
    migrated = dict(tree)
    for step in STEPS[number - 1 :]:
        migrated = step(migrated)
    return {"schema": SCHEMA, **{k: v for k, v in migrated.items() if k != "schema"}}


def _to_2(tree: Tree) -> Tree:
    """Fields joined schema 1 one by one; runs before them did what these values say."""
    late = {"precision": "float32", "compile": None, "devices": 1, "strategy": "ddp"}
    return {**late, "evaluate": "every", "tracker": [], "keep_tasks": False, **tree}


def _to_3(tree: Tree) -> Tree:
    """Schema 3 added fields, and the last step adds them with its own."""
    return tree


def _to_4(tree: Tree) -> Tree:
    """The option `noise` of the synthetic benchmark is `pixel_noise` now: the field of that name
    means labels."""
    benchmark = tree.get("benchmark")
    if isinstance(benchmark, Mapping) and benchmark.get("name") == "synthetic":
        new = {"pixel_noise" if k == "noise" else k: v for k, v in benchmark.items()}
        tree = {**tree, "benchmark": new}
    return tree


def _to_5(tree: Tree) -> Tree:
    """Add the new fields to the sections, and to the regularisers, that the file has."""
    for name, value in NEW_FIELDS.items():
        tree = _with(tree, name, value)
    return tree


def _with(tree: Any, name: str, value: Any) -> Any:
    key, _, rest = name.partition(".")
    if not isinstance(tree, Mapping):  # removed, or refused later
        return tree
    if rest:
        return {**tree, key: _with(tree[key], rest, value)} if key in tree else tree
    return {key: value, **tree}


STEPS: tuple[Callable[[Tree], Tree], ...] = (_to_2, _to_3, _to_4, _to_5)
"""STEPS[n - 1] brings schema n to schema n + 1."""
