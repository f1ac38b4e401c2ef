"""The names that Mammoth gives to the parts of its ResNets."""

from __future__ import annotations

import re
from collections.abc import Mapping

from torch import Tensor


def is_mammoth(weights: Mapping[str, Tensor]) -> bool:
    """Whether these are the weights of a Mammoth ResNet, or of a whole Mammoth model."""
    return any(re.search(r"(^|\.)layer\d\.\d\.shortcut\.", name) for name in weights)


def in_our_names(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The network's weights by torchvision's names, which are ours; what belongs to the model
    around it (old networks, targets, buffers) is left out.

    >>> list(in_our_names({"net.layer2.0.shortcut.1.bias": Tensor(), "old_net.fc.bias": Tensor()}))
    ['layer2.0.downsample.1.bias']
    """
    prefix = "net." if any(name.startswith("net.") for name in weights) else ""
    own = {n.removeprefix(prefix): w for n, w in weights.items() if n.startswith(prefix)}
    names = {name: re.sub(r"^(linear|classifier)\.", "fc.", name) for name in own}
    return {names[n].replace(".shortcut.", ".downsample."): weight for n, weight in own.items()}
