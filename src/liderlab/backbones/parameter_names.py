"""Translate other projects' parameter names into ours, which are torchvision's."""

from __future__ import annotations

import re
from collections.abc import Mapping

from torch import Tensor


def in_our_names(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights under our names, if they are Mammoth's or Lite0's; else unchanged."""
    if any(re.search(r"(^|\.)layer\d\.\d\.shortcut\.", name) for name in weights):
        return _from_mammoth(weights)
    return _from_lite0(weights) if "_conv_stem.weight" in weights else dict(weights)


def _from_mammoth(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A ResNet of Mammoth, alone or in a whole model, whose other networks and buffers are dropped.

    >>> list(_from_mammoth({"net.layer2.0.shortcut.1.bias": Tensor(), "old_net.fc.bias": Tensor()}))
    ['layer2.0.downsample.1.bias']
    """
    prefix = "net." if any(name.startswith("net.") for name in weights) else ""
    own = {n.removeprefix(prefix): w for n, w in weights.items() if n.startswith(prefix)}
    names = {name: re.sub(r"^(linear|classifier)\.", "fc.", name) for name in own}
    return {names[n].replace(".shortcut.", ".downsample."): weight for n, weight in own.items()}


def _from_lite0(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """EfficientNet-Lite0's package: _blocks.3._bn1.weight is features.3.0.block.1.1.weight."""
    from .efficientnet import STAGES

    blocks = [(s + 1, j) for s, stage in enumerate(STAGES) for j in range(stage.blocks)]
    outside = {"_conv_stem": "features.0.0", "_bn0": "features.0.1", "_fc": "classifier.1"}
    outside |= {"_conv_head": "features.8.0", "_bn1": "features.8.1"}
    inside = ("_expand_conv", "_bn0", "_depthwise_conv", "_bn1", "_project_conv", "_bn2")
    renamed = {}
    for name, value in weights.items():
        first, _, rest = name.partition(".")
        if first != "_blocks":
            renamed[f"{outside.get(first, first)}.{rest}"] = value
            continue
        number, layer, rest = rest.split(".", 2)
        stage, j = blocks[int(number)]
        i = inside.index(layer) - (2 if number == "0" else 0)  # the first block does not expand
        renamed[f"features.{stage}.{j}.block.{i // 2}.{i % 2}.{rest}"] = value
    return renamed
