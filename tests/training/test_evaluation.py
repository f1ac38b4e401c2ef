"""Accuracies and confusion against a loop over single test images."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from liderlab.memory import Memory
from liderlab.memory.policies import Reservoir
from liderlab.streams.splitting import SplitStream
from liderlab.training import evaluation as module
from liderlab.training.evaluation import Evaluation, accuracy, score
from liderlab.types import Task


class Guess(nn.Module):
    """Scores that depend on the image in some way, and on nothing else."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.weight = nn.Parameter(torch.randn(3 * 8 * 8, 6, generator=generator))

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1) @ self.weight


def one_by_one(classifier: nn.Module, stream: SplitStream, task: Task) -> list[tuple[Tensor, int]]:
    """(scores, label) of every test image, each on its own."""
    rows = task.test.rows(torch.arange(len(task.test)))
    mean, std = torch.tensor(0.5), torch.tensor(0.25)
    with torch.no_grad():
        return [
            (classifier(((x / 255 - mean) / std)[None])[0], int(y))
            for x, y in zip(rows["x"], rows["y"], strict=True)
        ]


def best(scores: Tensor, classes: range) -> int:
    return max(classes, key=lambda c: float(scores[c]))


def share(rows: list[tuple[Tensor, int]], classes: range) -> float:
    return 100 * sum(best(scores, classes) == y for scores, y in rows) / len(rows)


def test_both_matrices_and_the_confusion_against_a_loop(stream: SplitStream) -> None:
    evaluation = Evaluation(3)
    evaluation.before_training(Guess(9), stream)
    for now in stream.tasks:
        classifier = Guess(now.index)
        evaluation.after_task(classifier, stream, now)
        seen = range(now.classes.stop)
        confusion = torch.zeros(6, 6, dtype=torch.int64)
        for task in stream.tasks:
            rows = one_by_one(classifier, stream, task)
            t, i = now.index, task.index
            if i <= t:
                assert evaluation.class_incremental[t, i] == pytest.approx(share(rows, seen))
                for scores, y in rows:
                    confusion[y, best(scores, seen)] += 1
            else:
                assert evaluation.class_incremental[t, i].isnan()
            if i <= t + 1:
                own = pytest.approx(share(rows, task.classes))
                assert evaluation.task_incremental[t, i] == own
            else:
                assert evaluation.task_incremental[t, i].isnan()
        assert torch.equal(evaluation.confusion, confusion)
        assert confusion.sum() == 16 * (now.index + 1)
    untrained = [share(one_by_one(Guess(9), stream, t), t.classes) for t in stream.tasks]
    assert evaluation.untrained.tolist() == pytest.approx(untrained)


def test_many_classes_have_no_confusion_matrix(stream: SplitStream, monkeypatch) -> None:
    monkeypatch.setattr(module, "MOST_CLASSES", 5)
    evaluation = Evaluation(3)
    evaluation.after_task(Guess(0), stream, stream.tasks[0])
    assert evaluation.summary()["class_incremental"]["confusion_matrix"] == []
    assert not evaluation.class_incremental[0, 0].isnan()


