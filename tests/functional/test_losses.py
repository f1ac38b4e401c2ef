"""Losses per row against sums over exponentials, in float64."""

import math

import pytest
import torch

from liderlab.functional.losses import (
    binary_cross_entropy,
    cross_entropy,
    distillation,
    feature_distance,
    head_margin,
    implant_logits,
    incremental_targets,
    kl_divergence,
    logit_distance,
    masked_cross_entropy,
    simplex_vertices,
)

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


OTHER = LOGITS.flip(0) / 2 + 0.3


def shares(row: torch.Tensor, temperature: float = 1.0) -> list[float]:
    powers = [math.exp(float(z) / temperature) for z in row]
    return [power / sum(powers) for power in powers]


def test_kl_divergence_is_the_sum_over_classes() -> None:
    expected = []
    for row, other in zip(LOGITS, OTHER, strict=True):
        pairs = zip(shares(row), shares(other), strict=True)
        expected.append(sum(p * math.log(p / q) for p, q in pairs))
    assert kl_divergence(LOGITS, OTHER).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_distillation_is_the_cross_entropy_of_softened_shares(temperature: float) -> None:
    expected = []
    for row, old in zip(LOGITS, OTHER, strict=True):
        pairs = zip(shares(row, temperature), shares(old, temperature), strict=True)
        expected.append(-sum(target * math.log(p) for p, target in pairs))
    assert distillation(LOGITS, OTHER, temperature).tolist() == pytest.approx(expected)


def test_feature_distance_is_the_root_of_the_mean_square() -> None:
    expected = [
        math.sqrt(sum(float(a - b) ** 2 for a, b in zip(row, other, strict=True)) / 5)
        for row, other in zip(LOGITS, OTHER, strict=True)
    ]
    assert feature_distance(LOGITS, OTHER).tolist() == pytest.approx(expected)


def test_binary_cross_entropy_is_the_mean_over_classes() -> None:
    targets = OTHER.sigmoid()
    expected = []
    for row, target in zip(LOGITS.tolist(), targets.tolist(), strict=True):
        sigma = [1 / (1 + math.exp(-z)) for z in row]
        terms = zip(sigma, target, strict=True)
        total = sum(-t * math.log(s) - (1 - t) * math.log(1 - s) for s, t in terms)
        expected.append(total / 5)
    assert binary_cross_entropy(LOGITS, targets).tolist() == pytest.approx(expected)


def test_incremental_targets_keep_the_old_scores_and_the_new_labels() -> None:
    old = OTHER[:, :2].sigmoid()
    expected = [
        [float(old[i, c]) if c < 2 else float(c == int(Y[i])) for c in range(5)] for i in range(7)
    ]
    found = incremental_targets(Y, 5, old)
    assert found.dtype == torch.float64
    assert found.tolist() == expected


def test_head_margin_looks_at_the_best_of_each_head() -> None:
    own, other = torch.tensor([1, 0, 1, 0, 0]).bool(), torch.tensor([0, 1, 0, 1, 0]).bool()
    expected = [max(0.0, 0.7 + max(r[1], r[3]) - max(r[0], r[2])) for r in LOGITS.tolist()]
    assert 0.0 in expected
    assert head_margin(LOGITS, own, other, 0.7).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("classes", [range(2, 5), range(1, 2), range(3, 3)])
def test_implanted_logits_never_beat_the_true_class(classes: range) -> None:
    stored, new = LOGITS.clone(), OTHER.clone() + 1
    stored[0, 0], new[0, 1:] = 0.5, torch.tensor([0.2, 0.6, 0.4, 0.3])  # below one
    stored[1, 1], new[1, 1:] = 0.0, torch.tensor([1.0, 2.0, 3.0, 4.0])  # nothing to scale by
    stored[6, 0], new[6, 1:] = 2.0, torch.tensor([2.0, 1.0, 2.0, 1.0])  # equal: not beaten
    expected = stored.tolist()
    for i, y in enumerate(Y.tolist()):
        true, part = float(stored[i, y]), [float(new[i, c]) for c in classes]
        beaten = bool(part) and max(part) > true and true > 0
        factor = 0.8 * true / max(part) if beaten else 1.0
        for c, value in zip(classes, part, strict=True):
            expected[i][c] = factor * value
    found = implant_logits(stored, new, Y, classes, gamma=0.8)
    assert found.flatten().tolist() == pytest.approx([v for row in expected for v in row])


@pytest.mark.parametrize("classes", [2, 3, 6])
def test_simplex_vertices_are_equally_far_apart(classes: int) -> None:
    corners = simplex_vertices(classes).double()
    wanted = torch.full((classes, classes), -1 / (classes - 1), dtype=torch.float64)
    wanted.fill_diagonal_(1)
    torch.testing.assert_close(corners.T @ corners, wanted, atol=1e-6, rtol=0)


def test_a_simplex_has_two_corners_at_least() -> None:
    with pytest.raises(ValueError, match="at least 2 classes, but got 1"):
        simplex_vertices(1)
