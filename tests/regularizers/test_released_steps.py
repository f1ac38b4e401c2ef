"""One training step of ER-ACE and DER++ with the form `released`, against the authors' code.

`tests/support/released_inputs.py` makes the weights, batches and draws, and says how the authors'
values were recorded.
"""

import json
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import released_inputs as given
from liderlab import LiDER
from liderlab.backbones.network import Network
from liderlab.backbones.resnet import resnet18
from liderlab.config.merging import make_config
from liderlab.methods import METHODS
from liderlab.training.randomness import Generators
from liderlab.training.step import Step
from liderlab.types import Batch, Fit, Recipe, Task

FILE = Path(__file__).parent / "data" / "released_steps.json"
RELEASED: dict[str, dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
TOLERANCE = 1e-4


class Scripted(Step):
    """Draws what the authors' code drew, whichever generator asks."""

    left: list[Batch]

    def draw(self, n: int | None = None, generator: torch.Generator | None = None) -> Batch:
        return self.left.pop(0)


def batch(x: Tensor, y: Tensor, logits: Tensor | None = None) -> Batch:
    columns = {} if logits is None else {"logits": logits}
    slot = torch.full_like(y, -1 if logits is None else 0)
    origin: Any = "stream" if logits is None else "memory"
    return Batch(x, x, y, y // 2, slot, lambda raw: raw, columns, origin)


@cache
def our_step(method: str, form: str = "released") -> dict[str, Any]:
    weights = {"alpha": given.TERMS["zero"], "beta": given.TERMS["c"]}
    tree = {"method": method, "regularizers": {"lider": {"form": form, **weights}}}
    options = make_config(tree).regularizers["lider"] | {"iterations": None}  # converged
    network = Network(
        resnet18(given.CLASSES, given.SHAPE, width=given.WIDTH, stem="cifar"), nn.Identity()
    )
    network.backbone.load_state_dict(given.weights())
    network.double()
    lider = LiDER(**options)
    lider.attach(network, torch.zeros(2, *given.SHAPE, dtype=torch.float64))
    lider.double().calibrate([given.calibration()])
    none: Any = None
    tasks = [Task(n, range(2 * n, 2 * n + 2), none, none) for n in range(3)]
    step = Scripted(
        task=tasks[1],
        fit=Fit(none, 1, Recipe(0.1)),
        epoch=0,
        stream=SimpleNamespace(tasks=tasks, names=range(given.CLASSES)),  # type: ignore[arg-type]
        network=network,
        memory=SimpleNamespace(offer=print),  # type: ignore[arg-type]
        regularizers=[lider],
        generators=Generators(0),
        device=torch.device("cpu"),
    )
    step.left = [batch(*drawn) for drawn in given.draws(method)]
    network.train()
    made = METHODS.load(method)(**given.METHODS[method])
    terms = made.losses(batch(*given.stream()), step) | lider.losses(step)
    assert step.left == []
    loss = torch.stack([term.mean() for term in terms.values()]).sum()
    loss.backward()
    parameters, buffers = network.backbone.named_parameters(), network.backbone.named_buffers()
    return {
        "loss": loss.item(),
        "targets": lider.targets.tolist(),
        "gradients": given.summary({name: p.grad for name, p in parameters}),
        "statistics": given.summary({name: b for name, b in buffers if "running" in name}),
    }


@pytest.mark.parametrize("method", RELEASED)
def test_loss_and_targets(method: str) -> None:
    ours = our_step(method)
    assert ours["loss"] == pytest.approx(RELEASED[method]["loss"], rel=TOLERANCE)
    assert ours["targets"] == pytest.approx(RELEASED[method]["targets"], rel=TOLERANCE)


@pytest.mark.parametrize("method", RELEASED)
@pytest.mark.parametrize("kind", ["gradients", "statistics"])
def test_every_gradient_and_statistic(kind: str, method: str) -> None:
    """The norm, and the product with a random vector, relative to the norms of both."""
    ours, theirs = our_step(method)[kind], RELEASED[method][kind]
    assert ours.keys() == theirs.keys()
    for name, (norm, product) in theirs.items():
        assert ours[name][0] == pytest.approx(norm, rel=TOLERANCE), name
        assert abs(ours[name][1] - product) <= TOLERANCE * norm, name


@pytest.mark.parametrize("method", RELEASED)
def test_the_form_paper_is_another_regulariser(method: str) -> None:
    """So that these tests can fail: other roles, other draws."""
    with pytest.raises(AssertionError):  # the paper's form leaves the draws of the terms
        our_step(method, "paper")
