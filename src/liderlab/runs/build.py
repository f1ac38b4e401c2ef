"""Build the objects of a run from its configuration."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch

from ..backbones import BACKBONES
from ..backbones.freezing import freeze
from ..backbones.lora import add_adapters
from ..backbones.network import Network, in_fast_layout
from ..backbones.third_party import as_backbone
from ..config.compatibility import check, check_stream
from ..config.field_values import DEVICES
from ..config.imports import import_checksums, load_imports
from ..config.merging import make_config, merge
from ..config.options import complete
from ..config.scale import shrink
from ..config.schema import RunConfig, StreamSection, TrainingSection
from ..distributed.batchnorm import share_batch_norm
from ..distributed.placement import local_ranks
from ..distributed.team import Team
from ..errors import UserError
from ..memory import POLICIES, Memory
from ..memory.poison import Poison
from ..methods import METHODS
from ..methods.base import Method
from ..registry import Entry
from ..regularizers import REGULARIZERS
from ..streams import BENCHMARKS
from ..streams.splitting import SplitStream, on_device
from ..training.anytime import Anytime
from ..training.budget import Budget, Unit
from ..training.early_stopping import EarlyStopping
from ..training.loop import Loop
from ..training.optimizers import OPTIMIZERS, make_clip, make_optimizer
from ..training.precision import check_precision
from ..training.randomness import Generators, derive
from ..training.schedules import SCHEDULES, make_schedule
from ..types import Recipe
from .benchmark_stream import benchmark_stream
from .out_of_memory import memory_for
from .pace import Pace
from .provenance import Origin, origin_of
from .weights import load_pretrained

log = logging.getLogger("liderlab")


@dataclass(frozen=True)
class Run:
    """A run that is ready to train. origin: fingerprint of its data, checksums of its files. pace:
    its speed, while it trains."""

    config: RunConfig
    stream: SplitStream
    loop: Loop
    origin: Origin
    pace: Pace


def completed(config: RunConfig) -> RunConfig:
    """The configuration with every open option filled in, and its scale applied."""
    load_imports(config.imports)
    check(config)
    tree: dict[str, Any] = config.model_dump()
    benchmark = find_benchmark(config)
    sections = {"benchmark": BENCHMARKS, "method": METHODS, "backbone": BACKBONES}
    for section, registry in sections.items():
        named = getattr(config, section)
        tree[section] |= complete(registry.load(named.name), named.options, named.name, section)
    suited = BACKBONES.entry(config.backbone.name).facts.get("suited", {})
    for name, given in config.regularizers.items():
        options = {**suited.get(name, {}), **given}
        tree["regularizers"][name] = complete(REGULARIZERS.load(name), options, name, "regularizer")
    for section, registry in {"optimizer": OPTIMIZERS, "schedule": SCHEDULES}.items():
        named = getattr(config.training, section)
        options = complete(registry.load(named.name), named.options, named.name, section)
        tree["training"][section] |= options
    tree["benchmark"]["then"] = [_completed_benchmark(later) for later in config.benchmark.then]
    policy = config.memory.policy or METHODS.class_of(config.method.name).policy
    POLICIES.entry(policy)
    filled = {
        "benchmark": {"tasks": config.benchmark.tasks or benchmark.facts.get("tasks")},
        "memory": {"policy": policy},
        "training": {"replay_size": config.training.replay_size or config.training.batch_size},
        "threads": config.threads or max(1, torch.get_num_threads() // local_ranks(config.devices)),
        "deterministic": find_device(config.device).type == "cpu"
        if config.deterministic is None
        else config.deterministic,
    }
    whole = make_config(shrink(merge(tree, filled)))
    _recipe(whole.training)  # refuses an optimizer or a schedule that cannot be made
    return whole


def _completed_benchmark(section: StreamSection) -> dict[str, Any]:
    """A benchmark that follows another."""
    entry = BENCHMARKS.entry(section.name)
    options = complete(entry.load(), section.options, section.name, "benchmark")
    tasks = section.tasks or entry.facts.get("tasks")
    return section.model_dump() | options | {"tasks": tasks}


def find_benchmark(config: RunConfig) -> Entry:
    """The registry's entry of the benchmark; explains how to add arrays of another process."""
    name = config.benchmark.name
    if name not in BENCHMARKS:
        raise UserError(
            f"this run trains on the arrays {name!r}, which this process does not have: in Python, "
            f"add_benchmark({name!r}, …) as before, then run(config, folder, existing='resume')"
        )
    return BENCHMARKS.entry(name)


