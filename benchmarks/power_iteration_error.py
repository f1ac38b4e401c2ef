"""Error of LiDER's power iteration by their number: prints a table of docs/methods/lider.md.

    python benchmarks/power_iteration_error.py

Features of a ResNet18 (width 16) on 32 digits, upsampled to 32x32 and coloured at random: with its
random weights, and after 100 steps of training. Computed in float64, so that only the iteration
makes a difference. The exact values come from the singular value decomposition (iterations=None).
"""

from itertools import pairwise

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import Tensor, nn

from liderlab.backbones.resnet import resnet18
from liderlab.functional.lipschitz import spatial_lipschitz
from liderlab.regularizers.feature_recorder import INPUT, FeatureRecorder

COUNTS = (1, 2, 5, 10, 20, 50, 100)
GENERATOR = torch.Generator().manual_seed(0)


def coloured_digits() -> tuple[Tensor, Tensor]:
    """Digits, each in its own colour, in noise, normalised: (1797, 3, 32, 32); and their labels."""
    digits = load_digits()
    ink = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
    ink = F.interpolate(ink, size=(32, 32), mode="bilinear", align_corners=False)
    colours = 0.3 + 0.7 * torch.rand(len(ink), 3, 1, 1, generator=GENERATOR)
    x = ink * colours + 0.1 * torch.randn(len(ink), 3, 32, 32, generator=GENERATOR)
    return (x - x.mean()) / x.std(), torch.tensor(digits.target)


def train(model: nn.Module, x: Tensor, y: Tensor, steps: int = 100) -> float:
    """Train the model, and return its accuracy over the last ten batches."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    right = []
    for _ in range(steps):
        drawn = torch.randint(len(x), (64,), generator=GENERATOR)
        logits = model(x[drawn])
        optimizer.zero_grad()
        F.cross_entropy(logits, y[drawn]).backward()
        optimizer.step()
        right.append((logits.argmax(1) == y[drawn]).float().mean().item())
    return sum(right[-10:]) / 10


def features(model: nn.Module, x: Tensor) -> list[Tensor]:
    recorder = FeatureRecorder()
    recorder.attach(model, [INPUT, *model.taps])
    with torch.no_grad(), recorder.recording() as passes:
        model(x)
    return [feature.double().requires_grad_() for feature in passes[0].values()]


def value_and_gradients(
    earlier: Tensor, later: Tensor, iterations: int | None
) -> tuple[Tensor, Tensor]:
    """λ: (n,), and its gradient with respect to both maps, flattened: (n, d)."""
    value = spatial_lipschitz(earlier, later, iterations=iterations, tol=0.0)
    gradients = torch.autograd.grad(value.sum(), (earlier, later))
    return value.detach(), torch.cat([gradient.flatten(1) for gradient in gradients], dim=1)


def errors(maps: list[Tensor], iterations: int) -> tuple[Tensor, Tensor]:
    """Relative errors of values and gradients: (K, n) each."""
    by_value, by_gradient = [], []
    for earlier, later in pairwise(maps):
        value, gradient = value_and_gradients(earlier, later, iterations)
        true_value, true_gradient = value_and_gradients(earlier, later, None)
        by_value.append((value - true_value).abs() / true_value)
        by_gradient.append((gradient - true_gradient).norm(dim=1) / true_gradient.norm(dim=1))
    return torch.stack(by_value), torch.stack(by_gradient)


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x, y = coloured_digits()
    model = resnet18(10, (3, 32, 32), width=16)
    cases = {"random weights": features(model, x[:32])}
    accuracy = train(model, x[32:], y[32:])
    cases["trained"] = features(model, x[:32])
    print(f"after training: {accuracy:.0%} right\n")
    names = [f"{error}, {case}" for case in cases for error in ("value", "gradient")]
    print("| iterations |", " | ".join(names), "|")
    print("|---:|" + "---:|" * len(names))
    for count in COUNTS:
        found = [error for maps in cases.values() for error in errors(maps, count)]
        cells = [f"{error.mean():.1e} ({error.max():.1e})" for error in found]
        print(f"| {count} |", " | ".join(cells), "|")


if __name__ == "__main__":
    main()
