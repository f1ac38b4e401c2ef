"""The confusion matrix of the page against a loop over its cells."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from liderlab.report.page.confusion import by_task, confusion_view, packed, task_borders

MATRICES = st.integers(2, 8).flatmap(
    lambda n: st.lists(
        st.lists(st.integers(0, 9), min_size=n, max_size=n).map(lambda row: [1 + row[0], *row[1:]]),
        min_size=n,
        max_size=n,
    )
)


def unpack(row: list[int]) -> list[int]:
    return [v for value in row for v in ([0] * -value if value < 0 else [value])]


@given(counts=MATRICES, data=st.data())
def test_packing_and_sums_over_tasks(counts: list[list[int]], data: st.DataObject) -> None:
    n = len(counts)
    borders = sorted(data.draw(st.sets(st.integers(1, n - 1))))
    ends = [0, *borders, n]
    images = [sum(map(sum, counts[a:b])) for a, b in pairwise(ends)]
    assert [unpack(packed(row)) for row in counts] == counts
    assert task_borders(counts, images) == borders
    task_of = [sum(c >= border for border in borders) for c in range(n)]
    expected = np.zeros((len(images), len(images)), dtype=int)
    for i, row in enumerate(counts):
        for j, value in enumerate(row):
            expected[task_of[i], task_of[j]] += value
    assert by_task(counts, borders) == expected.tolist()


def test_a_large_report_keeps_the_tasks_only() -> None:
    counts = [[7] * 50 for _ in range(50)]
    result = {"class_incremental": {"confusion_matrix": counts}, "data": {"test": [8750, 8750]}}
    assert confusion_view(result, runs=1)["classes"] == counts
    many = confusion_view(result, runs=2_000)
    assert many == {"classes": None, "tasks": [[4375, 4375], [4375, 4375]], "borders": [25]}
    assert confusion_view({}, runs=1) is None
    domains = confusion_view({**result, "setting": "domain-incremental"}, runs=1)
    assert domains == {"classes": counts, "tasks": None, "borders": []}
