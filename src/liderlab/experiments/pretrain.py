"""Pre-training: one joint run on a whole benchmark, whose network other runs start from."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from ..errors import UserError
from .config import RunConfig, Tree, make_config
from .files import write_atomically
from .folder import RunFolder

RECIPE: Tree = {
    "benchmark": {"name": "split-tinyimagenet", "tasks": 1, "size": 32},
    "method": {"name": "joint"},
    "backbone": {"name": "resnet18"},
    "training": {
        "epochs": 50,
        "lr": 0.1,
        "milestones": [20, 30, 40, 45],
        "gamma": 0.5,
        "momentum": 0.0,
        "weight_decay": 0.0,
        "batch_size": 64,
    },
}
"""The paper's, supplementary material; it does not print batch size, momentum and weight decay:
those of its CIFAR-100 runs."""


def pretraining(*layers: Tree) -> RunConfig:
    """The configuration of a pre-training run: the paper's recipe, and what is different from it.

    >>> pretraining({"benchmark": "synthetic", "training": {"epochs": 2}}).training.gamma
    0.5
    """
    config = make_config(RECIPE, *layers, {"benchmark": {"tasks": 1}})
    if config.method.name != "joint":
        raise UserError(f"pre-training is a joint run, not one of {config.method.name}")
    return config


def name_of(config: RunConfig) -> str:
    """What its weights are called unless somebody says otherwise.

    >>> name_of(pretraining({"benchmark": "synthetic"}))
    'synthetic-resnet18'
    """
    size = config.benchmark.options.get("size", "")
    name = f"{config.benchmark.name.removeprefix('split-')}{size}-{config.backbone.name}"
    return re.sub(r"[^\w.+-]", "-", name)


def export_weights(run: str | Path, path: Path) -> dict[str, Any]:
    """Write the backbone of a finished run as a file for `--pretrained`; returns what it says."""
    import torch

    from ..backbones.foreign import Foreign
    from .build import build_network

    folder = RunFolder.open(run)
    config, result = folder.config(), folder.result()
    channels, height, width = result["image_shape"]
    _, network = build_network(config, len(result["classes"]), (channels, height, width))
    network.load_state_dict(folder.state()["network"])
    backbone = network.backbone
    body = backbone.network if isinstance(backbone, Foreign) else backbone
    about = {
        "backbone": config.backbone.model_dump(mode="json"),
        "benchmark": config.benchmark.model_dump(mode="json"),
        "classes": len(result["classes"]),
        "accuracy": result["class_incremental"]["faa"],
        "normalisation": result["normalisation"],
        "scale": result["scale"],
    }
    content = {"state_dict": body.state_dict(), "about": json.dumps(about)}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, lambda file: torch.save(content, file))
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None
    return about
