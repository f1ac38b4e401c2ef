"""The backbone that pre-trained weights belong to, where their file or their run tells it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..streams.storage.location import expanded
from .migrations import migrate
from .schema import bare_name
from .weight_names import IMAGENET, is_file_name, kept_weights
from .yaml_values import Tree, read_yaml


def backbone_of(pretrained: str) -> Tree | None:
    """Name and options of the backbone of these weights; None if they do not tell it.

    pretrained: a file of `lider pretrain`, the name it was kept under, a run's folder or one of its
    checkpoints.
    """
    if pretrained == IMAGENET:
        return None
    here, kept = expanded(pretrained), kept_weights(pretrained)
    path = kept if not is_file_name(pretrained) and kept.is_file() else here
    run = (
        path if path.is_dir() else path.parent.parent if path.parent.name == "checkpoints" else None
    )
    backbone = _of_run(run) if run else _of_file(path)
    named = isinstance(backbone, Mapping) and isinstance(backbone.get("name"), str)
    # what that run froze, and its adapters, which are merged, are no part of the network
    return {k: v for k, v in backbone.items() if k not in ("freeze", "lora")} if named else None


def described(backbone: Tree) -> str:
    """
    >>> described({"name": "resnet18", "width": 8})
    'resnet18 (width 8)'
    """
    options = [f"{key} {value}" for key, value in backbone.items() if key != "name"]
    return backbone["name"] + (f" ({', '.join(options)})" if options else "")


def _of_run(folder: Path) -> Any:
    try:
        return bare_name(migrate(read_yaml(folder / "config.yaml")).get("backbone"))
    except UserError:
        return None  # loading the weights explains it


def _of_file(path: Path) -> Any:
    import torch

    try:
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        return json.loads(content["about"])["backbone"]
    except Exception:  # a foreign file, or none: loading the weights explains it
        return None
