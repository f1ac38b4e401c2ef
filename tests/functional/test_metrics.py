"""The metrics on matrices worked out by hand, and on random ones against the printed sums."""

import math

import pytest
import torch
from torch import Tensor

from liderlab.functional import metrics

NAN = math.nan

# After task 0, 1, 2 (rows) on task 0, 1, 2 (columns), in percent.
SEEN_ONLY = torch.tensor(
    [[90.0, NAN, NAN], [70.0, 80.0, NAN], [50.0, 85.0, 60.0]], dtype=torch.float64
)
ONE_AHEAD = torch.tensor(
    [[90.0, 55.0, NAN], [70.0, 80.0, 40.0], [50.0, 85.0, 60.0]], dtype=torch.float64
)
JOINT = torch.tensor([[NAN] * 3, [NAN] * 3, [95.0, 90.0, 91.0]], dtype=torch.float64)


def test_final_average_accuracy_is_the_mean_of_the_last_row() -> None:
    assert metrics.final_average_accuracy(SEEN_ONLY) == pytest.approx((50 + 85 + 60) / 3)


def test_final_forgetting_counts_from_the_best_accuracy_before_the_last_task() -> None:
    # Task 0: 90 at best, 50 at the end. Task 1: 80 → 85, negative forgetting. Task 2 is the last.
    assert metrics.final_forgetting(SEEN_ONLY) == pytest.approx(((90 - 50) + (80 - 85)) / 2)


def test_accuracy_before_a_tasks_training_cannot_be_forgotten() -> None:
    lucky = ONE_AHEAD.clone()
    lucky[0, 1] = 99.0  # task 1 before its own training
    assert metrics.final_forgetting(lucky) == metrics.final_forgetting(SEEN_ONLY)


def test_backward_transfer_counts_from_the_diagonal() -> None:
    assert metrics.backward_transfer(SEEN_ONLY) == pytest.approx(((50 - 90) + (85 - 80)) / 2)


def test_forward_transfer_looks_one_task_ahead() -> None:
    untrained = torch.tensor([48.0, 50.0, 45.0], dtype=torch.float64)
    expected = ((55 - 50) + (40 - 45)) / 2
    assert metrics.forward_transfer(ONE_AHEAD, untrained) == pytest.approx(expected)
    untrained[1] = 40.0
    assert metrics.forward_transfer(ONE_AHEAD, untrained) == pytest.approx(expected + 5)


@pytest.mark.parametrize("matrix", [SEEN_ONLY, ONE_AHEAD])
def test_average_incremental_accuracy_averages_over_the_tasks_seen(matrix: Tensor) -> None:
    expected = (90 + (70 + 80) / 2 + (50 + 85 + 60) / 3) / 3
    assert metrics.average_incremental_accuracy(matrix) == pytest.approx(expected)


def test_a_method_that_trains_at_the_end_has_a_final_accuracy_and_nothing_else() -> None:
    assert metrics.final_average_accuracy(JOINT) == pytest.approx(92)
    assert math.isnan(metrics.final_forgetting(JOINT))
    assert math.isnan(metrics.backward_transfer(JOINT))
    assert math.isnan(metrics.average_incremental_accuracy(JOINT))
    assert math.isnan(metrics.forward_transfer(JOINT, torch.zeros(3, dtype=torch.float64)))


def test_one_task_cannot_be_forgotten() -> None:
    matrix = torch.tensor([[80.0]])
    assert metrics.final_average_accuracy(matrix) == 80
    assert metrics.average_incremental_accuracy(matrix) == 80
    assert math.isnan(metrics.final_forgetting(matrix))
    assert math.isnan(metrics.backward_transfer(matrix))
    assert math.isnan(metrics.forward_transfer(matrix, torch.zeros(1)))


def test_a_task_that_was_never_learned_has_forgetting_zero() -> None:
    matrix = torch.tensor([[0.0, NAN], [0.0, 100.0]])
    assert metrics.final_forgetting(matrix) == 0


