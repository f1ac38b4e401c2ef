"""Calls that would load torch's compiler, made without it.

torch loads its compiler (`torch._dynamo`) when an optimizer is made, takes a step or saves its
state, and when deterministic algorithms are demanded: that takes as long as loading torch itself.
In a process that has not loaded it, nothing is compiled, and the same functions are called here
without the decorators that load it.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.optim import Optimizer
from torch.optim.optimizer import _global_optimizer_post_hooks, _global_optimizer_pre_hooks

MARK = "__dynamo_disable"
"""Where torch keeps the uncompiled form of a function, once it has asked its compiler for it."""


def compiler_loaded() -> bool:
    return "torch._dynamo" in sys.modules


def set_deterministic(wanted: bool) -> None:
    """As `torch.use_deterministic_algorithms`, which also tells the compiler."""
    if compiler_loaded():
        torch.use_deterministic_algorithms(wanted)
    else:
        torch.set_deterministic_debug_mode("error" if wanted else "default")


@contextmanager
def eager_bookkeeping() -> Iterator[None]:
    """Make an optimizer in this context, and save or load its state."""
    if compiler_loaded():
        yield
        return
    decorated = (Optimizer.add_param_group, Optimizer.state_dict, Optimizer.load_state_dict)
    functions = [inspect.unwrap(function) for function in decorated]
    for function in functions:
        setattr(function, MARK, function)
    try:
        yield
    finally:
        for function in functions:
            delattr(function, MARK)


def eager_step(optimizer: Optimizer) -> None:
    """`optimizer.step()`."""
    own = optimizer._optimizer_step_pre_hooks, optimizer._optimizer_step_post_hooks
    hooks = any((*own, _global_optimizer_pre_hooks, _global_optimizer_post_hooks))
    if compiler_loaded() or hooks or not type(optimizer).__module__.startswith("torch.optim."):
        optimizer.step()
    else:
        with torch.no_grad():
            inspect.unwrap(type(optimizer).step)(optimizer)
