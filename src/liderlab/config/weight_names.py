"""Names of pre-trained weights: a file, a run, a name, or imagenet. No torch needed."""

from __future__ import annotations

import os
from pathlib import Path

from ..streams.storage.location import data_folder, expanded

IMAGENET = "imagenet"
SUFFIX = ".pt"


def is_file_name(text: str) -> bool:
    return "/" in text or "\\" in text or Path(text).suffix in (SUFFIX, ".pth", ".bin", ".ckpt")


def kept_weights(name: str) -> Path:
    """The file of the weights with that name, below the data folder."""
    return data_folder() / "weights" / f"{name}{SUFFIX}"


def with_absolute_path(pretrained: str) -> str:
    """The same weights under a name that is valid in every folder: files by their absolute path.

    >>> with_absolute_path("imagenet"), with_absolute_path("/data/w.pt")
    ('imagenet', '/data/w.pt')
    """
    here, kept = expanded(pretrained), kept_weights(pretrained)
    is_name = pretrained == IMAGENET or os.path.isfile(kept) or not os.path.exists(here)
    return os.path.abspath(here) if is_file_name(pretrained) or not is_name else pretrained
