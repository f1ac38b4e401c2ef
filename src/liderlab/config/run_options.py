"""The options of `lider run` and the keywords of `liderlab.run`: one name for one field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

from ..errors import UserError, unknown
from .schema import RunConfig
from .yaml_values import Tree

Choice = str | Mapping[str, Any]
"""A name, or {"name": …} with the options of that choice."""


class RunOptions(TypedDict, total=False):
    """None leaves a value to the defaults, the benchmark, the preset or the configuration file."""

    preset: str | None
    scale: str | None
    imports: Sequence[str] | None
    benchmark: Choice | None
    method: Choice | None
    lider: bool | Mapping[str, Any] | None
    lider_form: str | None
    lider_alpha: float | None
    lider_beta: float | None
    lider_on: str | None
    lider_draw: str | None
    lider_targets: Literal["learned", "fixed"] | None
    regularizers: Mapping[str, Mapping[str, Any] | None] | Sequence[str] | None
    buffer: int | None
    epochs: int | None
    batch_size: int | None
    lr: float | None
    backbone: Choice | None
    width: int | None
    freeze: str | Sequence[str] | None
    heads: Literal["all", "seen", "task"] | None
    pretrained: str | Path | None
    tasks: int | Sequence[int] | Sequence[Sequence[str]] | None
    base: int | None
    imbalance: float | None
    blurry: float | None
    task_free: bool | None
    class_order: str | Sequence[int] | None
    seed: int | None
    device: str | None
    memory_storage: str | None
    memory_device: str | None
    stream_device: str | None
    precision: str | None
    compile: bool | str | None
    evaluate: str | None
    threads: int | None
    devices: int | None
    strategy: str | None
    checkpoint_every: str | int | None
    on_nonfinite: str | None
    tracker: str | Sequence[str] | None
    deterministic: bool | None


FIELDS = {
    "tasks": "benchmark.tasks",
    "base": "benchmark.base",
    "imbalance": "benchmark.imbalance",
    "blurry": "benchmark.blurry",
    "task_free": "benchmark.task_free",
    "class_order": "benchmark.class_order",
    "stream_device": "benchmark.device",
    "width": "backbone.width",
    "freeze": "backbone.freeze",
    "heads": "training.heads",
    "buffer": "memory.size",
    "memory_storage": "memory.storage",
    "memory_device": "memory.device",
    "epochs": "training.epochs",
    "batch_size": "training.batch_size",
    "lr": "training.lr",
    "lider": "regularizers.lider",
    "lider_form": "regularizers.lider.form",
    "lider_alpha": "regularizers.lider.alpha",
    "lider_beta": "regularizers.lider.beta",
    "lider_on": "regularizers.lider.on",
    "lider_draw": "regularizers.lider.draw",
    "lider_targets": "regularizers.lider.learn_targets",
}
"""The field of every option that does not have the field's own name."""

TARGETS = {"learned": True, "fixed": False}


def run_layer(options: Mapping[str, Any]) -> Tree:
    """Options by name, as a layer of the configuration; other names are its fields.

    >>> run_layer({"method": "er", "lider": True, "buffer": 100, "seed": None})
    {'regularizers': {'lider': {}}, 'method': {'name': 'er'}, 'memory': {'size': 100}}
    """
    given = {name: value for name, value in options.items() if value is not None}
    layer: Tree = {}
    for name in sorted(given, key=_place):
        *sections, last = FIELDS.get(name, name).split(".")
        inner = layer
        for section in sections:
            inner[section] = inner = inner.get(section) or {}
        value = field_value(name, given[name])
        both = isinstance(value, dict) and isinstance(inner.get(last), dict)
        inner[last] = inner[last] | value if both else value
    return layer


def _place(name: str) -> int:
    """Sections of regularisers come before single fields of them; their order is that of the run's
    regularisers."""
    first = ("regularizers", "lider")
    return first.index(name) if name in first else len(first)


def field_value(name: str, value: Any) -> Any:
    """The value of the field for the value of the option."""
    if name in ("benchmark", "method", "backbone"):
        return dict(value) if isinstance(value, Mapping) else {"name": value}
    if name == "lider" and isinstance(value, bool):
        return {} if value else None  # null removes a preset's
    if name == "lider" and not isinstance(value, Mapping):
        raise UserError(f"lider must be True, False, or LiDER's options, not {value!r}")
    if name == "lider_targets":
        if value not in TARGETS:
            raise unknown("kind of targets", str(value), TARGETS)
        return TARGETS[value]
    if name == "regularizers" and isinstance(value, (list, tuple)):
        return {regularizer: {} for regularizer in value}
    if name == "regularizers" and not isinstance(value, Mapping):
        raise UserError(f"regularizers must be names, or names and their options, not {value!r}")
    if name == "compile" and isinstance(value, bool):
        return "inductor" if value else None
    if name == "tracker" and isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return dict(value)
    return str(value) if isinstance(value, Path) else value


def default_folder(config: RunConfig) -> Path:
    """The folder of a run that names none: its preset, or what it trains, and its seed."""
    name = "-".join([config.benchmark.name, config.method.name, *config.regularizers])
    return Path("runs") / f"{config.preset or name}-seed{config.seed}"
