"""Hessian products, eigenvalues and trace against the dense Hessian, in float64."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from liderlab.functional.hessian_products import (
    flatten,
    hessian_product,
    hutchinson_trace,
    unflatten,
)
from liderlab.functional.lanczos import top_eigenvalues


@pytest.fixture(scope="module")
def problem() -> tuple[nn.Module, Tensor, Tensor, dict[str, Tensor], Tensor]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 4)).double()
    x, y = torch.randn(20, 3, dtype=torch.float64), torch.arange(20) % 4
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def flat_loss(vector: Tensor) -> Tensor:
        return loss(model, x, y, unflatten(vector, parameters))

    dense = torch.autograd.functional.hessian(flat_loss, flatten(parameters))
    return model, x, y, parameters, dense


def loss(model: nn.Module, x: Tensor, y: Tensor, theta: dict[str, Tensor]) -> Tensor:
    return F.cross_entropy(functional_call(model, theta, (x,)), y)


def product_of(problem):
    model, x, y, parameters, _ = problem
    return hessian_product(lambda theta: loss(model, x, y, theta), parameters)


def test_product_is_the_dense_hessians(problem):
    dense = problem[-1]
    product = product_of(problem)
    for seed in range(3):
        v = torch.randn(
            len(dense), generator=torch.Generator().manual_seed(seed), dtype=torch.float64
        )
        torch.testing.assert_close(product(v), dense @ v)


@pytest.mark.parametrize("k", [1, 3, 40])
def test_top_eigenvalues_are_the_dense_hessians(problem, k):
    dense = problem[-1]
    truth = torch.linalg.eigvalsh(dense).flip(0)[:k]
    ours = top_eigenvalues(product_of(problem), len(dense), k, like=dense, tol=1e-10)
    torch.testing.assert_close(ours, truth, rtol=1e-7, atol=1e-9)


def test_trace_converges_to_the_dense_hessians(problem):
    dense = problem[-1]
    truth = float(dense.trace())
    errors = []
    for samples in (16, 1024):
        generator = torch.Generator().manual_seed(0)
        mean, error = hutchinson_trace(
            product_of(problem), len(dense), samples=samples, like=dense, generator=generator
        )
        assert abs(mean - truth) < 4 * error
        errors.append(error)
    assert errors[1] < errors[0] / 4  # 1/√64 of it, if the estimate of the error were exact
    assert errors[1] < 0.05 * abs(truth)


def test_flatten_and_back():
    tree = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor(7.0)}
    back = unflatten(flatten(tree), tree)
    assert all(torch.equal(tree[name], back[name]) for name in tree)


def test_lanczos_is_deterministic_and_ignores_the_global_generator():
    matrix = torch.randn(50, 50, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    matrix = matrix + matrix.T
    values = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        values.append(top_eigenvalues(lambda v: matrix @ v, 50, 2, like=matrix))
    assert torch.equal(*values)


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="1 ≤ k ≤ 4"):
        top_eigenvalues(lambda v: v, 4, 5)
    with pytest.raises(ValueError, match="at least 2 samples"):
        hutchinson_trace(lambda v: v, 4, samples=1)


@pytest.mark.parametrize(
    ("size", "k", "dense"), [(20, 1, True), (21, 1, False), (41, 20, True), (42, 20, False)]
)
def test_matrices_no_larger_than_the_basis_are_built(size, k, dense):
    """Lanczos would build a basis of 2k + 1 vectors, of 20 at least."""
    matrix = torch.diag(torch.arange(size, dtype=torch.float64))
    vectors = []
    top_eigenvalues(lambda v: vectors.append(v) or matrix @ v, size, k, like=matrix)
    assert torch.equal(torch.stack(vectors[:size]), torch.eye(size).double()) == dense
    assert not dense or len(vectors) == size