@pytest.mark.parametrize("tasks", [2, 5, 10])
def test_all_metrics_against_their_sums(tasks: int) -> None:
    a = 100 * torch.rand(tasks, tasks, dtype=torch.float64, generator=torch.Generator())
    b = 100 * torch.rand(tasks, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    last, before = tasks - 1, range(tasks - 1)
    forgetting = sum(max(a[t, i] - a[last, i] for t in range(i, last)) for i in before) / last
    backward = sum(a[last, i] - a[i, i] for i in before) / last
    forward = sum(a[i - 1, i] - b[i] for i in range(1, tasks)) / last
    incremental = sum(sum(a[t, : t + 1]) / (t + 1) for t in range(tasks)) / tasks
    assert metrics.final_forgetting(a) == pytest.approx(float(forgetting))
    assert metrics.backward_transfer(a) == pytest.approx(float(backward))
    assert metrics.forward_transfer(a, b) == pytest.approx(float(forward))
    assert metrics.average_incremental_accuracy(a) == pytest.approx(float(incremental))


# Two points in task 0, three in task 1, two in task 2; accuracies on tasks 0, 1, 2.
CURVE = torch.tensor(
    [
        [10.0, NAN, NAN],
        [90.0, NAN, NAN],
        [30.0, 5.0, NAN],
        [60.0, 50.0, NAN],
        [70.0, 80.0, NAN],
        [40.0, 20.0, 30.0],
        [50.0, 65.0, 60.0],
    ],
    dtype=torch.float64,
)
DURING = torch.tensor([0, 0, 1, 1, 1, 2, 2])


def test_the_minimum_counts_from_the_end_of_a_tasks_own_training() -> None:
    # Task 0: not the 10 of its own training, but 30. Task 1: not 5, but 20. Task 2 is the last.
    assert metrics.minimum_accuracy(CURVE, DURING) == pytest.approx((30 + 20) / 2)


def test_the_worst_case_adds_the_last_task_as_it_is_now() -> None:
    assert metrics.worst_case_accuracy(CURVE, DURING) == pytest.approx((60 + 30 + 20) / 3)


def test_anytime_accuracy_is_the_mean_of_the_means() -> None:
    means = [10, 90, (30 + 5) / 2, (60 + 50) / 2, (70 + 80) / 2, 90 / 3, 175 / 3]
    assert metrics.average_anytime_accuracy(CURVE) == pytest.approx(sum(means) / 7)


def test_a_single_task_has_no_minimum_and_is_its_own_worst_case() -> None:
    curve, task = CURVE[:2, :1], DURING[:2]
    assert math.isnan(metrics.minimum_accuracy(curve, task))
    assert metrics.worst_case_accuracy(curve, task) == 90
    assert metrics.average_anytime_accuracy(curve) == 50


def test_a_task_without_a_later_moment_has_no_minimum() -> None:
    assert math.isnan(metrics.minimum_accuracy(CURVE[:5], DURING[:5]))


@pytest.mark.parametrize("seed", range(3))
def test_metrics_of_a_curve_against_loops(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    tasks, each = 4, 5
    task = torch.arange(tasks).repeat_interleave(each)
    curve = 100 * torch.rand(tasks * each, tasks, dtype=torch.float64, generator=generator)
    curve[task[:, None] < torch.arange(tasks)] = NAN
    rows = list(zip(curve.tolist(), task.tolist(), strict=True))
    lowest = [min(row[i] for row, t in rows if t > i) for i in range(tasks - 1)]
    least = sum(lowest) / len(lowest)
    assert metrics.minimum_accuracy(curve, task) == pytest.approx(least)
    worst = (rows[-1][0][-1] + sum(lowest)) / tasks
    assert metrics.worst_case_accuracy(curve, task) == pytest.approx(worst)
    anytime = [sum(row[: t + 1]) / (t + 1) for row, t in rows]
    assert metrics.average_anytime_accuracy(curve) == pytest.approx(sum(anytime) / len(anytime))