def test_classes_that_were_not_seen_yet_are_never_predicted(stream: SplitStream) -> None:
    class Last(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.arange(6.0).expand(len(x), 6)

    evaluation = Evaluation(3)
    evaluation.after_task(Last(), stream, stream.tasks[0])
    assert evaluation.class_incremental[0, 0] == 50  # the second of the two classes seen
    assert evaluation.confusion[:, 2:].sum() == 0


def test_undefined_metrics_are_none(stream: SplitStream) -> None:
    joint = Evaluation(3)
    joint.after_task(Guess(0), stream, stream.tasks[-1])
    for setting in ("class_incremental", "task_incremental"):
        summary = joint.summary()[setting]
        assert isinstance(summary["faa"], float)
        assert {name: summary[name] for name in ("ff", "bwt", "fwt", "aia")} == dict.fromkeys(
            ("ff", "bwt", "fwt", "aia")
        )
        matrix = summary["accuracy_matrix"]
        assert isinstance(matrix, list)
        assert matrix[:2] == [[None] * 3] * 2
        assert None not in matrix[2]


def test_the_summary_is_the_metrics_of_the_matrices(stream: SplitStream) -> None:
    evaluation = Evaluation(3)
    evaluation.before_training(Guess(9), stream)
    for task in stream.tasks:
        evaluation.after_task(Guess(task.index), stream, task)
    summary = evaluation.summary()
    for setting in ("class_incremental", "task_incremental"):
        a = getattr(evaluation, setting)
        assert summary[setting]["faa"] == pytest.approx(float(a[2].mean()))
        forgotten = (max(a[0, 0], a[1, 0]) - a[2, 0] + a[1, 1] - a[2, 1]) / 2
        assert summary[setting]["ff"] == pytest.approx(float(forgotten))
        moved = (a[2, 0] - a[0, 0] + a[2, 1] - a[1, 1]) / 2
        assert summary[setting]["bwt"] == pytest.approx(float(moved))
        incremental = (a[0, 0] + a[1, :2].mean() + a[2].mean()) / 3
        assert summary[setting]["aia"] == pytest.approx(float(incremental))
    a, b = evaluation.task_incremental, evaluation.untrained
    ahead = (a[0, 1] - b[1] + a[1, 2] - b[2]) / 2
    assert summary["task_incremental"]["fwt"] == pytest.approx(float(ahead))
    assert summary["class_incremental"]["fwt"] is None
    assert summary["class_incremental"]["confusion_matrix"] == evaluation.confusion.tolist()


def test_scoring_leaves_every_module_in_its_mode(stream: SplitStream) -> None:
    network = nn.Sequential(nn.Flatten(), nn.Linear(192, 6), nn.BatchNorm1d(6), nn.Dropout(0.5))
    network.train()
    network[2].eval()  # frozen: it must stay in eval mode
    statistics = network[2].running_mean.clone()
    first, _ = score(network, stream, stream.tasks[0].test)
    second, _ = score(network, stream, stream.tasks[0].test)
    assert torch.equal(first, second)  # in eval mode: nothing dropped
    assert not first.requires_grad
    assert [module.training for module in network] == [True, True, False, True]
    assert torch.equal(network[2].running_mean, statistics)


def test_accuracy_looks_at_the_given_classes_only() -> None:
    scores = torch.tensor([[9.0, 1.0, 2.0, 8.0], [9.0, 2.0, 1.0, 8.0], [9.0, 1.0, 2.0, 8.0]])
    assert accuracy(scores, torch.tensor([2, 1, 1]), range(1, 3)) == pytest.approx(200 / 3)
    assert accuracy(scores, torch.tensor([0, 0, 3]), range(4)) == pytest.approx(200 / 3)


def test_state_is_restored_and_independent(
    stream: SplitStream, differences: Callable[..., list[str]]
) -> None:
    evaluation = Evaluation(3)
    evaluation.before_training(Guess(9), stream)
    evaluation.after_task(Guess(0), stream, stream.tasks[0])
    again = Evaluation(3)
    again.load_state_dict(evaluation.state_dict())
    assert not differences(again.state_dict(), evaluation.state_dict())
    evaluation.after_task(Guess(1), stream, stream.tasks[1])
    assert math.isnan(again.class_incremental[1, 0])
    assert again.confusion.sum() == 16


def filled_memory(stream: SplitStream, tasks: int) -> Memory:
    """The first five training images of every task so far."""
    memory = Memory(20, stream.image_shape, {}, Reservoir())
    for task in stream.tasks[:tasks]:
        memory.offer(torch.Generator(), **task.train.rows(torch.arange(5)))
    return memory


@pytest.mark.parametrize("most", [5_000, 4])
def test_accuracy_on_memory_against_a_loop(
    stream: SplitStream, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_OF_MEMORY", most)
    evaluation, classifier, now = Evaluation(3), Guess(1), stream.tasks[1]
    memory = filled_memory(stream, 2)
    evaluation.remember(classifier, stream, memory, now)
    rows = memory.rows(torch.arange(0, 10, 1 if most > 10 else 3))
    for task in (0, 1):
        mine = rows["task"] == task
        scores = [classifier(((x / 255 - 0.5) / 0.25)[None])[0].detach() for x in rows["x"][mine]]
        pairs = [(s, int(y)) for s, y in zip(scores, rows["y"][mine], strict=True)]
        assert evaluation.on_memory[1, task] == pytest.approx(share(pairs, range(4)))
    assert evaluation.on_memory[0].isnan().all()
    assert evaluation.on_memory[1, 2].isnan()
    summary = evaluation.summary()["class_incremental"]["memory_accuracy"]
    assert summary[0] == [None] * 3
    assert summary[1][:2] == evaluation.on_memory[1, :2].tolist()


def test_an_empty_memory_has_no_accuracy(stream: SplitStream) -> None:
    evaluation = Evaluation(3)
    evaluation.remember(Guess(0), stream, filled_memory(stream, 0), stream.tasks[0])
    assert evaluation.on_memory.isnan().all()
