r"""Curvature of a network's log-likelihood in its weights: parts of the Fisher matrix

    F = 1/n Σ_i ∇log p(y_i|x_i) ∇log p(y_i|x_i)ᵀ

as its diagonal, or per layer as a Kronecker product (K-FAC; Martens & Grosse, 2015; for
convolutions Grosse & Martens, 2016). p is the softmax over the first `classes` logits.

The functions that take a network return **sums** over their rows, so that batches add up. They do
not change the network; put it into eval mode first: BatchNorm in train mode mixes the rows'
gradients.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from ..errors import UserError
from .singular import power_iteration

Factors = tuple[Tensor, Tensor]
"""A: (inputs, inputs) and G: (outputs, outputs) of a layer with the weight matrix (outputs,
inputs). Written out in the order of weight.flatten(), its part of F is G ⊗ A."""

ROWS, ELEMENTS = 64, 2**26
"""Per-row gradients held at once: at most this many rows, and this many numbers (256 MB)."""
CACHE = 2**19
"""Numbers squared and added at once, so that they stay in the processor's cache (2 MB)."""
NOT_KRONECKER = "Kronecker factors do not support: choose oewc for such a network"


def diagonal_fisher(
    network: nn.Module, parameters: Mapping[str, Tensor], x: Tensor, y: Tensor, classes: int
) -> dict[str, Tensor]:
    """Σ_i (∂log p(y_i|x_i)/∂θ)² for each of these parameters of the network.

    Linear layers, convolutions and BatchNorm take one backward pass for all rows together
    (`squared_gradients`); other parameters, and shared ones, take `vmap`, row by row.

    x: (n, …), y: (n,) below `classes` → the shapes of the parameters, by their names.

    >>> layer = nn.Linear(1, 2)
    >>> x, y = torch.tensor([[2.0]]), torch.tensor([0])
    >>> squares = diagonal_fisher(layer, dict(layer.named_parameters()), x, y, classes=2)
    >>> bool((squares["weight"][:, 0] / squares["bias"]).isclose(x.square()).all())
    True
    """
    layers = _explicit_layers(network, parameters)
    signals = layer_signals(network, layers, x, y, classes) if layers else {}
    squares: dict[str, Tensor] = {}
    for name, passes in signals.items():
        # If a layer runs twice, or its rows are not the samples (but windows of them, or a table),
        # a sample's gradient must be summed before it is squared: `_row_by_row` does that.
        if len(passes) == 1 and len(passes[0][0]) == len(x):
            found = squared_gradients(layers[name], *passes[0])
            prefix = f"{name}." if name else ""
            squares |= {prefix + own: square for own, square in found.items()}
    missing = {name: value for name, value in parameters.items() if name not in squares}
    squares |= _row_by_row(network, missing, x, y, classes)
    return {name: squares[name] for name in parameters}


def _explicit_layers(network: nn.Module, parameters: Mapping[str, Tensor]) -> dict[str, nn.Module]:
    """Layers whose gradients can be written out, and whose parameters no other module shares."""
    owners = Counter(
        id(p) for module in network.modules() for p in module.parameters(recurse=False)
    )
    return {
        name: module
        for name, module in network.named_modules()
        if type(module) in (nn.Linear, nn.Conv2d)
        or (type(module) is nn.BatchNorm2d and not module.training and module.track_running_stats)
        if all(owners[id(p)] == 1 for p in module.parameters())
        if any(f"{name}.{own}".lstrip(".") in parameters for own, _ in module.named_parameters())
    }


def squared_gradients(layer: nn.Module, inputs: Tensor, gradients: Tensor) -> dict[str, Tensor]:
    """Σ_i (∂ℓ_i/∂θ)² of a layer's parameters, by name.

    layer: `Linear`, `Conv2d`, or `BatchNorm2d` in eval mode. inputs: (n, …) of the layer.
    gradients: (n, …) of the rows' losses ℓ_i by its output.
    """
    if isinstance(layer, nn.BatchNorm2d):
        mean, variance = cast(Tensor, layer.running_mean), cast(Tensor, layer.running_var)
        deviation = (variance + layer.eps).rsqrt()
        slope = gradients.sum((2, 3))
        product = (inputs * gradients).sum((2, 3))
        weight = ((product - mean * slope) * deviation).square().sum(0)
        bias = slope.square().sum(0)
    else:
        groups = layer.groups if isinstance(layer, nn.Conv2d) else 1
        a, g = _rows_and_positions(layer, inputs, gradients)
        squares = _squared_products(g, a, groups)
        squares = squares[:, _weight_order(layer, squares)]
        weight = squares.reshape(cast(Tensor, layer.weight).shape)
        bias = g.sum(1).square().sum(0)
    named = {"weight": weight, "bias": bias}
    return {name: named[name] for name, _ in layer.named_parameters()}


