"""Where pre-trained weights are, by file or by name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from torch import nn

from ..backbones.pretrained import Weights, imagenet_weights, load_weights, read_weights
from ..errors import UserError
from ..streams.location import data_folder

IMAGENET = "imagenet"
SUFFIX = ".pt"


def load_pretrained(backbone: nn.Module, pretrained: str, name: str) -> None:
    """Start the backbone of that name from published or own weights; its classifier stays new.

    pretrained: a file; `imagenet`, what is published for the backbone; or a name under which
    `lider pretrain` has kept weights.
    """
    load_weights(backbone, find_weights(pretrained, name), pretrained)


def find_weights(pretrained: str, backbone: str) -> Weights:
    if pretrained == IMAGENET:
        return imagenet_weights(backbone)
    if is_file_name(pretrained):
        return read_weights(Path(pretrained).expanduser())
    path = kept_weights(pretrained)
    if not path.is_file():
        raise UserError(
            f"there are no weights named {pretrained!r} ({path}): pass a file, {IMAGENET}, or "
            f"train some with: lider pretrain --out {pretrained}{hint(pretrained)}"
        )
    return read_weights(path)


def is_file_name(text: str) -> bool:
    return "/" in text or "\\" in text or Path(text).suffix in (SUFFIX, ".pth", ".bin", ".ckpt")


def kept_weights(name: str) -> Path:
    """Where weights of that name are kept: below the data folder."""
    return data_folder() / "weights" / f"{name}{SUFFIX}"


def hint(name: str) -> str:
    """The options of `lider pretrain` that a name like tinyimagenet32-resnet18 stands for."""
    match: Any = re.fullmatch(r"([a-z]+)(\d+)-(.+)", name)
    if not match:
        return ""
    return f" --benchmark split-{match[1]} --size {match[2]} --backbone {match[3]}"
