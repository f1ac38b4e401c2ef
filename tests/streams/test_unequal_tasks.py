"""Tasks with unequal numbers of classes: by sizes, by a base, by names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from liderlab.config.merging import make_config
from liderlab.errors import UserError
from liderlab.memory import Poison
from liderlab.runs.build import build_stream, completed
from liderlab.runs.execute import run
from liderlab.streams.datasets.digits import split_digits
from liderlab.streams.datasets.synthetic import synthetic
from liderlab.streams.fingerprint import fingerprint
from liderlab.streams.splitting import Images, SplitStream, split
from liderlab.training.evaluation import best

SMALL: dict[str, Any] = {
    "benchmark": {"name": "synthetic"},
    "backbone": {"name": "convnet-small", "width": 8},
    "training": {"epochs": 1},
    "threads": 1,
}


def stream_of(**benchmark: Any) -> SplitStream:
    return build_stream(completed(make_config(SMALL, {"benchmark": benchmark})))


def sizes(stream: SplitStream) -> list[int]:
    return [len(task.classes) for task in stream.tasks]


def test_streams_of_earlier_versions_keep_their_fingerprints() -> None:
    order = [3, 1, 4, 0, 5, 9, 2, 6, 8, 7]
    few = {"name": "split-digits", "class_order": "shuffled", "validation": 0.2}
    assert fingerprint(split_digits()) == "853104236701615b"
    assert fingerprint(split_digits(3, order)) == "32e117f006a75854"
    assert fingerprint(synthetic()) == "bb03453f2c705188"
    assert fingerprint(stream_of(**few, train_per_class=20)) == "a33f9a61e32fe650"


@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.data())
def test_every_image_is_in_the_task_of_its_class_once(
    given: list[int], data: st.DataObject
) -> None:
    classes = sum(given)
    order = data.draw(st.permutations(range(classes)))
    y = torch.arange(3 * classes) % classes
    images = Images(y[:, None, None, None].to(torch.uint8).expand(-1, 1, 2, 2), y)
    stream = split(images, images, given, order)
    assert sizes(stream) == given
    assert [c for task in stream.tasks for c in task.classes] == list(range(classes))
    for task in stream.tasks:
        rows = task.train.rows(torch.arange(len(task.train)))
        assert len(task.train) == 3 * len(task.classes)
        assert [order[c] for c in rows["y"].tolist()] == rows["x"][:, 0, 0, 0].tolist()
        assert rows["task"].tolist() == [task.index] * len(task.train)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"tasks": [4, 1, 1]}, [4, 1, 1]),
        ({"tasks": 3, "base": 3}, [3, 2, 1]),
        ({"tasks": 3, "base": 1}, [1, 3, 2]),
        ({"tasks": 1, "base": 6}, [6]),
        ({"tasks": [["4"], ["0", "1", "2"], [5, 3]]}, [1, 3, 2]),
    ],
)
def test_three_ways_to_say_it(fields: dict[str, Any], expected: list[int]) -> None:
    assert sizes(stream_of(**fields)) == expected


def test_equal_sizes_are_the_stream_of_that_many_tasks() -> None:
    equal = fingerprint(stream_of(tasks=3))
    assert fingerprint(stream_of(tasks=[2, 2, 2])) == equal
    assert fingerprint(stream_of(tasks=3, base=2)) == equal
    assert fingerprint(stream_of(tasks=[[0, 1], [2, 3], [4, 5]])) == equal
    assert fingerprint(stream_of(tasks=[3, 2, 1])) != equal


def test_names_set_the_order() -> None:
    stream = stream_of(tasks=[["4"], ["0", "5", "2", "1", "3"]])
    assert list(stream.names) == ["4", "0", "5", "2", "1", "3"]
    by_number = stream_of(tasks=[1, 5], class_order=[4, 0, 5, 2, 1, 3])
    assert fingerprint(stream) == fingerprint(by_number)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tasks": [3, 2]}, "tasks of 3, 2 classes do not add up to the 6 classes"),
        ({"tasks": [6, 1]}, "tasks of 6, 1 classes do not add up"),
        ({"tasks": 3, "base": 7}, "a base of 7 classes and 2 further tasks do not add up to 6"),
        ({"tasks": 3, "base": 5}, "a base of 5 classes and 2 further tasks"),
        ({"tasks": 1, "base": 5}, "a base of 5 classes and 0 further tasks"),
        ({"tasks": [3, 3], "base": 3}, "needs the number of tasks, not a list"),
        ({"tasks": [["0"], ["1", "6"]]}, "unknown class '6'"),
        (
            {"tasks": [["0"], ["1", "2"]]},
            "names 3 classes, 3 of them different: name each of the 6",
        ),
        (
            {"tasks": [["0", "1", "2"], ["3", "4", "5", "5"]]},
            "names 7 classes, 6 of them different",
        ),
        ({"tasks": [["0"]], "class_order": "shuffled"}, "leave out class_order"),
        ({"tasks": []}, "expected the number of tasks"),
        ({"tasks": [[]]}, "expected the number of tasks"),
        ({"tasks": [3, 0, 3]}, "expected the number of tasks"),
        ({"tasks": True}, "expected the number of tasks"),
        ({"base": 0}, "benchmark.base"),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(
    fields: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=message) as error:
        run(make_config(SMALL, {"benchmark": fields}), tmp_path / "x")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "x").exists()


def test_the_command_line(lider: Any, tmp_path: Path) -> None:
    small = ("run", "--benchmark", "synthetic", "--width", "8", "--epochs", "1")
    code, out, err = lider(*small, "--tasks", "3,2,1", "--out", "x")
    assert code == 0, err
    assert "class-incremental with equal weights of test images: FAA" in out
    assert lider("show", "x")[0] == lider("report", "x", "-o", "r.html")[0] == 0
    code, _, err = lider(*small, "--base", "8", "--tasks", "2", "--out", "y")
    assert (code, err.count("\n")) == (2, 1)
    assert not (tmp_path / "y").exists()


def test_accuracy_per_sample_is_that_of_all_test_images(tmp_path: Path) -> None:
    """The confusion matrix counts every test image once."""
    result = run(make_config(SMALL, {"benchmark": {"tasks": [4, 1, 1]}}), tmp_path / "x")
    accuracy = result["class_incremental"]
    counts = torch.tensor(accuracy["confusion_matrix"])
    right = 100 * float(counts.trace() / counts.sum())
    assert accuracy["faa_per_sample"] == pytest.approx(right)
    assert accuracy["faa"] == pytest.approx(sum(accuracy["accuracy_matrix"][-1]) / 3)


def test_the_best_of_any_classes() -> None:
    scores = torch.tensor([[9.0, 1.0, 5.0, 2.0], [0.0, 7.0, 3.0, 3.0]])
    assert best(scores, [1, 3]).tolist() == [3, 1]
    assert best(scores, [2, 3]).tolist() == [2, 2]
    assert best(scores, range(4)).tolist() == scores.argmax(1).tolist()


def test_poison_of_consecutive_classes_is_that_of_earlier_versions() -> None:
    y = torch.tensor([2, 0, 1, 3, 0, 0, 0, 5, 5, 3, 2, 3])
    task = torch.tensor([0, 0, 0, 0, 0, 0, 0, 2, 2, 0, 0, 0])
    labels, _ = Poison(0.6, [range(4), range(4, 5), range(5, 8)], seed=5)(y, task)
    assert labels.tolist() == [2, 1, 2, 0, 2, 0, 3, 5, 5, 1, 3, 1]
