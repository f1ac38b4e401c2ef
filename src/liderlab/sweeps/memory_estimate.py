"""An estimate of the bytes that a run will need."""

from __future__ import annotations

import json
import math
from functools import cache

import torch
from torch import nn

from ..config.identity import may_differ
from ..config.merging import stored_config
from ..config.schema import RunConfig
from ..runs.build import Run, build, completed

PROCESS = 300 * 2**20  # bytes of an idle worker: the interpreter, torch and their libraries


def memory_need(config: RunConfig, device: str | None = None) -> int:
    """Build the run, which checks that it can be built, and estimate its bytes:

        process + weights, gradients, optimizer and copies + memory + activations

    Configurations that differ only in fields that do not affect the estimate, like the seed, are
    built once. device: build the run there, if another machine will execute it.
    """
    if device is not None:
        config = config.model_copy(update={"device": device})
    tree = completed(config).model_dump(mode="json")
    for name, field in RunConfig.model_fields.items():
        if name in may_differ("experiment") - {"device"}:
            tree[name] = field.get_default(call_default_factory=True)
    tree["training"] = {name: tree["training"][name] for name in ("batch_size", "replay_size")}
    return _need(json.dumps(tree, sort_keys=True))


@cache
def _need(text: str) -> int:
    work = build(stored_config(json.loads(text)))
    image = math.prod(work.stream.image_shape)
    network = sum(p.nbytes for p in work.loop.network.parameters())
    row = image + 8 * len(work.stream.names) + 32
    memory = work.config.memory.size * row
    rows = work.config.training.batch_size + (work.config.training.replay_size or 0)
    # a checkpoint copies network, optimizer and memory twice before it is written
    return int(PROCESS + 8 * network + 3 * memory + 2 * rows * _activations(work))


def _activations(work: Run) -> int:
    """Bytes per image of the outputs of the network's modules."""
    total = 0

    def count(module: nn.Module, inputs: object, output: object) -> None:
        nonlocal total
        if isinstance(output, torch.Tensor):
            total += output.nbytes

    network = work.loop.network
    for module in network.modules():
        if not list(module.children()):
            module.register_forward_hook(count)
    network.eval()
    with torch.no_grad():
        device = next(network.parameters()).device
        network(torch.zeros(1, *work.stream.image_shape, device=device))
    return total
