"""What the machine has, and what a run needs of it."""

from __future__ import annotations

import json
import math
import os
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..config.merging import make_config
from ..config.schema import RunConfig
from ..runs.build import Run, build, completed

PROCESS = 300 * 2**20  # bytes of an idle worker: the interpreter, torch, and what they load


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def gpus() -> list[str]:
    """The names, for CUDA_VISIBLE_DEVICES, of the GPUs that this process may use."""
    if (visible := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        return [name for name in visible.split(",") if name]
    return [str(number) for number in range(torch.cuda.device_count())]


def available_memory() -> float:
    """Bytes that can be had without swapping; infinite where nobody can tell."""
    return min(_meminfo(), _cgroup())


def _meminfo() -> float:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return math.inf
    values = {line.split(":")[0]: line.split()[1] for line in lines if ":" in line}
    return 1024 * float(values.get("MemAvailable", math.inf))


def _cgroup(folder: Path = Path("/sys/fs/cgroup")) -> float:
    """What is left of a container's limit; file caches can be dropped, and do not count."""
    try:
        limit = (folder / "memory.max").read_text().strip()
        used = float((folder / "memory.current").read_text())
        lines = (folder / "memory.stat").read_text().splitlines()
        statistics = dict(line.split() for line in lines)
    except (OSError, ValueError):
        return math.inf
    if limit == "max":
        return math.inf
    return float(limit) - used + float(statistics.get("inactive_file", 0))


def resident_memory(pid: int | None) -> float:
    """Bytes that a process holds; 0 where nobody can tell."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError):
        return 0.0
    return float(pages * os.sysconf("SC_PAGE_SIZE"))


def memory_need(config: RunConfig, device: str | None = None) -> int:
    """Build the run, which checks that it can be built; estimate the bytes it will take.

        process + weights, gradients, optimizer and copies + memory + activations

    Configurations that differ in the seed or the learning rate are built once. device: build it
    there, when the run itself will be somewhere else.
    """
    if device is not None:
        config = config.model_copy(update={"device": device})
    tree = completed(config).model_dump(mode="json")
    fixed = ("preset", "seed", "threads", "deterministic", "log_every", "checkpoint_every")
    for name in fixed:
        tree.pop(name)
    sizes = ("batch_size", "replay_size")
    tree["training"] = {name: tree["training"][name] for name in sizes}
    return _need(json.dumps(tree, sort_keys=True))


@cache
def _need(text: str) -> int:
    tree: dict[str, Any] = json.loads(text)
    work = build(make_config(tree))
    image = math.prod(work.stream.image_shape)
    network = sum(p.nbytes for p in work.loop.network.parameters())
    row = image + 8 * len(work.stream.names) + 32
    memory = work.config.memory.size * row
    rows = work.config.training.batch_size + (work.config.training.replay_size or 0)
    # a checkpoint is a copy of network, optimizer and memory, made ready twice before it is written
    return int(PROCESS + 8 * network + 3 * memory + 2 * rows * _activations(work))


def _activations(work: Run) -> int:
    """Bytes per image of everything that the network's modules put out."""
    total = 0

    def count(module: nn.Module, inputs: object, output: object) -> None:
        nonlocal total
        if isinstance(output, torch.Tensor):
            total += output.nbytes

    network = work.loop.network
    leaves = [module for module in network.modules() if not list(module.children())]
    hooks = [leaf.register_forward_hook(count) for leaf in leaves]
    training = network.training
    network.eval()
    with torch.no_grad():
        device = next(network.parameters()).device
        network(torch.zeros(1, *work.stream.image_shape, device=device))
    network.train(training)
    for hook in hooks:
        hook.remove()
    return total
