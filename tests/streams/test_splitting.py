"""Labelled images become a stream: no sample is lost, doubled or relabelled."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from liderlab.errors import UserError
from liderlab.streams.splitting import Images, shuffled_order, split
from liderlab.types import Source


def numbered(labels: list[int], first: int = 0) -> Images:
    """Images that carry their own number in their first pixel, and their label in the second."""
    y = torch.tensor(labels)
    x = torch.zeros(len(y), 1, 2, 2, dtype=torch.uint8)
    x[:, 0, 0, 0] = torch.arange(first, first + len(y))
    x[:, 0, 0, 1] = y
    return Images(x, y)


def contents(source: Source) -> list[tuple[int, int, int, int]]:
    """(number, original label, y, task) of every row."""
    rows = source.rows(torch.arange(len(source)))
    number, label = rows["x"][:, 0, 0, 0].tolist(), rows["x"][:, 0, 0, 1].tolist()
    return list(zip(number, label, rows["y"].tolist(), rows["task"].tolist(), strict=True))


@given(st.data())
def test_every_sample_is_in_the_task_of_its_class_once(data: st.DataObject) -> None:
    classes = data.draw(st.integers(1, 9))
    tasks = data.draw(st.integers(1, classes))
    order = data.draw(st.permutations(range(classes)))
    some = st.lists(st.integers(0, classes - 1), max_size=20)
    train = numbered([*range(classes), *data.draw(some)])
    test = numbered([*data.draw(some), *range(classes)], first=100)
    stream = split(train, test, tasks, order)

    assert [c for task in stream.tasks for c in task.classes] == list(range(classes))
    sizes = [len(task.classes) for task in stream.tasks]
    assert sorted(sizes, reverse=True) == sizes
    assert sizes[0] - sizes[-1] <= 1
    assert stream.names == [str(c) for c in order]
    for images, part in ((train, "train"), (test, "test")):
        rows = [row for task in stream.tasks for row in contents(getattr(task, part))]
        assert sorted(number for number, *_ in rows) == sorted(images.x[:, 0, 0, 0].tolist())
        for _, label, y, task in rows:
            assert order[y] == label
            assert y in stream.tasks[task].classes


def test_rows_come_in_the_order_asked_for() -> None:
    stream = split(numbered([0, 1, 0, 1, 0]), numbered([0, 1]), 2)
    rows = stream.tasks[0].train.rows(torch.tensor([2, 0, 2]))
    assert rows["x"][:, 0, 0, 0].tolist() == [4, 0, 4]


def test_names_follow_the_class_order() -> None:
    images = numbered([0, 1, 2])
    stream = split(images, images, 3, [2, 0, 1], names=["ant", "bee", "cat"])
    assert stream.names == ["cat", "ant", "bee"]
    assert contents(stream.tasks[0].train) == [(2, 2, 0, 0)]


def test_the_first_tasks_get_the_remaining_classes() -> None:
    images = numbered(list(range(7)))
    assert [len(task.classes) for task in split(images, images, 3).tasks] == [3, 2, 2]


@pytest.mark.parametrize("order", [[0, 1], [0, 1, 1], [1, 2, 3], [0, 1, 2, 3]])
def test_an_invalid_class_order_is_refused(order: list[int]) -> None:
    images = numbered([0, 1, 2])
    with pytest.raises(UserError, match="each of the 3 classes 0…2 once, but got") as error:
        split(images, images, 3, order)
    assert str(order) in str(error.value)


@pytest.mark.parametrize("tasks", [0, -1, 4])
def test_an_impossible_number_of_tasks_is_refused(tasks: int) -> None:
    images = numbered([0, 1, 2])
    with pytest.raises(UserError, match=f"1…3 tasks, not {tasks}"):
        split(images, images, tasks)


@pytest.mark.parametrize("part", ["training", "test"])
def test_a_class_without_images_is_refused(part: str) -> None:
    whole, hole = numbered([0, 1, 2]), numbered([0, 2, 2])
    train, test = (hole, whole) if part == "training" else (whole, hole)
    with pytest.raises(UserError, match=f"class 1 has no {part} images"):
        split(train, test, 3)
    with pytest.raises(UserError, match=rf"class 1 \(bee\) has no {part} images"):
        split(train, test, 3, names=["ant", "bee", "cat"])


def test_a_shuffled_order_depends_on_its_seed() -> None:
    order = shuffled_order(20, seed=3)
    assert sorted(order) == list(range(20))
    assert order == shuffled_order(20, seed=3) != shuffled_order(20, seed=4)


def test_split_can_be_imported_from_streams() -> None:
    import liderlab
    import liderlab.streams

    assert liderlab.streams.split is split is liderlab.split
    assert liderlab.streams.Images is Images
    with pytest.raises(AttributeError, match="spilt"):
        _ = liderlab.streams.spilt