def build(config: RunConfig, folder: Path | None = None, team: Team | None = None) -> Run:
    """Build the run of a complete configuration.

    folder: holds the images of a memory on disk. team: the ranks that train together.
    """
    device = find_device(config.device)
    check_precision(config.precision, device)
    generators = Generators(config.seed)
    with memory_for(f"the images of {config.benchmark.name}"):
        stream = build_stream(config)
    check_stream(config, stream)
    with memory_for(f"the network {config.backbone.name} on {device}"):
        method, network = build_network(config, len(stream.names), stream.image_shape)
        weights = None
        if config.pretrained is not None:
            weights = load_pretrained(network.backbone, config.pretrained, config.backbone)
        elif method.trains != "all" and config.extends is None:
            log.warning(
                "%s leaves the backbone as it starts, and this one is untrained: --pretrained "
                "names weights",
                config.method.name,
            )
        network = network.to(device)
    if config.benchmark.task_free and network.asks_task:
        raise UserError(f"{config.backbone.name} asks for tasks: leave out --task-free")
    if team and team.size > 1 and config.strategy == "ddp-syncbn":
        share_batch_norm(network, team)
    freeze(network, config.backbone.freeze)
    with memory_for(f"a buffer of {config.memory.size:,} samples"):
        memory = _build_memory(config, method, stream, device, folder)
    with memory_for(" and ".join([config.method.name, *config.regularizers])), _user_errors():
        loop = Loop(
            stream=stream,
            method=method,
            network=network,
            memory=memory,
            regularizers=[
                REGULARIZERS.load(name)(**options) for name, options in config.regularizers.items()
            ],
            recipe=_recipe(config.training),
            epochs=config.training.epochs,
            generators=generators,
            offer=config.memory.offer,
            on_nonfinite=config.on_nonfinite,
            look_every=1
            if device.type == "cpu" or config.on_nonfinite == "skip"
            else config.log_every,
            evaluate=config.after_tasks,
            budget=_budget(config, stream),
            stopping=_stopping(config, stream),
            anytime=Anytime(stream, *config.anytime) if config.anytime else None,
            precision=config.precision,
            compile=config.compile,
            team=team,
            optimizer_per_task=config.training.optimizer_per_task,
            heads=config.training.heads,
            task_free=config.benchmark.task_free,
        )
    _check_tasks(stream)
    loop.planned_steps()  # refuses an impossible plan before anything is written
    origin = origin_of(stream, weights, import_checksums(config.imports))
    return Run(config, stream, loop, origin, Pace(len(stream.tasks)))


def _check_tasks(stream: SplitStream) -> None:
    for task in stream.tasks:
        if len(task.train) < 2:
            raise UserError(
                f"task {task.index + 1} has a single training image, and BatchNorm needs two: "
                "make fewer tasks, or take more images of each class"
            )


def build_stream(config: RunConfig) -> SplitStream:
    stream, device = benchmark_stream(config), config.benchmark.device
    return stream if device is None else on_device(stream, find_device(device))


def build_network(
    config: RunConfig, classes: int, image_shape: tuple[int, int, int]
) -> tuple[Method, Network]:
    """The method and its network, with initial weights that depend on the seed alone."""
    load_imports(config.imports)
    with torch.random.fork_rng(), _user_errors():
        torch.manual_seed(derive(config.seed, "initial weights"))
        method: Method = METHODS.load(config.method.name)(**config.method.options)
        make = BACKBONES.load(config.backbone.name)
        backbone = make(classes=classes, image_shape=image_shape, **config.backbone.options)
        network = Network(as_backbone(backbone), method.readout(classes))
        if (lora := config.backbone.lora) is not None:  # last, so that they change no other draw
            add_adapters(network.backbone, lora.rank, lora.alpha, lora.modules)
    return method, in_fast_layout(network)


def _build_memory(
    config: RunConfig,
    method: Method,
    stream: SplitStream,
    device: torch.device,
    folder: Path | None,
) -> Memory:
    poison, section = None, config.memory
    if section.poison:
        classes = [task.classes for task in stream.tasks]
        poison = Poison(section.poison, classes, derive(config.seed, "poison"))
    return Memory(
        section.size if method.rehearsal else 0,
        stream.image_shape,
        method.columns(len(stream.names)),
        POLICIES.load(str(section.policy))(),
        poison,
        storage=section.storage,
        folder=folder,
        device=device if section.device is None else find_device(section.device),
    )


def _budget(config: RunConfig, stream: SplitStream) -> Budget | None:
    if config.training.budget is None:
        return None
    unit, amount = config.training.budget.chosen
    budget = Budget(cast("Unit", unit), amount)
    budget.check(len(stream.tasks))
    return budget


def _stopping(config: RunConfig, stream: SplitStream) -> EarlyStopping | None:
    patience, heads = config.training.patience, config.training.heads
    return EarlyStopping(patience.epochs, stream, heads == "task") if patience else None


def _recipe(training: TrainingSection) -> Recipe:
    return Recipe(
        lr=training.lr,
        momentum=training.momentum,
        weight_decay=training.weight_decay,
        batch_size=training.batch_size,
        replay_size=training.replay_size or training.batch_size,
        schedule=make_schedule(
            training.schedule.name,
            training.schedule.options,
            training.epochs,
            training.milestones,
            training.gamma,
        ),
        optimizer=make_optimizer(
            training.optimizer.name, training.optimizer.options, training.momentum
        ),
        updates=training.updates_per_batch,
        clip=make_clip(training.clip.norm, training.clip.value) if training.clip else None,
        drop_last=training.drop_last,
    )


def find_device(name: str) -> torch.device:
    """The device, if torch can compute on it here. auto: a GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if DEVICES.fullmatch(name):
        with suppress(RuntimeError, AssertionError):
            torch.zeros(1, device=name)
            return torch.device(name)
    raise UserError(f"device {name!r} is not available here: choose cpu or auto")


@contextmanager
def _user_errors() -> Iterator[None]:
    """Turn a constructor's ValueError about an option into a UserError."""
    try:
        yield
    except ValueError as error:
        raise UserError(str(error)) from None
