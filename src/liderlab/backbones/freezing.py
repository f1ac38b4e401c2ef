"""Freezing parts of a backbone: their weights and BatchNorm statistics stay as they are."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from ..errors import UserError
from .lora import LoRALinear, is_adapter
from .name_patterns import matching, shown
from .network import Network
from .third_party import last_linear

ALL_BUT_HEAD = "all-but-head"


def freeze(network: Network, patterns: Sequence[str] | str) -> None:
    """Train no backbone parameter whose name matches: `layer1`, `layer*.0.conv1`, `*.bias`.

    A pattern that names a module covers all parameters below it. "all-but-head" freezes all but the
    last linear layer. A BatchNorm that is frozen as a whole stays in eval mode.

    Adapters (`lora`) are always trained, and the weights that they adapt never. Beside them, a
    network without patterns trains its last linear layer alone.
    """
    backbone = network.backbone
    names = [shown(name) for name, _ in backbone.named_parameters() if not is_adapter(name)]
    adapted = {
        f"{shown(name)}.weight"
        for name, module in backbone.named_modules()
        if isinstance(module, LoRALinear)
    }
    if patterns == ALL_BUT_HEAD or (adapted and not patterns):
        head = shown(last_linear(backbone))
        frozen = {name for name in names if not name.startswith(f"{head}.")}
    else:
        frozen = {name for pattern in patterns for name in _matching(pattern, names)}
    for name, parameter in backbone.named_parameters():
        if shown(name) in frozen | adapted:
            parameter.requires_grad_(False)
    if patterns and not any(p.requires_grad for p in network.parameters()):
        raise UserError("backbone.freeze leaves nothing to train: freeze less")
    network.keep_in_eval([module for module in backbone.modules() if _still(module)])


def _matching(pattern: str, names: Sequence[str]) -> list[str]:
    found = matching(pattern, names)
    if not found:
        modules = dict.fromkeys(name.partition(".")[0] for name in names)
        raise UserError(
            f"backbone.freeze: {pattern!r} matches no parameter; the backbone has "
            f"{', '.join(modules)}, and parameters like {names[0]} below them"
        )
    return found


def _still(module: nn.Module) -> bool:
    own = list(module.parameters())
    return isinstance(module, _BatchNorm) and bool(own) and not any(p.requires_grad for p in own)
