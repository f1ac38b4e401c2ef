"""Inputs of one training step in float64: weights, batches and draws, for us and for the code that
the authors of LiDER released.

How `tests/regularizers/data/released_steps.json` was made: with github.com/aimagelab/LiDER
(483efc6) in CHECKOUT, its imports available, and this repository installed,

    python tests/support/released_inputs.py CHECKOUT > tests/regularizers/data/released_steps.json

builds their networks and methods, gives them these inputs, lets them calibrate (`init_net`) and
take one step (`observe`), and prints the loss, the targets, and of every gradient and statistic the
norm and the product with a fixed random vector. Their power iteration has 10,000 steps there
instead of 10, so that it converges; everything else is as released. The batch holds the highest
class seen so far: without it, their mask would let it pass all the same, which is a mistake.
"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from typing import Any

import torch
from torch import Tensor

from liderlab.backbones.resnet import resnet18

CLASSES, WIDTH, SHAPE = 6, 4, (3, 16, 16)  # three tasks of two classes; the step is in the second
TERMS = {"zero": 3.0, "c": 2.0}  # heavy, so that the gradient is theirs
METHODS: dict[str, dict[str, float]] = {"er-ace": {}, "der++": {"alpha": 0.3, "beta": 0.7}}


def generator(name: str) -> torch.Generator:
    return torch.Generator().manual_seed(sum(map(ord, name)))


def images(name: str, n: int) -> Tensor:
    """Noise around a colour, so that λ is far from 0."""
    draw = {"generator": generator(name), "dtype": torch.float64}
    return torch.randn(n, *SHAPE, **draw) + 2 * torch.randn(n, SHAPE[0], 1, 1, **draw)


def weights() -> dict[str, Tensor]:
    """By our names; BatchNorm's scales and shifts are random, too."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        state = resnet18(CLASSES, SHAPE, width=WIDTH, stem="cifar").double().state_dict()
    for name, value in state.items():
        norm = name.split(".")[-2].startswith("bn") or ".downsample.1." in name
        if norm and name.endswith(("weight", "bias")):
            value.add_(0.3 * torch.randn(value.shape, generator=generator(name)))
    return state


def draws(method: str) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Images, labels and stored logits, in the order in which a step draws them."""
    found = []
    for number in range(3 if method == "er-ace" else 4):
        x = images(f"draw {number}", 7)
        logits = torch.randn(7, CLASSES, generator=generator("logits"), dtype=torch.float64)
        found.append((x, torch.tensor([0, 1, 2, 3, 0, 1, 2]), logits))
    return found


def stream() -> tuple[Tensor, Tensor]:
    return images("stream", 8), torch.tensor([2, 3, 3, 2, 2, 3, 2, 3])


def calibration() -> Tensor:
    return images("calibration", 12)


def summary(named: dict[str, Tensor]) -> dict[str, list[float]]:
    """Norm, and product with a fixed random vector."""
    found = {}
    for name, value in named.items():
        vector = torch.randn(value.shape, generator=generator(name), dtype=torch.float64)
        found[name] = [float(value.double().norm()), float((value.double() * vector).sum())]
    return found


def their_name(name: str) -> str:
    return name.replace(".downsample.", ".shortcut.").replace("fc.", "classifier.")


class Draws:
    """In place of their buffer."""

    def __init__(self, method: str) -> None:
        self.left, self.logits = draws(method), method == "der++"

    def is_empty(self) -> bool:
        return False

    def get_data(self, size: int, transform: Any = None) -> tuple[Tensor, ...]:
        x, y, logits = self.left.pop(0)
        return (x, y, logits) if self.logits else (x, y)

    def add_data(self, **rows: Tensor) -> None:
        pass


def record(method: str) -> dict[str, Any]:
    """One step of the released method."""
    from backbone.ResNet18 import resnet18 as their_resnet18
    from models.derpp_lipschitz import DerppLipschitz
    from models.er_ace_lipschitz import ErACELipschitz
    from torch.nn.functional import cross_entropy
    from utils.lipschitz import LipOptimizer

    LipOptimizer.top_eigenvalue.__defaults__ = (10_000,)
    released = {"er-ace": ErACELipschitz, "der++": DerppLipschitz}[method]
    chosen = {"buffer_lip_lambda": TERMS["zero"], "budget_lip_lambda": TERMS["c"]}
    chosen |= {
        "lr": 0.1,
        "optim_wd": 0.0,
        "optim_mom": 0.0,
        "grad_iter_step": -2,
        **METHODS[method],
    }
    names = {"dataset": "seq-cifar100", "headless_init_act": "relu"}
    rest = {"distributed": None, "buffer_size": 20, "debug_mode": 0}
    network = their_resnet18(CLASSES, nf=WIDTH)
    model = released(network, cross_entropy, Namespace(**chosen, **names, **rest), None)
    network.load_state_dict({their_name(name): value for name, value in weights().items()})
    network.double().set_return_prerelu(True)
    model.buffer, model.num_classes = Draws(method), CLASSES
    model.task = model.current_task = 1
    model.seen_so_far = torch.arange(4)
    loader = [(calibration(), torch.zeros(12), calibration())]
    model.init_net(Namespace(train_loader=loader))
    loss = model.observe(*stream(), stream()[0])[0]
    ours = {their_name(name): name for name in weights()}
    gradients = {ours[name]: value.grad for name, value in network.named_parameters()}
    statistics = {ours[n]: v for n, v in network.named_buffers() if "running" in n}
    return {
        "loss": loss,
        "targets": network.lip_coeffs.tolist(),
        "gradients": summary(gradients),
        "statistics": summary(statistics),
    }


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    print(json.dumps({method: record(method) for method in METHODS}, indent=1))
