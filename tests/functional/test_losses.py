"""Losses per row against sums over exponentials, in float64."""

import math

import pytest
import torch

from liderlab.functional.losses import cross_entropy, logit_distance, masked_cross_entropy

LOGITS = 3 * torch.randn(7, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
Y = torch.tensor([0, 1, 2, 3, 4, 4, 0])


def by_hand(row: int, classes: list[int]) -> float:
    """−log of the label's share, over some classes."""
    shares = {c: math.exp(LOGITS[row, c]) for c in classes}
    return -math.log(shares[int(Y[row])] / sum(shares.values()))


def test_cross_entropy_is_one_value_per_row() -> None:
    expected = [by_hand(row, list(range(5))) for row in range(7)]
    assert cross_entropy(LOGITS, Y).tolist() == pytest.approx(expected)


def test_masked_cross_entropy_runs_over_the_allowed_classes() -> None:
    rows = [i for i in range(7) if Y[i] in (0, 2, 4)]
    allowed = torch.tensor([True, False, True, False, True])
    expected = [by_hand(row, [0, 2, 4]) for row in rows]
    assert masked_cross_entropy(LOGITS[rows], Y[rows], allowed).tolist() == pytest.approx(expected)


def test_masked_logits_receive_no_gradient() -> None:
    logits = LOGITS.clone().requires_grad_()
    allowed = torch.tensor([True, True, True, True, True])
    allowed[1] = False
    kept = Y != 1
    masked_cross_entropy(logits[kept], Y[kept], allowed).sum().backward()
    assert logits.grad is not None
    assert (logits.grad[:, 1] == 0).all()
    assert (logits.grad[kept][:, [0, 2, 3, 4]] != 0).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_masking_is_finite_in_every_precision(dtype: torch.dtype) -> None:
    allowed = torch.tensor([True, True, True, False, True])
    kept = Y != 3
    loss = masked_cross_entropy(LOGITS[kept].to(dtype), Y[kept], allowed)
    assert loss.isfinite().all()
    expected = [by_hand(row, [0, 1, 2, 4]) for row in kept.nonzero()[:, 0].tolist()]
    assert loss.tolist() == pytest.approx(expected, rel=0.05, abs=0.05)


def test_logit_distance_is_the_mean_square_over_classes() -> None:
    stored = LOGITS.flip(0)
    expected = [
        sum(float(LOGITS[i, c] - stored[i, c]) ** 2 for c in range(5)) / 5 for i in range(7)
    ]
    assert logit_distance(LOGITS, stored).tolist() == pytest.approx(expected)
