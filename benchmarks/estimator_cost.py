"""Time of a step with each of LiDER's estimators: prints a table of docs/methods/lider.md.

    python benchmarks/estimator_cost.py

One training step on 32 replayed images of 32x32 (forward, backward, SGD), on a ResNet18 of width 16
and a small vision transformer; one thread, medians of processor time.
"""

from time import process_time

import torch
from torch import nn

from liderlab.analysis import throughput
from liderlab.backbones.resnet import resnet18
from liderlab.bench.transformer_workload import STAGES, SmallViT, replay_step

IMAGES = torch.randn(32, 3, 32, 32, generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(32) % 4


def seconds_per_step(model: nn.Module, options: dict[str, object] | None) -> float:
    stages = None if hasattr(model, "taps") else STAGES
    step = replay_step(model, stages, options, IMAGES, LABELS)
    return (
        32
        / throughput(step, samples=32, warmup=1, repeats=5, clock=process_time).samples_per_second
    )


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    chosen: dict[str, dict[str, object] | None] = {
        "no LiDER": None,
        "spatial": {"estimator": "spatial"},
        "batch": {"estimator": "batch"},
        "jacobian, 1 iteration": {"estimator": "jacobian", "iterations": 1},
        "jacobian, 3 iterations": {"estimator": "jacobian", "iterations": 3},
        "jacobian, 10 iterations": {"estimator": "jacobian", "tol": 0.0},
    }
    print("| step on 32 images | ResNet18, width 16 | ViT, 4 blocks of 96 |\n|---|---:|---:|")
    plain: dict[int, float] = {}
    for name, options in chosen.items():
        cells = []
        for column, model in enumerate((resnet18(10, (3, 32, 32), width=16), SmallViT(side=32))):
            seconds = seconds_per_step(model, options)
            plain.setdefault(column, seconds)
            cells.append(f"{1000 * seconds:.0f} ms ({seconds / plain[column]:.1f}x)")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
