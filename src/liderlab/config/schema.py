"""The fields of a run's configuration. No torch needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from .field_values import (
    ANYTIME_IMAGES,
    EVERY_STEPS,
    ClassOrder,
    Count,
    Device,
    Evaluate,
    Finite32,
    Interval,
    Milestones,
    Patterns,
    Tasks,
)
from .migrations import SCHEMA, migrate
from .yaml_values import Tree, YamlWriter

Scope = Literal["experiment", "study", "resume", "processes"]


class MayDiffer:
    """Marks a field that is no part of the experiment: it may differ between repetitions of one,
    which the report and the ledger group.

    also: "study": between runs that a study takes for the same. "resume": between a run and its
    resumption. "processes": between the ranks of a run, or the commands that share a search.
    """

    def __init__(self, *also: Scope) -> None:
        self.within = {"experiment", *also}


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


Choice = Annotated[Named, BeforeValidator(_named)]


class StreamSection(Named):
    """tasks: their number (null takes the benchmark's own), the number of classes of each, or their
    class names. base: the first task's number of classes; the other tasks share the rest equally.
    class_order: natural, shuffled (by the run's seed), or a list of all classes. train_per_class,
    test_per_class: use the first so many images of each class; null uses all. imbalance: the
    rarest class's share of the most frequent one's training images. blurry: share of each class's
    training images that go to other tasks. noise: share of wrong training labels. These three are
    drawn by the run's seed."""

    tasks: Tasks = None
    base: int | None = Field(None, ge=1)
    class_order: ClassOrder = "natural"
    train_per_class: Count = None
    test_per_class: Count = None
    imbalance: float = Field(1.0, gt=0, le=1)
    blurry: float = Field(0.0, ge=0, lt=1)
    noise: float = Field(0.0, ge=0, lt=1)

    @property
    def class_names(self) -> list[list[str]]:
        """The class names of each task, if the tasks are given so."""
        tasks = self.tasks if isinstance(self.tasks, list) else []
        return [names for names in tasks if isinstance(names, list)]


class BenchmarkSection(StreamSection):
    """device: holds the images; null leaves them on the host. validation: this share of each
    class's training images replaces the test images, to choose hyperparameters by; null evaluates
    on the test images. task_free: train in one pass, without telling the method where a task begins
    or ends. room: outputs that the network has for classes to come. then: benchmarks with other
    classes, whose tasks follow."""

    device: Annotated[str | None, MayDiffer()] = None
    validation: float | None = Field(None, gt=0, lt=1)
    task_free: bool = False
    room: int = Field(0, ge=0, le=10**6)
    then: list[Annotated[StreamSection, BeforeValidator(_named)]] = []


class MemorySection(Section):
    """size: samples in all. policy: null takes the method's own. offer: offer a sample to the
    memory in every epoch (as released) or once. storage: keep the images in RAM, or in files of the
    run folder. device: of a memory in RAM; null: the network's. poison: share of wrong labels."""

    size: int = Field(200, ge=0, le=10**15)
    policy: str | None = None
    offer: Literal["every-epoch", "once"] = "every-epoch"
    storage: Annotated[Literal["ram", "disk"], MayDiffer()] = "ram"
    device: Annotated[str | None, MayDiffer()] = None
    poison: float = Field(0.0, ge=0, le=1)


class LoraSection(Section):
    """Adapters W + alpha/rank · B A. modules: patterns of the linear layers that have one."""

    rank: int = Field(8, ge=1, le=2**20)
    alpha: Finite32 = Field(16.0, gt=0, allow_inf_nan=False)
    modules: list[str] = Field(["*.attn.*", "*.mlp.*"], min_length=1)


class BackboneSection(Named):
    """freeze: patterns of parameters that are not trained, like [conv1, layer1.*], or all-but-head;
    an empty list trains all. lora: adapters of low rank, and then an empty list trains these and
    the head; null has none."""

    freeze: Patterns = []
    lora: LoraSection | None = None


class OptimizerSection(Named):
    name: str = "sgd"


class ScheduleSection(Named):
    name: str = "multistep"


class ClipSection(Section):
    """Clip the gradient of a step: its norm to at most `norm`, or each number to ±`value`."""

    norm: Finite32 | None = Field(None, gt=0, allow_inf_nan=False)
    value: Finite32 | None = Field(None, gt=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _one(self) -> ClipSection:
        if (self.norm is None) == (self.value is None):
            raise ValueError("expected either norm or value, like {norm: 1.0}")
        return self


class BudgetSection(Section):
    """Compute of the whole run in place of epochs: steps, passes of single images forward through
    the network, or seconds of training."""

    steps: Count = None
    passes: Count = None
    seconds: float | None = Field(None, gt=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _one(self) -> BudgetSection:
        if sum(amount is not None for _, amount in self) != 1:
            raise ValueError("expected one of steps, passes and seconds, like {steps: 1000}")
        return self

    @property
    def chosen(self) -> tuple[str, float]:
        return next((unit, amount) for unit, amount in self if amount is not None)


class PatienceSection(Section):
    """Early stopping: a task's training ends after so many epochs in a row without a new best
    accuracy on `validation`, a share of its training images held back, and goes back to the best
    weights. A bare number is epochs."""

    epochs: int = Field(ge=1, le=10**9)
    validation: float = Field(0.1, gt=0, lt=1)


def _patience(value: Any) -> Any:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return {"epochs": value} if number else value


class TrainingSection(Section):
    """milestones, gamma: of the multistep schedule, lr · gamma^(milestones passed), in epochs of a
    task. replay_size: of a replay batch; null takes batch_size. drop_last: leave out the last batch
    of an epoch if it is short and not the only one. optimizer_per_task: make a new optimizer for
    every fit, or keep its state. heads: the classes that compete for a row in training: all, those
    seen so far, or those of the row's own task (one head per task). updates_per_batch: steps on
    every batch of the stream, each with other replayed samples; the memory is offered the batch
    once."""

    epochs: int = Field(5, ge=1, le=10**9)
    batch_size: int = Field(32, ge=2, le=10**9)
    replay_size: int | None = Field(None, ge=2, le=10**9)
    drop_last: bool = False
    lr: Finite32 = Field(0.03, gt=0, allow_inf_nan=False)
    momentum: float = Field(0.0, ge=0, lt=1)
    weight_decay: Finite32 = Field(0.0, ge=0, allow_inf_nan=False)
    milestones: Milestones = []
    gamma: float = Field(0.1, gt=0, le=1)
    optimizer: Annotated[OptimizerSection, BeforeValidator(_named)] = OptimizerSection(
        nesterov=False, dampening=0.0
    )
    optimizer_per_task: bool = True
    heads: Literal["all", "seen", "task"] = "all"
    clip: ClipSection | None = None
    updates_per_batch: int = Field(1, ge=1, le=10**6)
    budget: BudgetSection | None = None
    patience: Annotated[PatienceSection | None, BeforeValidator(_patience)] = None
    schedule: Annotated[ScheduleSection, BeforeValidator(_named)] = ScheduleSection(
        by="epoch", warmup=0.0
    )


class ScaleSection(Section):
    """A scale and its changes: {"training.epochs": {"from": 50, "to": 1}}; null until they have
    been made, which needs the complete configuration."""

    name: str
    changes: Annotated[dict[str, Tree] | None, MayDiffer()] = None


class RunConfig(Section):
    """A run. Written to a file, the number `schema` comes before the fields.

    preset, scale: the values started from this preset, and this scale lowered them. extends: a
    finished run, whose state this one goes on from. imports: Python
    files that register methods, regularisers, backbones or benchmarks. pretrained: weights to start
    from, a file or a name. precision: of the network's passes in training; weights stay float32.
    compile: the backend of torch.compile; null does not compile. devices: ranks that share the run,
    one device each. strategy: with several devices, BatchNorm over each one's rows (ddp) or over
    all rows (ddp-syncbn). threads: of each process; null takes torch's number. deterministic: null
    means yes on the CPU, no elsewhere. evaluate: after every task, the same on seen tasks only
    (without FWT), after the last one only, or after every task and every 50 steps (every:50), with
    up to 200 images of each task or another number of them (every:50:1000). tracker: also log to
    tensorboard, wandb, mlflow. log_every: steps between lines of metrics.jsonl. checkpoint_every:
    steps (200) or time (30s, 5m, 1h); the end of a task always has a checkpoint. keep_tasks: keep
    the network after every task, in tasks/. on_nonfinite: stop at a step whose loss or gradient is
    not finite, or skip it.
    """

    preset: Annotated[str | None, MayDiffer()] = None
    extends: str | None = None
    # a path makes no experiment: the registered names do, and the files' content is checked where a
    # run is resumed, and between its ranks (runs/provenance.py)
    imports: Annotated[list[str], MayDiffer("study", "resume", "processes")] = []
    scale: Annotated[ScaleSection | None, BeforeValidator(bare_name)] = None
    benchmark: Annotated[BenchmarkSection, BeforeValidator(_named)]
    method: Choice
    regularizers: dict[str, Tree] = {}
    backbone: Annotated[BackboneSection, BeforeValidator(_named)]
    pretrained: str | None = None
    memory: MemorySection = MemorySection()
    training: TrainingSection = TrainingSection()
    seed: Annotated[int, MayDiffer()] = Field(0, ge=0, lt=2**32)
    device: Annotated[Device, MayDiffer()] = "cpu"
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    compile: Literal["inductor", "aot_eager", "eager"] | None = None
    devices: Annotated[int, MayDiffer("study", "resume")] = Field(1, ge=1, le=4096)
    strategy: Annotated[Literal["ddp", "ddp-syncbn"], MayDiffer("study", "resume")] = "ddp"
    threads: Annotated[int | None, MayDiffer("study", "processes")] = Field(None, ge=1, le=1024)
    deterministic: Annotated[bool | None, MayDiffer()] = None
    evaluate: Evaluate = "every"
    tracker: Annotated[list[str], MayDiffer("resume")] = []
    log_every: Annotated[int, MayDiffer("study")] = Field(10, ge=1)
    checkpoint_every: Annotated[Interval, MayDiffer("study", "resume")] = "5m"
    keep_tasks: Annotated[bool, MayDiffer()] = False
    on_nonfinite: Annotated[Literal["stop", "skip"], MayDiffer("study", "resume")] = "stop"

    @model_validator(mode="before")
    @classmethod
    def _migrated(cls, tree: Any) -> Any:
        if not isinstance(tree, Mapping):
            return tree
        return {field: value for field, value in migrate(tree).items() if field != "schema"}

    @model_serializer(mode="wrap")
    def _numbered(self, dump: SerializerFunctionWrapHandler) -> Tree:
        return {"schema": SCHEMA, **dump(self)}

    @property
    def after_tasks(self) -> Literal["every", "seen", "last"]:
        """What is evaluated at the end of tasks."""
        if self.evaluate == "seen":
            return "seen"
        return "last" if self.evaluate == "last" else "every"

    @property
    def anytime(self) -> tuple[int, int] | None:
        """Steps between evaluations during a task, and images of each task."""
        if not (match := EVERY_STEPS.fullmatch(self.evaluate)):
            return None
        return int(match[1]), int(match[2] or ANYTIME_IMAGES)

    def as_yaml(self) -> str:
        tree = self.model_dump(mode="json")
        return yaml.dump(tree, Dumper=YamlWriter, sort_keys=False, allow_unicode=True)
