r"""How much a network's log-likelihood bends around its weights: parts of the Fisher matrix

    F = 1/n Σ_i ∇log p(y_i|x_i) ∇log p(y_i|x_i)ᵀ

as its diagonal, or per layer as a Kronecker product (K-FAC; Martens & Grosse, 2015; for
convolutions Grosse & Martens, 2016). p is the softmax over the first `classes` logits.

The functions that take a network return **sums** over the rows that they are given, so that batches
add up. They do not change the network; put it into eval mode first: a row's gradient is its own
only where no BatchNorm mixes it with its neighbours.
"""

from collections.abc import Mapping
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from .lipschitz import power_iteration

Factors = tuple[Tensor, Tensor]
"""A: (inputs, inputs) and G: (outputs, outputs) of a layer with the weight matrix (outputs,
inputs). Written out in the order of weight.flatten(), its part of F is G ⊗ A."""

ROWS, ELEMENTS = 64, 2**26
"""Per-row gradients held at once: at most this many rows, and this many numbers (256 MB)."""


def diagonal_fisher(
    network: nn.Module, parameters: Mapping[str, Tensor], x: Tensor, y: Tensor, classes: int
) -> dict[str, Tensor]:
    """Σ_i (∂log p(y_i|x_i)/∂θ)² for each of these parameters of the network, in chunks of rows.

    x: (n, …), y: (n,) below `classes` → the shapes of the parameters, by their names.

    >>> layer = nn.Linear(1, 2)
    >>> x, y = torch.tensor([[2.0]]), torch.tensor([0])
    >>> squares = diagonal_fisher(layer, dict(layer.named_parameters()), x, y, classes=2)
    >>> bool((squares["weight"][:, 0] / squares["bias"]).isclose(x.square()).all())
    True
    """

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
    """The trainable linear layers and (ungrouped) convolutions, by name."""
    return {
        name: module
        for name, module in network.named_modules()
        if isinstance(module, nn.Linear) or (isinstance(module, nn.Conv2d) and module.groups == 1)
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
    inputs: dict[str, Tensor] = {}
    outputs: dict[str, Tensor] = {}

    def listen(name: str) -> Any:
        def hook(module: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> Tensor:
            if name in inputs:
                raise RuntimeError(f"Layer {name!r} ran twice in one pass: its weights are shared.")
            inputs[name], outputs[name] = args[0].detach(), output
            return output.clone()  # what follows may work in place

        return hook

    handles = [layer.register_forward_hook(listen(name)) for name, layer in layers.items()]
    try:
        with torch.enable_grad():
            loss = F.cross_entropy(network(x)[:, :classes], y, reduction="sum")
    finally:
        for handle in handles:
            handle.remove()
    gradients = torch.autograd.grad(loss, list(outputs.values()), materialize_grads=True)
    return {
        name: layer_factors(layers[name], inputs[name], gradient)
        for name, gradient in zip(outputs, gradients, strict=True)
    }


def layer_factors(layer: nn.Module, inputs: Tensor, gradients: Tensor) -> Factors:
    r"""A = Σ_i Σ_t a_it a_itᵀ and G = 1/|T| Σ_i Σ_t g_it g_itᵀ over rows i and positions t ∈ T.

    a: what the layer's weight matrix is multiplied with (for a convolution the patch, followed by
    1 if there is a bias). g: gradients of the rows' losses by the layer's output. G ⊗ A takes a and
    g as independent, gradients at different positions as uncorrelated, and all positions as alike;
    a linear layer has one position. Divided by n each, both are means over the rows.

    layer: `Linear` or `Conv2d`. inputs: (n, …) that it was given, gradients: (n, …) by its output.
    """
    if isinstance(layer, nn.Conv2d):
        a, g = _patches(layer, inputs).mT, gradients.flatten(2).mT
    else:
        a, g = inputs, gradients
    a, g = (rows.reshape(len(inputs), -1, rows.shape[-1]) for rows in (a, g))
    if _bias(layer) is not None:
        a = torch.cat([a, a.new_ones(*a.shape[:2], 1)], 2)
    positions = a.shape[1]
    a, g = a.flatten(0, 1), g.flatten(0, 1)
    return a.mT @ a, g.mT @ g / positions


def _patches(layer: nn.Conv2d, inputs: Tensor) -> Tensor:
    """(n, channels · kernel, positions): what each output position sees."""
    mode = "constant" if layer.padding_mode == "zeros" else layer.padding_mode
    padded = F.pad(inputs, layer._reversed_padding_repeated_twice, mode=mode)
    return F.unfold(padded, layer.kernel_size, layer.dilation, padding=0, stride=layer.stride)


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
    # The gradient is twice the product that the value needs anyway: give it to autograd, which
    # would multiply by both factors again.
    product = outputs @ delta.detach() @ inputs
    return (2 * product * delta).sum() - (product * delta.detach()).sum()


def largest_eigenvalue(matrix: Tensor, iterations: int = 20) -> float:
    """Of a symmetric, positive semi-definite matrix (n, n), from below, by power iteration.

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
    odds = logits.double().softmax(1).cpu()  # the generator lives on the CPU
    if not odds.isfinite().all():
        raise ValueError("Expected finite logits to draw labels from, but got NaN or infinity.")
    return torch.multinomial(odds, 1, generator=generator)[:, 0].to(logits.device)