def _squared_products(g: Tensor, a: Tensor, groups: int) -> Tensor:
    """Σ_i (Σ_t g_it a_itᵀ)², group by group: (n, T, outputs), (n, T, inputs) → (outputs, …)."""
    if a.shape[1] == 1 and groups == 1:  # one position: the square of a product of numbers
        return g[:, 0].square().mT @ a[:, 0].square()
    g, a = (rows.unflatten(2, (groups, -1)).transpose(1, 2) for rows in (g, a))
    total = g.new_zeros(groups, g.shape[3], a.shape[3])
    rows = max(1, CACHE // total.numel())
    for g_part, a_part in zip(g.split(rows), a.split(rows), strict=True):
        total += (g_part.mT @ a_part).square_().sum(0)
    return total.flatten(0, 1)


def _row_by_row(
    network: nn.Module, parameters: Mapping[str, Tensor], x: Tensor, y: Tensor, classes: int
) -> dict[str, Tensor]:
    def loss(theta: dict[str, Tensor], row: Tensor, label: Tensor) -> Tensor:
        logits = functional_call(network, theta, (row[None],))
        return F.cross_entropy(logits[:, :classes], label[None])

    theta = {name: parameter.detach() for name, parameter in parameters.items()}
    squares = {name: torch.zeros_like(parameter) for name, parameter in theta.items()}
    gradients = vmap(grad(loss), in_dims=(None, 0, 0))
    size = sum(parameter.numel() for parameter in theta.values())
    if not size:
        return {}
    chunk = max(1, min(ROWS, ELEMENTS // size))
    for rows, labels in zip(x.split(chunk), y.split(chunk), strict=True):
        for name, gradient in gradients(theta, rows, labels).items():
            squares[name] += gradient.square().sum(0)
    return squares


def kronecker_layers(network: nn.Module) -> dict[str, nn.Module]:
    """The trainable linear layers and ungrouped convolutions, by name.

    Subclasses are left out: they may pad or multiply differently.
    """
    return {
        name: module
        for name, module in network.named_modules()
        if type(module) is nn.Linear or (type(module) is nn.Conv2d and module.groups == 1)
        if module.weight.requires_grad
    }


def kronecker_factors(
    network: nn.Module, layers: Mapping[str, nn.Module], x: Tensor, y: Tensor, classes: int
) -> dict[str, Factors]:
    """Σ_i A_i and Σ_i G_i (see `layer_factors`) of each layer that runs, by one backward pass.

    x: (n, …), y: (n,) below `classes`.

    >>> layer = nn.Linear(2, 3)
    >>> x, y = torch.randn(5, 2), torch.tensor([0, 1, 2, 0, 1])
    >>> [factor.shape for factor in kronecker_factors(layer, {"fc": layer}, x, y, 3)["fc"]]
    [torch.Size([3, 3]), torch.Size([3, 3])]
    """
    signals = layer_signals(network, layers, x, y, classes)
    for name, passes in signals.items():
        if len(passes) > 1:
            raise UserError(f"layer {name!r} ran twice in one pass, which {NOT_KRONECKER}")
        if (given := len(passes[0][0])) != len(x):
            rows = f"{given} rows for {len(x)} samples"
            raise UserError(f"layer {name!r} was given {rows}, which {NOT_KRONECKER}")
    return {name: layer_factors(layers[name], *passes[0]) for name, passes in signals.items()}


def layer_signals(
    network: nn.Module, layers: Mapping[str, nn.Module], x: Tensor, y: Tensor, classes: int
) -> dict[str, list[tuple[Tensor, Tensor]]]:
    """For each layer that runs, one pair per call: its input, and Σ_i ℓ_i's gradient by its output.

    Rows do not mix, so the gradient's row i is that of ℓ_i = −log p(y_i|x_i) alone.
    """
    calls: list[tuple[str, Tensor, Tensor]] = []

    def record(name: str) -> Any:
        def hook(module: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> Tensor:
            calls.append((name, args[0].detach(), output))
            return output.clone()  # the next layer may work in place

        return hook

    handles = [layer.register_forward_hook(record(name)) for name, layer in layers.items()]
    try:
        with torch.enable_grad():
            loss = F.cross_entropy(network(x)[:, :classes], y, reduction="sum")
    finally:
        for handle in handles:
            handle.remove()
    outputs = [output for _, _, output in calls]
    gradients = torch.autograd.grad(loss, outputs, materialize_grads=True)
    signals: dict[str, list[tuple[Tensor, Tensor]]] = {}
    for (name, inputs, _), gradient in zip(calls, gradients, strict=True):
        signals.setdefault(name, []).append((inputs, gradient))
    return signals


def layer_factors(layer: nn.Module, inputs: Tensor, gradients: Tensor) -> Factors:
    r"""A = Σ_i Σ_t a_it a_itᵀ and G = 1/|T| Σ_i Σ_t g_it g_itᵀ over rows i and positions t ∈ T.

    a: the vector that multiplies the layer's weight matrix (for a convolution a patch, followed by
    1 if there is a bias). g: gradients of the rows' losses by the layer's output. G ⊗ A assumes
    that a and g are independent, that gradients at different positions are uncorrelated, and that
    all positions are alike; a linear layer has one position. Divided by n, A and G are means over
    the rows.

    layer: `Linear` or `Conv2d`. inputs: (n, …) of the layer, gradients: (n, …) by its output.
    """
    a, g = _rows_and_positions(layer, inputs, gradients)
    if _bias(layer) is not None:
        a = torch.cat([a, a.new_ones(*a.shape[:2], 1)], 2)
    positions = a.shape[1]
    a, g = a.flatten(0, 1), g.flatten(0, 1)
    order = _weight_order(layer, a)
    return (a.mT @ a)[order[:, None], order], g.mT @ g / positions


def _rows_and_positions(
    layer: nn.Module, inputs: Tensor, gradients: Tensor
) -> tuple[Tensor, Tensor]:
    """a: (n, T, inputs) and g: (n, T, outputs) of a linear layer or a convolution.

    A convolution's inputs are in the order of `_patches`, which differs from its weight's.
    """
    if isinstance(layer, nn.Conv2d):
        inputs, gradients = _patches(layer, inputs), gradients.flatten(2).mT
    a, g = (rows.reshape(len(rows), -1, rows.shape[-1]) for rows in (inputs, gradients))
    return a, g


def _patches(layer: nn.Conv2d, inputs: Tensor) -> Tensor:
    """The patch of each output position: (n, positions, groups · kernel · channels of a group).

    Channels come last, because that copies them in runs: `unfold` takes five times as long.
    """
    mode = "constant" if layer.padding_mode == "zeros" else layer.padding_mode
    padded = F.pad(inputs, layer._reversed_padding_repeated_twice, mode=mode)
    padded = padded.permute(0, 2, 3, 1).unflatten(3, (layer.groups, -1)).contiguous()
    n, *sides, groups, channels = padded.shape
    row, *steps, group, channel = padded.stride()
    kernel, dilation, stride = layer.kernel_size, layer.dilation, layer.stride
    positions = [
        (side - apart * (width - 1) - 1) // step + 1
        for side, width, apart, step in zip(sides, kernel, dilation, stride, strict=True)
    ]
    windows = padded.as_strided(
        (n, *positions, groups, *kernel, channels),
        (
            row,
            *(a * b for a, b in zip(steps, stride, strict=True)),
            group,
            *(a * b for a, b in zip(steps, dilation, strict=True)),
            channel,
        ),
    )
    return windows.reshape(n, positions[0] * positions[1], -1)


def _weight_order(layer: nn.Module, matrix: Tensor) -> Tensor:
    """The column of `matrix` that belongs to each column of the weight matrix (and to its bias)."""
    order = torch.arange(matrix.shape[1], device=matrix.device)
    if isinstance(layer, nn.Conv2d):
        weights = layer.weight[0].numel()
        order[:weights] = order[:weights].view(-1, layer.weight.shape[1]).mT.flatten()
    return order


def weight_matrix(layer: nn.Module) -> Tensor:
    """(outputs, inputs): the layer's weights, with its bias (if it trains) as the last column."""
    weight, bias = cast(Tensor, layer.weight).flatten(1), _bias(layer)
    return weight if bias is None else torch.cat([weight, bias[:, None]], 1)


def _bias(layer: nn.Module) -> Tensor | None:
    bias = cast(Tensor | None, layer.bias)
    return bias if bias is not None and bias.requires_grad else None


def kronecker_quadratic(delta: Tensor, inputs: Tensor, outputs: Tensor) -> Tensor:
    """vec(Δ)ᵀ (G ⊗ A) vec(Δ) = tr(Δᵀ G Δ A), never building G ⊗ A.

    delta: (outputs, inputs), inputs: A, outputs: G, both symmetric and constant → ().

    >>> kronecker_quadratic(torch.ones(2, 3), torch.eye(3), torch.eye(2))
    tensor(6.)
    """
    # The gradient is twice the product that the value needs anyway: in this form, autograd does
    # not multiply by both factors again.
    product = outputs @ delta.detach() @ inputs
    return (2 * product * delta).sum() - (product * delta.detach()).sum()


def largest_eigenvalue(matrix: Tensor, iterations: int = 20) -> float:
    """λ₁ of a symmetric, positive semi-definite matrix (n, n), from below, by power iteration.

    >>> round(largest_eigenvalue(torch.diag(torch.tensor([1.0, 3.0]))), 4)
    3.0
    """
    vector = power_iteration(matrix, iterations)
    return float((vector * (matrix @ vector)).sum())


def sample_labels(logits: Tensor, generator: torch.Generator) -> Tensor:
    """A label for each row, drawn from the softmax of its logits: (n, c) → (n,).

    >>> sample_labels(torch.tensor([[0.0, 99.0], [99.0, 0.0]]), torch.Generator())
    tensor([1, 0])
    """
    probabilities = logits.double().softmax(1).cpu()  # the generator lives on the CPU
    if not probabilities.isfinite().all():
        raise ValueError("Expected finite logits to draw labels from, but got NaN or infinity.")
    return torch.multinomial(probabilities, 1, generator=generator)[:, 0].to(logits.device)
