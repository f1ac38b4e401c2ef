"""The fields of a run's configuration, and what is allowed in them. No torch needed."""

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
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from .migrations import SCHEMA, migrate
from .yaml_values import Tree, YamlWriter

Scope = Literal["experiment", "study", "resume", "processes"]


class MayDiffer:
    """Marks a field as no part of the experiment, and says between which runs it may differ.

    experiment: runs that the report and the ledger take for repetitions of one experiment.
    study: runs that a study takes for the same run. resume: a run before and after it is resumed.
    processes: the ranks of a run, and the commands that go on with a search. A field without the
    mark is part of the experiment and differs in none of these.
    """

    def __init__(self, *within: Scope) -> None:
        self.within: frozenset[Scope] = frozenset(within)


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Named(BaseModel):
    """A choice by name, with that choice's own options beside it; a bare name will do."""

    model_config = ConfigDict(extra="allow", frozen=True)
    name: str

    @property
    def options(self) -> Tree:
        return dict(self.model_extra or {})


def bare_name(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


def _named(value: Any) -> Any:
    if not isinstance(value, (str, Mapping, BaseModel)):
        raise ValueError("expected a name, or fields with a name among them")
    return bare_name(value)


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


@dataclass(frozen=True)
class CheckpointInterval:
    """How much may pass: a number of steps, or seconds."""

    steps: float = math.inf
    seconds: float = math.inf

    @classmethod
    def parse(cls, text: str) -> CheckpointInterval:
        """
        >>> CheckpointInterval.parse("200"), CheckpointInterval.parse("5m")
        (CheckpointInterval(steps=200, seconds=inf), CheckpointInterval(steps=inf, seconds=300))
        """
        match = re.fullmatch(r"([1-9]\d{0,8})([smh]?)", text.strip())
        if not match:
            raise ValueError("expected steps like 200, or time like 30s, 5m or 1h")
        number, unit = int(match[1]), match[2]
        return cls(seconds=number * {"s": 1, "m": 60, "h": 3600}[unit]) if unit else cls(number)

    def due(self, steps: int, seconds: float) -> bool:
        return steps >= self.steps or seconds >= self.seconds


def _interval(value: Any) -> str:
    CheckpointInterval.parse(str(value))
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
    device: Annotated[str | None, MayDiffer("experiment")] = None
    validation: float | None = Field(None, gt=0, lt=1)


class MemorySection(Section):
    """size: samples in all. policy: null takes the method's own. offer: whether a sample passes the
    memory in every epoch (as released) or once. storage: where images are, in RAM or in files of
    the run's folder. device: where a memory in RAM is; null: where the network is."""

    size: int = Field(200, ge=0, le=10**15)
    policy: str | None = None
    offer: Literal["every-epoch", "once"] = "every-epoch"
    storage: Annotated[Literal["ram", "disk"], MayDiffer("experiment")] = "ram"
    device: Annotated[str | None, MayDiffer("experiment")] = None
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
    changes: Annotated[dict[str, Tree] | None, MayDiffer("experiment")] = None


class RunConfig(Section):
    """A complete run. preset: what its values started from. scale: what made it smaller."""

    preset: Annotated[str | None, MayDiffer("experiment")] = None
    scale: Annotated[ScaleSection | None, BeforeValidator(bare_name)] = None
    benchmark: Annotated[BenchmarkSection, BeforeValidator(_named)]
    method: Choice
    regularizers: dict[str, Tree] = {}
    backbone: Choice
    pretrained: str | None = Field(None, description="weights to start from: a file, or a name")
    memory: MemorySection = MemorySection()
    training: TrainingSection = TrainingSection()
    seed: Annotated[int, MayDiffer("experiment")] = Field(0, ge=0, lt=2**32)
    device: Annotated[str, BeforeValidator(_device), MayDiffer("experiment")] = "cpu"
    precision: Literal["float32", "bfloat16", "float16"] = Field(
        "float32", description="of the network's passes in training; weights stay float32"
    )
    compile: Literal["inductor", "aot_eager", "eager"] | None = Field(
        None, description="torch.compile the network, by this backend; null: do not"
    )
    devices: Annotated[int, MayDiffer("experiment", "study", "resume")] = Field(
        1, ge=1, le=4096, description="ranks that share the run, one device each"
    )
    strategy: Annotated[
        Literal["ddp", "ddp-syncbn"], MayDiffer("experiment", "study", "resume")
    ] = Field("ddp", description="of several devices: BatchNorm over each one's rows, or over all")
    threads: Annotated[int | None, MayDiffer("experiment", "study", "processes")] = Field(
        None, ge=1, le=1024, description="of each process; null: as many as torch takes"
    )
    deterministic: Annotated[bool | None, MayDiffer("experiment")] = Field(
        None, description="null: yes on the CPU, no elsewhere"
    )
    evaluate: Literal["every", "last"] = Field(
        "every", description="after every task, or after the last one only"
    )
    tracker: Annotated[list[str], MayDiffer("experiment", "resume")] = Field(
        [], description="also log to: tensorboard, wandb, mlflow"
    )
    log_every: Annotated[int, MayDiffer("experiment", "study")] = Field(
        10, ge=1, description="steps between lines of metrics.jsonl"
    )
    checkpoint_every: Annotated[
        str, BeforeValidator(_interval), MayDiffer("experiment", "study", "resume")
    ] = Field("5m", description="steps (200) or time (30s, 5m, 1h); also at every task's end")
    keep_tasks: Annotated[bool, MayDiffer("experiment")] = Field(
        False, description="keep the network after every task, in tasks/"
    )
    on_nonfinite: Annotated[Literal["stop", "skip"], MayDiffer("experiment", "study", "resume")] = (
        Field("stop", description="what to do with a step whose loss or gradient is not finite")
    )

    @model_validator(mode="before")
    @classmethod
    def _migrated(cls, tree: Any) -> Any:
        if not isinstance(tree, Mapping):
            return tree
        return {field: value for field, value in migrate(tree).items() if field != "schema"}

    @model_serializer(mode="wrap")
    def _numbered(self, dump: SerializerFunctionWrapHandler) -> Tree:
        return {"schema": SCHEMA, **dump(self)}

    def as_yaml(self) -> str:
        tree = self.model_dump(mode="json")
        return yaml.dump(tree, Dumper=YamlWriter, sort_keys=False, allow_unicode=True)
