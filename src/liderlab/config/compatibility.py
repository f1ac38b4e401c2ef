"""Which methods and regularisers make sense together. The table of what does not:

=============================== ================================= =================================
regulariser                     with                              why not
=============================== ================================= =================================
one that listens to replay      a method without memory           there is nothing to hear (LiDER on
                                                                  the stream is fine)
one that works from task to     a method that does not train on   there is no last task to stay
task (oewc, olap, ssgd)         task after task (joint, gdumb)    close to, or to slow down after
=============================== ================================= =================================

A memory policy that does not choose from the stream (herding) belongs to the methods that choose
themselves (icarl), and they to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import UserError
from ..memory import POLICIES
from ..methods import METHODS
from ..regularizers import REGULARIZERS
from .schema import RunConfig


def check(config: RunConfig) -> None:
    """Refuse what cannot work, in one sentence."""
    method = config.method.name
    rehearses = METHODS.class_of(method).rehearsal
    if rehearses and config.memory.size < 2:
        raise UserError(
            f"{method} rehearses and needs a memory: a buffer of 2 samples or more, "
            f"not {config.memory.size} (--buffer 100)"
        )
    if config.memory.poison and not rehearses:
        raise UserError(f"{method} has no memory, and memory.poison would poison nothing")
    if config.memory.storage == "disk" and config.memory.device is not None:
        raise UserError("a memory on disk is on no device: leave out --memory-device")
    _check_policy(method, config.memory.policy)
    for name, options in config.regularizers.items():
        if reason := why_not(method, name, options):
            raise UserError(reason)


def _check_policy(method: str, policy: str | None) -> None:
    made = METHODS.class_of(method)
    if policy is None or not made.rehearsal:
        return
    chosen, usual = (
        POLICIES.entry(name).facts.get("from_stream", True) for name in (policy, made.policy)
    )
    if chosen != usual:
        raise UserError(
            f"{method} cannot use the memory policy {policy!r}: its own is {made.policy!r}"
        )


def why_not(method: str, regularizer: str, options: Mapping[str, Any]) -> str | None:
    """Why these two make no sense together; None if they do.

    >>> why_not("er-ace", "lider", {}) is None
    True
    """
    host, guest = METHODS.class_of(method), REGULARIZERS.class_of(regularizer)
    if guest.needs_memory and not host.rehearsal and options.get("on") != "stream":
        rehearsing = [name for name in METHODS if METHODS.class_of(name).rehearsal]
        return (
            f"{regularizer} listens to replayed samples and {method} has no memory: choose a "
            f"method that rehearses ({', '.join(rehearsing)}), or --{regularizer}-on stream"
        )
    if options.get("on") == "stream" and host.fits_memory:
        return (
            f"{method} trains on its memory alone, so {regularizer} would hear nothing on the "
            f"stream: leave out --{regularizer}-on stream"
        )
    if guest.task_by_task and not host.task_by_task:
        return (
            f"{regularizer} works from task to task, and {method} does not train task by task: "
            "choose another method or regularizer"
        )
    return None
