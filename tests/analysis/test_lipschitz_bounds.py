"""Lipschitz bounds hold, and λ is what LiDER sees."""

import math

import pytest
import torch
from torch import nn

from liderlab import LiDER
from liderlab.analysis import lipschitz_bound, lipschitz_constants


def convnet() -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Conv2d(2, 4, 3, padding=1),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.Conv2d(4, 6, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(54, 3),
        )
        nn.init.uniform_(model[1].running_var, 0.5, 2.0)
        nn.init.normal_(model[1].weight)
    return model.double()


X = torch.randn(6, 2, 5, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def dense_norm(part: nn.Module, shape: tuple[int, ...]) -> float:
    zeros = torch.zeros(1, *shape, dtype=torch.float64)
    matrix = torch.autograd.functional.jacobian(part, zeros)
    return float(torch.linalg.svdvals(matrix.reshape(-1, zeros.numel()))[0])


def test_product_is_that_of_the_dense_operators():
    model = convnet().eval()
    bound = lipschitz_bound(model, X[:1], tol=1e-10)
    truth = [dense_norm(model[:2], (2, 5, 5)), dense_norm(model[3], (4, 5, 5))]
    truth.append(dense_norm(model[6], (54,)))
    assert list(bound.norms) == ["0", "3", "6"]
    assert list(bound.norms.values()) == pytest.approx(truth, rel=1e-7)
    assert bound.product == pytest.approx(math.prod(truth), rel=1e-6)
    assert bound.log10 == pytest.approx(math.log10(bound.product))


def test_batch_norm_is_folded_separate_or_ignored():
    model = convnet()
    fold, separate, ignore = (
        lipschitz_bound(model, X[:1], batch_norm=choice)
        for choice in ("fold", "separate", "ignore")
    )
    assert list(separate.norms) == ["0", "1", "3", "6"]
    assert list(ignore.norms) == ["0", "3", "6"]
    assert separate.product == pytest.approx(ignore.product * separate.norms["1"])
    assert fold.product < separate.product


def test_it_bounds_every_slope():
    model = convnet().eval()
    bound = lipschitz_bound(model, X[:1]).product
    for seed in range(5):
        step = torch.randn(X.shape, generator=torch.Generator().manual_seed(seed)).double()
        change = (model(X + step) - model(X)).norm(dim=1) / step.flatten(1).norm(dim=1)
        assert float(change.detach().max()) <= bound


def test_a_layer_that_runs_twice_counts_twice():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2, bias=False)
            self.layer.weight.data = 2 * torch.eye(2)

        def forward(self, x):
            return self.layer(self.layer(x).relu())

    bound = lipschitz_bound(Twice(), torch.zeros(1, 2))
    assert bound.norms == pytest.approx({"layer": 2.0, "layer (2)": 2.0})
    assert bound.product == pytest.approx(4.0)


def test_twice_the_weights_twice_the_bound_and_the_same_lambda():
    model = convnet()
    before = lipschitz_bound(model, X[:1]), lipschitz_constants(model, X, stages=["0", "3"])
    with torch.no_grad():
        model[3].weight.mul_(2)
        model[3].bias.mul_(2)
    after = lipschitz_bound(model, X[:1]), lipschitz_constants(model, X, stages=["0", "3"])
    assert after[0].product == pytest.approx(2 * before[0].product, rel=1e-5)
    assert after[1].constants == pytest.approx(before[1].constants, rel=1e-5)


@pytest.mark.parametrize("estimator", ["spatial", "batch", "jacobian"])
def test_constants_are_what_lider_would_calibrate_to(estimator):
    model = convnet()
    measured = lipschitz_constants(model, X, stages=["0", "3"], estimator=estimator)
    lider = LiDER(model, ["0", "3"], estimator=estimator, iterations=50)
    lider.calibrate([X])
    assert list(measured.constants.values()) == pytest.approx(lider.targets.tolist())
    assert measured.mean == pytest.approx(float(lider.targets.detach().mean()))


def test_the_model_stays_as_it_is():
    model = convnet().train()
    lipschitz_bound(model, X[:1])
    lipschitz_constants(model, X, stages=["0", "3"])
    assert model.training
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_refuses():
    with pytest.raises(ValueError, match="unknown batch_norm"):
        lipschitz_bound(convnet(), X[:1], batch_norm="drop")
    with pytest.raises(ValueError, match="no linear layer"):
        lipschitz_bound(nn.ReLU(), X[:1])
