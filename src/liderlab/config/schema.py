"""What a run is: one YAML file, complete, checked, re-runnable. No torch needed to read it.

Values come from five places, later ones win: the defaults below, the benchmark's own defaults, a
preset, a configuration file, and single values (`training.lr=0.1`). A scale, last, lowers them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
)

from ..backbones import BACKBONES
from ..errors import UserError, unknown
from ..methods import METHODS
from ..registry import Registry
from ..regularizers import REGULARIZERS
from ..streams import BENCHMARKS
from ..streams.storage.location import absolute
from .messages import one_sentence
from .presets import preset
from .scale import SCALES, refuse_another
from .weight_names import wherever_we_are
from .yaml_values import Tree, YamlWriter


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Named(BaseModel):
    """A choice by name, with that choice's own options beside it; a bare name will do."""

    model_config = ConfigDict(extra="allow", frozen=True)
    name: str

    @property
    def options(self) -> Tree:
        return dict(self.model_extra or {})


def _bare_name(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


def _named(value: Any) -> Any:
    if not isinstance(value, (str, Mapping, BaseModel)):
        raise ValueError("expected a name, or fields with a name among them")
    return _bare_name(value)


def _class_order(value: Any) -> Any:
    """Here, because a union would answer a wrong one with its own notation."""
    listed = isinstance(value, (list, tuple)) and all(type(c) is int for c in value)
    if not listed and value not in ("natural", "shuffled"):
        raise ValueError("expected natural, shuffled, or a list of all classes like [3, 1, 2, 0]")
    return value


def _growing(milestones: list[int]) -> list[int]:
    if milestones != sorted({m for m in milestones if m > 0}):
        raise ValueError("expected epochs from 1 on, each later than the one before")
    return milestones


def _float32(value: float) -> float:
    if value > 1e38:
        raise ValueError("expected at most 1e38, about the most that float32 can hold")
    return value


DEVICES = re.compile(r"auto|cpu|mps|cuda(:\d{1,3})?")


def _device(value: Any) -> Any:
    if not isinstance(value, str) or not DEVICES.fullmatch(value):
        raise ValueError("expected cpu, cuda, cuda:1, …, mps or auto")
    return value


def _check_regularizers(regularizers: Any) -> None:
    """Here, because a bare name would be taken for a section with a name."""
    if not isinstance(regularizers, Mapping):
        raise UserError(
            "regularizers must hold names and their options, like {lider: {alpha: 0.1}}, "
            f"but got {regularizers!r}"
        )
    for name, options in regularizers.items():
        if not isinstance(options, Mapping | None):
            raise UserError(
                f"regularizers.{name} must hold options and their values, like {{alpha: 0.1}}, "
                f"but got {options!r}"
            )


def _own_folder(benchmark: Any) -> Any:
    """`folder:PATH` is the benchmark `folder` with its option `path`, wherever the run happens."""
    name = benchmark.get("name") if isinstance(benchmark, Mapping) else None
    if not isinstance(name, str) or not name.startswith("folder:"):
        return benchmark
    given = name.removeprefix("folder:")
    path = str(absolute(given)) if given else ""  # which it will ask for
    if benchmark.get("path", path) != path:
        raise UserError(
            f"benchmark {name} and benchmark.path={benchmark['path']} are two folders: name one"
        )
    return {**benchmark, "name": "folder", "path": path}


@dataclass(frozen=True)
class Interval:
    """How much may pass: a number of steps, or seconds."""

    steps: float = math.inf
    seconds: float = math.inf

    @classmethod
    def parse(cls, text: str) -> Interval:
        """
        >>> Interval.parse("200"), Interval.parse("5m")
        (Interval(steps=200, seconds=inf), Interval(steps=inf, seconds=300))
        """
        match = re.fullmatch(r"([1-9]\d{0,8})([smh]?)", text.strip())
        if not match:
            raise ValueError("expected steps like 200, or time like 30s, 5m or 1h")
        number, unit = int(match[1]), match[2]
        return cls(seconds=number * {"s": 1, "m": 60, "h": 3600}[unit]) if unit else cls(number)

    def due(self, steps: int, seconds: float) -> bool:
        return steps >= self.steps or seconds >= self.seconds


def _interval(value: Any) -> str:
    Interval.parse(str(value))
    return str(value)


Choice = Annotated[Named, BeforeValidator(_named)]


class BenchmarkSection(Named):
    """tasks: null takes the benchmark's own. class_order: natural, shuffled (by the run's seed), or
    a list of all classes. train_per_class, test_per_class: at most so many images, the first ones
    of each class; null takes all. validation: this share of the training images of each class takes
    the place of the test images, to choose hyperparameters by; null: test on the test images.
    device: where the images are; null leaves them on the host."""

    tasks: int | None = Field(None, ge=1)
    class_order: Annotated[
        Literal["natural", "shuffled"] | list[int], BeforeValidator(_class_order)
    ] = "natural"
    train_per_class: int | None = Field(None, ge=1, le=10**15)
    test_per_class: int | None = Field(None, ge=1, le=10**15)
    device: str | None = None
    validation: float | None = Field(None, gt=0, lt=1)


class MemorySection(Section):
    """size: samples in all. policy: null takes the method's own. offer: whether a sample passes the
    memory in every epoch (as released) or once. storage: where images are, in RAM or in files of
    the run's folder. device: where a memory in RAM is; null: where the network is."""

    size: int = Field(200, ge=0, le=10**15)
    policy: str | None = None
    offer: Literal["every-epoch", "once"] = "every-epoch"
    storage: Literal["ram", "disk"] = "ram"
    device: str | None = None
    poison: float = Field(0.0, ge=0, le=1)


class TrainingSection(Section):
    """SGD per task: lr · gamma^(milestones passed), milestones in epochs."""

    epochs: int = Field(5, ge=1, le=10**9)
    batch_size: int = Field(32, ge=2, le=10**9)
    replay_size: int | None = Field(None, ge=2, le=10**9, description="null: as many as batch_size")
    lr: Annotated[float, AfterValidator(_float32)] = Field(0.03, gt=0, allow_inf_nan=False)
    momentum: float = Field(0.0, ge=0, lt=1)
    weight_decay: Annotated[float, AfterValidator(_float32)] = Field(0.0, ge=0, allow_inf_nan=False)
    milestones: Annotated[list[int], AfterValidator(_growing)] = []
    gamma: float = Field(0.1, gt=0, le=1)


class ScaleSection(Section):
    """Which scale, and what it changed: {"training.epochs": {"from": 50, "to": 1}}.

    changes: null until it has been applied, which needs the complete configuration."""

    name: str
    changes: dict[str, Tree] | None = None


class RunConfig(Section):
    """A complete run. preset: what its values started from. scale: what made it smaller."""

    preset: str | None = None
    scale: Annotated[ScaleSection | None, BeforeValidator(_bare_name)] = None
    benchmark: Annotated[BenchmarkSection, BeforeValidator(_named)]
    method: Choice
    regularizers: dict[str, Tree] = {}
    backbone: Choice
    pretrained: str | None = Field(None, description="weights to start from: a file, or a name")
    memory: MemorySection = MemorySection()
    training: TrainingSection = TrainingSection()
    seed: int = Field(0, ge=0, lt=2**32)
    device: Annotated[str, BeforeValidator(_device)] = "cpu"
    precision: Literal["float32", "bfloat16", "float16"] = Field(
        "float32", description="of the network's passes in training; weights stay float32"
    )
    compile: Literal["inductor", "aot_eager", "eager"] | None = Field(
        None, description="torch.compile the network, by this backend; null: do not"
    )
    devices: int = Field(1, ge=1, le=4096, description="ranks that share the run, one device each")
    strategy: Literal["ddp", "ddp-syncbn"] = Field(
        "ddp", description="of several devices: BatchNorm over each one's rows, or over all"
    )
    threads: int | None = Field(
        None, ge=1, le=1024, description="of each process; null: as many as torch takes"
    )
    deterministic: bool | None = Field(None, description="null: yes on the CPU, no elsewhere")
    evaluate: Literal["every", "last"] = Field(
        "every", description="after every task, or after the last one only"
    )
    tracker: list[str] = Field([], description="also log to: tensorboard, wandb, mlflow")
    log_every: int = Field(10, ge=1, description="steps between lines of metrics.jsonl")
    checkpoint_every: Annotated[str, BeforeValidator(_interval)] = Field(
        "5m", description="steps (200) or time (30s, 5m, 1h); also at every task's end"
    )
    keep_tasks: bool = Field(False, description="keep the network after every task, in tasks/")
    on_nonfinite: Literal["stop", "skip"] = Field(
        "stop", description="what to do with a step whose loss or gradient is not finite"
    )

    def as_yaml(self) -> str:
        tree = self.model_dump(mode="json")
        return yaml.dump(tree, Dumper=YamlWriter, sort_keys=False, allow_unicode=True)


def make_config(*layers: Mapping[str, Any]) -> RunConfig:
    """Merge layers of (possibly nested) values over the defaults, check them, and fill the rest.

    >>> config = make_config({"method": "der++", "training": {"epochs": 3}})
    >>> config.method.name, config.training.epochs, config.memory.size
    ('der++', 3, 100)
    """
    given: Tree = {}
    for layer in layers:
        _refuse_another_start(given, layer)
        _check_regularizers(layer.get("regularizers", {}))
        given = merge(given, layer)
    complete = is_complete(given)
    if not complete:
        standard: Tree = {"benchmark": {"name": "split-digits"}, "method": {"name": "er-ace"}}
        if given.get("preset") is not None:
            standard = preset(str(given["preset"])).config
        given = merge(standard, given)
    given["benchmark"] = benchmark = _own_folder(_bare_name(given["benchmark"]))
    if isinstance(given.get("pretrained"), str):
        given["pretrained"] = wherever_we_are(given["pretrained"])
    name = benchmark.get("name") if isinstance(benchmark, Mapping) else benchmark
    defaults = BENCHMARKS.entry(str(name)).facts["defaults"]
    return stored_config(given if complete else merge(defaults, given))


def stored_config(tree: Mapping[str, Any]) -> RunConfig:
    """The configuration that a run's folder holds: nothing is left to be filled in.

    Its benchmark may be arrays that only another process knows (`add_benchmark`).
    """
    try:
        config = RunConfig.model_validate(_without_removed(tree))
    except ValidationError as error:
        raise UserError(one_sentence(error, RunConfig)) from None
    _check_names(config)
    return config


def is_complete(tree: Mapping[str, Any]) -> bool:
    """Whether it is what a run wrote down: neither preset nor benchmark have anything to add.

    What they would add is a regulariser that was removed, or one that the run never had.
    """
    return RunConfig.model_fields.keys() <= tree.keys()


def _without_removed(tree: Mapping[str, Any]) -> Tree:
    """`regularizers.lider: null` takes away what a preset, a file or a benchmark has put there."""
    regularizers = tree.get("regularizers")
    if not isinstance(regularizers, Mapping):
        return dict(tree)
    for name, options in regularizers.items():
        if options is None:
            REGULARIZERS.entry(str(name))  # a slip of the pen removes nothing
    kept = {name: options for name, options in regularizers.items() if options is not None}
    return {**tree, "regularizers": kept}


def _refuse_another_start(given: Mapping[str, Any], layer: Mapping[str, Any]) -> None:
    """Values that started from one preset or scale cannot take the name of another."""
    old, new = given.get("preset"), layer.get("preset")
    if old is not None and new is not None and old != new:
        raise UserError(f"this configuration started from preset {old}, not from {new}: choose one")
    if old is None and new is not None and is_complete(given):
        raise UserError(
            f"this configuration is a run's, with all its values: preset {new} has none to add"
        )
    refuse_another(given.get("scale"), layer.get("scale"))


def _check_names(config: RunConfig) -> None:
    chosen: list[tuple[Registry, str]] = [
        (METHODS, config.method.name),
        (BACKBONES, config.backbone.name),
        *((REGULARIZERS, name) for name in config.regularizers),
    ]
    for registry, name in chosen:
        registry.entry(name)
    if config.scale and config.scale.name not in SCALES:
        raise unknown("scale", config.scale.name, SCALES)


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> Tree:
    """Values of `above` over those of `below`, section by section.

    A section that names another choice starts afresh: options of `convnet-small` are none of
    `resnet18`'s business.
    """
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        old = _bare_name(old) if isinstance(value, Mapping) else old
        value = _bare_name(value) if isinstance(old, Mapping) else value
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            other = value.get("name", old.get("name")) != old.get("name")
            result[key] = dict(value) if other else merge(old, value)
        elif isinstance(value, Mapping) and old is not None:
            raise UserError(f"{key} must hold fields and their values, not {old!r}")
        else:
            result[key] = value
    return result
