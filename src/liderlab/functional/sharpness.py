"""Steps uphill in the space of weights, and projections of gradients.

A gradient is a dict of tensors; its norm and products run over all of them together.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

TINY = 1e-12


def product(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> Tensor:
    """⟨a, b⟩ over all tensors of two gradients.

    >>> product({"w": torch.tensor([1.0, 2.0])}, {"w": torch.tensor([3.0, 1.0])})
    tensor(5.)
    """
    return torch.stack([(tensor * other[name]).sum() for name, tensor in one.items()]).sum()


def combined(
    one: Mapping[str, Tensor], other: Mapping[str, Tensor], factor: float = 1.0
) -> dict[str, Tensor]:
    """a + factor · b, tensor by tensor.

    >>> combined({"w": torch.tensor(3.0)}, {"w": torch.tensor(2.0)}, -1)["w"]
    tensor(1.)
    """
    return {name: tensor + factor * other[name] for name, tensor in one.items()}


def ascent(
    gradient: Mapping[str, Tensor], rho: float, scale: Mapping[str, Tensor] | None = None
) -> dict[str, Tensor]:
    """The point ε with ‖T⁻¹ε‖ = ρ where the linearised loss is largest.

        ε = ρ · T² g / ‖T g‖

    scale: the diagonal of T, by name; None is the identity. A gradient of 0 gives ε = 0.

    >>> ascent({"w": torch.tensor([3.0, 4.0])}, rho=0.5)["w"]
    tensor([0.3000, 0.4000])
    """
    steps = list(gradient.values())
    if scale is not None:
        factors = [scale[name] for name in gradient]
        steps = list(torch._foreach_mul(steps, factors))
    length = torch.stack(torch._foreach_norm(steps)).norm().clamp_min(TINY)
    if scale is not None:
        steps = list(torch._foreach_mul(steps, factors))
    return dict(zip(gradient, torch._foreach_mul(steps, rho / length), strict=True))


def projected(gradient: Mapping[str, Tensor], reference: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The nearest gradient that does not oppose the reference.

        g                                   if ⟨g, r⟩ ≥ 0
        g − ⟨g, r⟩ / ⟨r, r⟩ · r             otherwise

    >>> r = {"w": torch.tensor([0.0, 1.0])}
    >>> projected({"w": torch.tensor([1.0, -1.0])}, r)["w"]
    tensor([1., 0.])
    """
    against = product(gradient, reference).clamp_max(0)
    share = against / product(reference, reference).clamp_min(TINY)
    return {name: tensor - share * reference[name] for name, tensor in gradient.items()}
