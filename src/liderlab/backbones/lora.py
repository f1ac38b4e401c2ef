"""LoRA (Hu et al., 2022): linear layers that stay, each with a trained update of low rank.

One file instead of a package: `loralib` has no adapter for a layer that is there, and by default
adds the update to the weights for evaluation and subtracts it again, which rounds; `peft` renames
parameters and needs transformers and accelerate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt

from torch import Tensor, nn
from torch.nn.functional import linear

from ..errors import UserError
from .name_patterns import matching, shown
from .third_party import last_linear

A, B, SCALE = "lora_a", "lora_b", "lora_scale"
OWN_WEIGHTS = (nn.MultiheadAttention, nn.TransformerEncoderLayer)
"""Modules that read the weights of their layers instead of calling them, past any adapter."""


class LoRALinear(nn.Linear):
    r"""x ↦ (W + s B A) x + b,   s = alpha / rank

    A: (rank, in) starts at random and B: (out, rank) at zero, so that the layer starts unchanged.
    W and b are the parameters of the layer that it replaces.

    >>> import torch
    >>> layer = nn.Linear(5, 3)
    >>> adapted, x = LoRALinear(layer, rank=2, alpha=4.0), torch.rand(7, 5)
    >>> torch.equal(adapted(x), layer(x)), adapted.lora_a.shape, adapted.lora_b.shape
    (True, torch.Size([2, 5]), torch.Size([3, 2]))
    """

    lora_scale: Tensor

    def __init__(self, layer: nn.Linear, rank: int, alpha: float) -> None:
        nn.Module.__init__(self)  # Linear's own would draw weights that nothing uses
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self.weight, self.bias = layer.weight, layer.bias
        self.lora_a = nn.Parameter(layer.weight.new_empty(rank, layer.in_features))
        self.lora_b = nn.Parameter(layer.weight.new_zeros(layer.out_features, rank))
        nn.init.kaiming_uniform_(self.lora_a, a=sqrt(5))  # as nn.Linear draws its weights
        self.register_buffer(SCALE, layer.weight.new_tensor(alpha / rank))

    def forward(self, x: Tensor) -> Tensor:
        update = linear(linear(x, self.lora_a), self.lora_b)
        return linear(x, self.weight, self.bias) + self.lora_scale * update

    @property
    def adapted_weight(self) -> Tensor:
        """W + s B A, with gradient."""
        return self.weight + self.lora_scale * self.lora_b @ self.lora_a

    def merged(self) -> nn.Linear:
        """A linear layer without adapter that computes the same."""
        layer = nn.utils.skip_init(nn.Linear, *self.weight.T.shape, bias=self.bias is not None)
        layer = layer.to(self.weight)
        layer.load_state_dict(merged_weights(self.state_dict()))
        return layer.train(self.training)


def add_adapters(backbone: nn.Module, rank: int, alpha: float, modules: Sequence[str]) -> None:
    """Give every linear layer whose name matches an adapter: `*.attn.*`, `blocks.0`.

    A pattern that names a module covers all linear layers below it. The head never has an adapter.
    """
    layers = _adaptable(backbone)
    names = [shown(name) for name in layers]
    chosen = {name for pattern in modules for name in _matching(pattern, names)}
    for path, layer in layers.items():
        if shown(path) in chosen:
            _replace(backbone, path, LoRALinear(layer, rank, alpha))


def merge_adapters(network: nn.Module) -> None:
    """Replace every layer with an adapter by one without, which computes the same."""
    for path, module in [*network.named_modules()]:
        if isinstance(module, LoRALinear):
            _replace(network, path, module.merged())


def merged_weights(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A state dict without adapters: W + s B A in place of W. Computed in float64.

    >>> import torch
    >>> one = torch.ones(1, 1)
    >>> merged_weights({"fc.weight": one, "fc.lora_a": one, "fc.lora_b": one, "fc.lora_scale": one})
    {'fc.weight': tensor([[2.]])}
    """
    merged = {name: value for name, value in weights.items() if not is_adapter(name)}
    for owner in [name.removesuffix(A) for name in weights if name.rpartition(".")[2] == A]:
        parts = [weights[owner + part].double() for part in ("weight", SCALE, B, A)]
        update = parts[1] * parts[2] @ parts[3]
        merged[f"{owner}weight"] = (parts[0] + update).to(weights[f"{owner}weight"].dtype)
    return merged


def is_adapter(name: str) -> bool:
    """Whether a parameter or buffer of this name belongs to an adapter."""
    return name.rpartition(".")[2] in (A, B, SCALE)


def _adaptable(backbone: nn.Module) -> dict[str, nn.Linear]:
    """The linear layers by path, without the head."""
    head, layers = last_linear(backbone), dict[str, nn.Linear]()
    closed: tuple[str, ...] = ()
    for path, module in backbone.named_modules():
        if isinstance(module, OWN_WEIGHTS):
            closed += (f"{path}.",)
        if type(module) is nn.Linear and path != head and not path.startswith(closed):
            layers[path] = module
    return layers


def _matching(pattern: str, names: Sequence[str]) -> list[str]:
    found = matching(pattern, names)
    if not found:
        known = (
            f"it has {', '.join(names[:4])}{', …' * (len(names) > 4)}" if names else "it has none"
        )
        raise UserError(
            f"backbone.lora.modules: {pattern!r} matches no linear layer of the backbone that can "
            f"have an adapter; {known}"
        )
    return found


def _replace(network: nn.Module, path: str, layer: nn.Module) -> None:
    parent, _, name = path.rpartition(".")
    setattr(network.get_submodule(parent), name, layer)
