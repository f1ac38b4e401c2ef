"""Pre-trained weights: found by file, by run or by name, and loaded."""

from __future__ import annotations

import re
from pathlib import Path

from torch import nn

from ..backbones.lora import merged_weights
from ..backbones.pretrained import Misfit, Weights, imagenet_file, load_weights, read_weights
from ..config.schema import Named
from ..config.weight_backbone import backbone_of, described
from ..config.weight_names import IMAGENET, is_file_name, kept_weights
from ..errors import UserError
from ..files import checksum
from ..streams import BENCHMARKS
from ..streams.storage.location import expanded
from .checkpoints import MAGIC, Damaged, read_state
from .folder import RunFolder


def load_pretrained(backbone: nn.Module, pretrained: str, section: Named) -> dict[str, str]:
    """Load weights into the backbone of this section of a configuration, except its classifier;
    return name and checksum.

    pretrained: a file; a run's folder or checkpoint; `imagenet` for the weights published for the
    backbone; or the name under which `lider pretrain` has kept weights.
    """
    path = weights_file(pretrained, section.name)
    try:
        load_weights(backbone, weights_in(path), pretrained, section.name)
    except Misfit as error:
        owner = backbone_of(pretrained)
        if owner is None or owner == {"name": section.name, **section.options}:
            raise
        owned = f"they belong to {described(owner)}, which a run takes if it names no backbone"
        raise UserError(f"{error}; {owned}") from None
    return {"name": pretrained, "sha256": checksum(path)}


def weights_file(pretrained: str, backbone: str) -> Path:
    """The file that `pretrained` means."""
    if pretrained == IMAGENET:
        return imagenet_file(backbone)
    here, kept = expanded(pretrained), kept_weights(pretrained)
    if not is_file_name(pretrained) and kept.is_file():
        return kept
    if is_file_name(pretrained) or here.exists():
        return _checkpoint(here) if here.is_dir() else here
    raise UserError(
        f"there are no weights named {pretrained!r} ({kept}): pass a file, {IMAGENET}, or train "
        f"some with: lider pretrain --out {pretrained}{hint(pretrained)}"
    )


def weights_in(path: Path) -> Weights:
    """The weights in a file, which may be a run's checkpoint."""
    try:
        with path.open("rb") as file:
            is_checkpoint = file.read(len(MAGIC)) == MAGIC
    except OSError:
        is_checkpoint = False  # read_weights explains the error
    if not is_checkpoint:
        return read_weights(path)
    try:
        network: Weights = read_state(path)["network"]
    except Damaged as error:
        raise UserError(f"cannot read weights from {path}: {error}") from None
    network = merged_weights(network)
    body = {n.removeprefix("backbone."): v for n, v in network.items() if n.startswith("backbone.")}
    if all(name.startswith("network.") for name in body):  # a third-party backbone is wrapped
        return {name.removeprefix("network."): v for name, v in body.items()}
    return body


def _checkpoint(folder: Path) -> Path:
    run = RunFolder(folder)
    if not run.checkpoints.files():
        raise UserError(f"{folder} is a folder without a run's checkpoints: pass a file of weights")
    return run.last_checkpoint()


def hint(name: str) -> str:
    """The options of `lider pretrain` that a name like tinyimagenet32-resnet18 suggests.

    >>> hint("tinyimagenet32-resnet18")
    ' --benchmark split-tinyimagenet --size 32 --backbone resnet18'
    >>> hint("cifar100-resnet18")
    ' --benchmark split-cifar100 --backbone resnet18'
    >>> hint("cifar100-resnet18-width16")
    ' --benchmark split-cifar100 --backbone resnet18 --width 16'
    """
    for benchmark in sorted(BENCHMARKS, key=len, reverse=True):
        short = re.escape(benchmark.removeprefix("split-"))
        if match := re.fullmatch(rf"{short}(\d*)-(.+?)(?:-width(\d+))?", name):
            size = f" --size {match[1]}" if match[1] else ""
            width = f" --width {match[3]}" if match[3] else ""
            return f" --benchmark {benchmark}{size} --backbone {match[2]}{width}"
    return ""
