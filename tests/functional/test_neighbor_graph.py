"""The neighbours' graph against the authors' values, closed forms and brute force, in float64.

How the authors' numbers were made: `calc_euclid_dist`, `calc_ADL_knn` and `normalize_A` of Mammoth
(e75a491, models/casper_utils) on `features()` below, the eigenvalues by torch.linalg.eigvalsh, the
loss as in its casper_model.py: the first n + 1 eigenvalues minus the next. Its `expm1_guard` of
1e-7, which moves gradients by up to 5e-6 here, was set to 0.
"""

import pytest
import torch

from liderlab.functional.neighbor_graph import neighbor_laplacian, soft_neighbors, spectral_gap
from liderlab.functional.sampling import draw_balanced

RELEASED = {  # (k, n): loss, gradient of the first row, norm of the gradient
    (2, 2): (
        -0.5300301552466246,
        [-0.08486694, 0.06857807, 0.07399917, -0.06732348, -0.06177519],
        0.7352988455285298,
    ),
    (4, 2): (
        0.45488799027438565,
        [0.1958921, -0.03449295, -0.12467626, 0.10916272, 0.12899155],
        0.649175312913572,
    ),
    (4, 3): (
        1.5215014539130212,
        [0.10420543, 0.11201475, -0.05562598, -0.05987737, 0.10578221],
        0.5820264890418585,
    ),
}


def features() -> torch.Tensor:
    i = torch.arange(40, dtype=torch.float64).reshape(8, 5)
    return torch.sin(1.7 * i) + 0.3 * torch.cos(0.9 * i * i)


def randn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("k", "n"), RELEASED)
def test_value_and_gradient_are_the_authors(k: int, n: int) -> None:
    loss, first_row, norm = RELEASED[k, n]
    x = features().requires_grad_()
    gap = spectral_gap(neighbor_laplacian(x, k), n + 1)
    (gradient,) = torch.autograd.grad(gap, x)
    assert float(gap.detach()) == pytest.approx(loss, rel=1e-10)
    expected = torch.tensor(first_row, dtype=torch.float64)
    torch.testing.assert_close(gradient[0], expected, rtol=0, atol=2e-8)  # eight digits are above
    assert float(gradient.norm()) == pytest.approx(norm, rel=1e-8)


def test_separate_groups_have_the_spectrum_of_cliques() -> None:
    """g groups of m rows, k = m − 1: g zeros, then m/(m − 1), for every clique m − 1 times."""
    centres = 100 * torch.eye(3, dtype=torch.float64)
    x = centres.repeat_interleave(4, 0) + 0.1 * randn(12, 3)
    laplacian = neighbor_laplacian(x, 3)
    values = torch.linalg.eigvalsh(laplacian)
    expected = torch.tensor([0.0] * 3 + [4 / 3] * 9, dtype=torch.float64)
    torch.testing.assert_close(values, expected, atol=1e-12, rtol=0)
    torch.testing.assert_close(spectral_gap(laplacian, 3), torch.tensor(-4 / 3).double())


def test_where_p_rounds_to_one_float32_still_follows_float64() -> None:
    """Distances of tens: 1 − p is below the rounding of p, and its logarithm would be −∞."""
    distances = 40 * randn(7, 7).abs()
    assert (-distances.float()).fill_diagonal_(-torch.inf).softmax(1).max() == 1
    exact = distances.clone().requires_grad_()
    rounded = distances.float().requires_grad_()
    weights, values = randn(7, 7, seed=1), []
    for d in (exact, rounded):
        chosen = soft_neighbors(d, 4)
        values.append([chosen.detach(), torch.autograd.grad((chosen * weights).sum(), d)[0]])
    for a, b in zip(*values, strict=True):
        torch.testing.assert_close(b.double(), a, atol=1e-4, rtol=1e-4)


def test_soft_choice_against_its_rounds_written_out() -> None:
    distances = randn(6, 6).square()
    z, total = -distances, torch.zeros(6, 6, dtype=torch.float64)
    z.fill_diagonal_(-torch.inf)
    for _ in range(3):
        p = z.exp() / z.exp().sum(1, keepdim=True)
        total += p
        z = z + (1 - p).log()
    torch.testing.assert_close(soft_neighbors(distances, 3), total)


def test_gradient_of_the_soft_choice() -> None:
    assert torch.autograd.gradcheck(
        lambda d: soft_neighbors(d, 3), randn(5, 5).square().requires_grad_()
    )


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="more than 4 rows for 4 neighbours, got 4"):
        neighbor_laplacian(randn(4, 2), 4)


def test_balanced_draw() -> None:
    y = torch.tensor([0] * 10 + [1] * 10 + [2] * 2 + [3] * 10)
    generator = torch.Generator().manual_seed(0)
    classes = set()
    for _ in range(50):
        rows = draw_balanced(y, 2, 9, generator)
        counts = y[rows].bincount(minlength=4)
        classes |= set(counts.nonzero()[:, 0].tolist())
        assert len(set(rows.tolist())) == len(rows)
        assert (counts > 0).sum() == 2
        if counts[2]:
            assert counts[2] == 2  # all it has
            assert counts.max() == 5
        else:
            assert sorted(counts.tolist()) == [0, 0, 4, 5]
    assert classes == {0, 1, 2, 3}
