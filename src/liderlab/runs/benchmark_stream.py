"""The stream of a run: its benchmark, split into tasks as the configuration says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from ..config.schema import RunConfig, StreamSection
from ..errors import UserError, unknown
from ..streams import BENCHMARKS
from ..streams.changes import blurred, long_tail, relabelled
from ..streams.extension import append, with_room
from ..streams.splitting import SplitStream, divide, even_sizes, shuffled_order
from ..streams.subsets import hold_back, hold_out, limit_per_class
from ..training.randomness import derive

Make = Callable[..., SplitStream]


def benchmark_stream(config: RunConfig) -> SplitStream:
    """The stream, with its images on the host."""
    section = config.benchmark
    stream = _part(section, config)
    outputs = len(stream.names) + section.room
    for later in section.then:
        stream = append(stream, _part(later, config))
    return with_room(stream, outputs)


def _part(section: StreamSection, config: RunConfig) -> SplitStream:
    make: Make = partial(BENCHMARKS.load(section.name), **section.options)
    order = _class_order(section, make, config.seed)
    stream = _split(section, make, order)
    stream = hold_out(stream, config.benchmark.validation)
    stream = limit_per_class(stream, section.train_per_class, section.test_per_class)
    if section.imbalance < 1:
        numbers = order or range(len(stream.names))
        stream = long_tail(stream, section.imbalance, numbers, derive(config.seed, "imbalance"))
    if patience := config.training.patience:
        stream = hold_back(stream, patience.validation)
    if section.blurry:
        stream = blurred(stream, section.blurry, derive(config.seed, "blurry"))
    if section.noise:
        stream = relabelled(stream, section.noise, derive(config.seed, "label noise"))
    return stream


def _class_order(section: StreamSection, make: Make, seed: int) -> list[int] | None:
    """The order of the classes; None is the benchmark's own."""
    order = section.class_order
    if isinstance(order, list):
        return order
    if order == "shuffled":
        return shuffled_order(len(make(tasks=1).names), derive(seed, "class order"))
    named = [name for task in section.class_names for name in task]
    return _positions(named, make(tasks=1).names) if named else None


def _positions(named: Sequence[str], names: Sequence[str]) -> list[int]:
    for name in named:
        if name not in names:
            raise unknown("class", name, names)
    if len(named) != len(names) or set(named) != set(names):
        raise UserError(
            f"benchmark.tasks names {len(named)} classes, {len(set(named))} of them different: "
            f"name each of the {len(names)} classes of the data once"
        )
    return [names.index(name) for name in named]


def _split(section: StreamSection, make: Make, order: list[int] | None) -> SplitStream:
    tasks = section.tasks
    if section.base is None and not isinstance(tasks, list):
        return make(tasks=tasks, class_order=order)
    whole = make(tasks=1, class_order=order)
    if whole.setting == "domain-incremental":
        raise UserError(
            f"{section.name} has the same classes in every task: --tasks takes the number of its "
            "domains, without --base"
        )
    sizes = [n if isinstance(n, int) else len(n) for n in tasks] if isinstance(tasks, list) else []
    if section.base is not None:
        sizes = _with_base(section.base, tasks, len(whole.names))
    return replace(whole, tasks=divide(whole.tasks[0], sizes))


def _with_base(base: int, tasks: object, classes: int) -> list[int]:
    """Classes of each task: the base, then equal shares of the rest."""
    if not isinstance(tasks, int):
        raise UserError("choose the number of tasks: --base 50 --tasks 6")
    if base + tasks - 1 > classes or (tasks == 1 and base < classes):
        more = "s" * (tasks != 2)
        raise UserError(
            f"a base of {base} classes and {tasks - 1} further task{more} do not add up to "
            f"{classes} classes: each class belongs to one task, each task has one or more"
        )
    return [base] if tasks == 1 else [base, *even_sizes(classes - base, tasks - 1)]
