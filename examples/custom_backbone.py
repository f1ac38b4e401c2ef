"""Your own network: any nn.Module whose last linear layer gives the logits."""

from itertools import pairwise

import torch
from torch import nn

from liderlab import BACKBONES, run
from liderlab.config.merging import make_config
from liderlab.registry import Entry


class Ladder(nn.Module):
    """Convolutions that halve the map.

    Optional: `taps` names the stages for LiDER, which otherwise finds some itself; `features`
    returns the input of the last layer, which is otherwise recorded.
    """

    def __init__(self, channels: int, classes: int, steps: int) -> None:
        super().__init__()
        widths = [channels, *(16 * 2**step for step in range(steps))]
        self.steps = nn.ModuleList(
            nn.Sequential(nn.Conv2d(a, b, 3, stride=2, padding=1), nn.GroupNorm(4, b), nn.GELU())
            for a, b in pairwise(widths)
        )
        self.head = nn.Linear(widths[-1], classes)
        self.taps = {f"step{number}": f"steps.{number}.1" for number in range(steps)}

    def features(self, x: torch.Tensor) -> torch.Tensor:
        for step in self.steps:
            x = step(x)
        return x.mean((2, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(x))


def ladder(classes: int, image_shape: tuple[int, int, int], *, steps: int = 2) -> nn.Module:
    return Ladder(image_shape[0], classes, steps)  # steps is an option: --set backbone.steps=3


BACKBONES["ladder"] = Entry(ladder, "convolutions that halve the map")

if __name__ == "__main__":
    config = make_config(
        {
            "benchmark": "split-digits",
            "backbone": {"name": "ladder", "steps": 3},
            "method": "er-ace",
            "regularizers": {"lider": {}},
            "memory": {"size": 100},
            "training": {"epochs": 1},
        }
    )
    result = run(config, "runs/ladder")
    print(f"final accuracy {result['class_incremental']['faa']:.1f} %")
