"""The noise of LiDER's penalty if λ is taken of some replayed rows only (`rows_at_most`).

    python benchmarks/row_sampling_error.py

A ResNet18 (width 16) trained on coloured digits as in power_iteration_error.py. Of 30 random
batches of 64 rows, the 0-term of the first rows against that of all 64: the relative error of its
value, the cosine between the two gradients by the weights, and the relative error of the mean over
all batches, which falls with their number because the first rows are a random draw.
"""

from statistics import fmean

import torch
from torch import Tensor, nn

from liderlab import LiDER
from liderlab.backbones.resnet import resnet18
from power_iteration_error import GENERATOR, coloured_digits, train

COUNTS, BATCHES, BATCH = (8, 16, 32, 64), 30, 64


def penalty_and_gradient(model: nn.Module, lider: LiDER, x: Tensor) -> tuple[float, Tensor]:
    model.zero_grad()
    with lider.watch():
        model(x)
    penalty = lider.penalty()
    penalty.backward()
    weights = [p.grad.flatten() for p in model.parameters() if p.grad is not None]
    return penalty.item(), torch.cat(weights)


def main() -> None:
    torch.manual_seed(0)
    x, y = coloured_digits()
    model = resnet18(10, (3, 32, 32), width=16)
    train(model, x, y)
    model.eval()  # λ of a row does not depend on the others
    batches = [x[torch.randint(len(x), (BATCH,), generator=GENERATOR)] for _ in range(BATCHES)]
    found = {}
    for count in COUNTS:
        lider = LiDER(model, alpha=0.0, beta=1.0, rows_at_most=count, learn_targets=False)
        found[count] = [penalty_and_gradient(model, lider, batch) for batch in batches]
    print("| rows | error of λ | cosine of the gradients | error of the mean over 30 batches |")
    print("|---:|---:|---:|---:|")
    whole = found[BATCH]
    average = fmean(value for value, _ in whole)
    for count in COUNTS[:-1]:
        pairs = list(zip(found[count], whole, strict=True))
        error = fmean(abs(some / value - 1) for (some, _), (value, _) in pairs)
        cosine = fmean(float(torch.cosine_similarity(a, b, dim=0)) for (_, a), (_, b) in pairs)
        mean = fmean(value for value, _ in found[count]) / average - 1
        print(f"| {count} | {error:.2%} | {cosine:.3f} | {mean:+.2%} |")


if __name__ == "__main__":
    main()
