"""Combinations of method, regulariser and memory that cannot work:

=============================== ================================= =================================
regulariser                     with                              why not
=============================== ================================= =================================
one that needs a memory (lider, a method without memory           there are no replayed samples
casper, star, …)                                                  (LiDER on the stream is fine)
lider on the stream, or both    a method that trains on its       there are no stream samples
                                memory alone (gdumb)
lider calibrated after the      a method that does not train on   there is no network after the
first task                      task after task (joint, gdumb)    first task
any                             a method that trains nothing      it has no steps to change
                                (ncm)
one that acts on features       a method with a frozen backbone   there are no features to change
(lider, casper, bfp)            (linear-probe)
one that works from task to     a method that does not train on   there is no last task to stay
task (oewc, bfp, …)             task after task (joint, gdumb)    close to, or to slow down after
=============================== ================================= =================================

The policy herding does not choose from the stream: it goes with methods that choose exemplars
themselves (icarl), and they need it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any

from ..errors import UserError
from ..memory import POLICIES
from ..methods import METHODS
from ..regularizers import REGULARIZERS
from .schema import RunConfig

if TYPE_CHECKING:
    from ..methods.base import Method
    from ..streams.splitting import SplitStream

DEFAULTS = ("sgd", "multistep")
"""Names of the optimizer and the schedule that a configuration has if it chooses none."""


def check(config: RunConfig) -> None:
    """Refuse a configuration that cannot work, in one sentence."""
    method, benchmark = config.method.name, config.benchmark
    made = METHODS.class_of(method)
    if benchmark.base is not None and isinstance(benchmark.tasks, list):
        raise UserError("benchmark.base needs the number of tasks, not a list: --base 50 --tasks 6")
    if benchmark.class_names and benchmark.class_order != "natural":
        raise UserError("the class names in benchmark.tasks set the order: leave out class_order")
    if made.rehearsal and config.memory.size < 2:
        raise UserError(
            f"{method} rehearses and needs a memory: a buffer of 2 samples or more, "
            f"not {config.memory.size} (--buffer 100)"
        )
    if config.memory.poison and not made.rehearsal:
        raise UserError(f"{method} has no memory: leave out memory.poison")
    if config.memory.storage == "disk" and config.memory.device is not None:
        raise UserError("a memory on disk has no device: leave out --memory-device")
    training = config.training
    if made.fits_memory and (training.optimizer.name, training.schedule.name) != DEFAULTS:
        raise UserError(
            f"{method} fits its memory by SGD with a schedule of its own: leave out "
            "training.optimizer and training.schedule"
        )
    if config.backbone.lora is not None and made.trains != "all":
        part = "nothing" if made.trains == "nothing" else "the last layer alone"
        raise UserError(f"{method} trains {part}, and adapters would stay: leave out backbone.lora")
    _check_length(config, made)
    if config.anytime and not made.task_by_task:
        raise UserError(
            f"{method} does not train task by task, so no accuracy can drop in between: choose "
            "--evaluate every or last"
        )
    if training.heads not in made.heads:
        raise UserError(
            f"{method} cannot be trained with training.heads={training.heads}: choose "
            f"{' or '.join(made.heads)}"
        )
    policy = config.memory.policy
    if made.rehearsal and policy is not None and _streams(policy) != _streams(made.policy):
        raise UserError(
            f"{method} cannot use the memory policy {policy!r}: its own is {made.policy!r}"
        )
    for name, options in config.regularizers.items():
        if reason := why_not(method, name, options):
            raise UserError(reason)
    if benchmark.task_free:
        _check_task_free(config)


def _check_task_free(config: RunConfig) -> None:
    """Refuse everything that would need, or reveal, the boundaries of tasks."""
    method, training = config.method.name, config.training
    if not METHODS.class_of(method).task_free:
        fine = ", ".join(_known(lambda made: made.task_free))
        raise UserError(
            f"{method} needs to know where a task begins or ends: leave out --task-free, or choose "
            f"another method ({fine})"
        )
    for name, options in config.regularizers.items():
        if REGULARIZERS.class_of(name).task_by_task or options.get("rows") == "past":
            raise UserError(
                f"{name} needs to know where a task begins or ends: leave out --task-free, or "
                f"{'rows: past' if options.get('rows') == 'past' else name}"
            )
    if training.heads != "all":
        raise UserError(
            f"training.heads={training.heads} needs task boundaries: all, or no --task-free"
        )
    if training.epochs != 1:
        raise UserError(f"a task-free stream passes once: --epochs 1, not {training.epochs}")
    if training.budget:
        raise UserError("a task-free stream passes once: leave out training.budget")
    if training.schedule.name == "cosine" or training.schedule.options.get("warmup"):
        raise UserError(
            "a task-free stream has no tasks for the learning rate to follow: leave out "
            "training.schedule"
        )


def check_stream(config: RunConfig, stream: SplitStream) -> None:
    """Refuse a method whose tasks cannot be those of the stream."""
    method, name = config.method.name, config.benchmark.name
    if not METHODS.class_of(method).new_classes:
        return
    fine = ", ".join(_known(lambda made: not made.new_classes))
    if stream.setting == "domain-incremental":
        raise UserError(
            f"{method} needs new classes in every task, and {name} has the same classes in all of "
            f"them: choose another method ({fine})"
        )
    if config.benchmark.blurry:
        raise UserError(
            f"{method} needs tasks of new classes only, and --blurry mixes them: leave it out, or "
            f"choose another method ({fine})"
        )


def _known(wanted: Callable[[type[Method]], bool]) -> list[str]:
    """The methods of this kind, without those of installed packages."""
    names = [name for name, entry in METHODS.items() if not entry.installed]
    return [name for name in names if wanted(METHODS.class_of(name))]


def _check_length(config: RunConfig, made: type[Method]) -> None:
    """Refuse fields that decide how long a task is trained where they contradict each other."""
    training, method = config.training, config.method.name
    given = [name for name in ("budget", "patience") if getattr(training, name) is not None]
    given += ["updates_per_batch"] if training.updates_per_batch > 1 else []
    if given and made.trains == "nothing":
        raise UserError(
            f"{method} trains nothing and passes each task once: leave out training.{given[0]}"
        )
    if given and made.fits_memory:
        raise UserError(
            f"{method} fits its memory for a number of passes of its own: leave out "
            f"training.{given[0]}"
        )
    if training.budget and training.patience:
        raise UserError(
            "training.budget and training.patience both decide when a task ends: choose one"
        )
    scale = config.scale
    if training.budget and scale and scale.name != "paper" and scale.changes is None:
        raise UserError(
            f"scale {scale.name} lowers the epochs, and a budget replaces them: leave out "
            "--scale, or training.budget"
        )
    if training.patience and training.epochs == 1:
        raise UserError("early stopping needs 2 epochs or more: raise training.epochs")


def _streams(policy: str) -> bool:
    """Whether a memory policy chooses samples from the stream."""
    return bool(POLICIES.entry(policy).facts.get("from_stream", True))


def why_not(method: str, regularizer: str, options: Mapping[str, Any]) -> str | None:
    """The reason why these two cannot work together, in one sentence; None if they can.

    >>> why_not("er-ace", "lider", {}) is None
    True
    """
    host, guest = METHODS.class_of(method), REGULARIZERS.class_of(regularizer)
    if host.trains == "nothing":
        return f"{method} trains nothing that {regularizer} could change: leave out {regularizer}"
    if host.trains == "head" and guest.on_features:
        return (
            f"{regularizer} acts on the backbone's features, and {method} keeps the backbone "
            "frozen: choose another method or regularizer"
        )
    if guest.needs_memory and not host.rehearsal and options.get("on") != "stream":
        rehearsing = _known(lambda made: made.rehearsal)
        instead = f", or --{regularizer}-on stream" if "on" in signature(guest).parameters else ""
        return (
            f"{regularizer} needs replayed samples and {method} has no memory: choose a "
            f"method that rehearses ({', '.join(rehearsing)}){instead}"
        )
    if (on := options.get("on")) in ("stream", "both") and host.fits_memory:
        return (
            f"{method} trains on its memory alone, so {regularizer} would have no samples on the "
            f"stream: leave out --{regularizer}-on {on}"
        )
    if options.get("calibrate") == "first-task" and not host.task_by_task:
        return (
            f"{method} does not train task by task: there is no network after the first task to "
            f"calibrate {regularizer} on"
        )
    if guest.task_by_task and not host.task_by_task:
        return (
            f"{regularizer} works from task to task, and {method} does not train task by task: "
            "choose another method or regularizer"
        )
    return None
