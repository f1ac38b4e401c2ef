"""The validation split: deterministic, per class, without test images."""

import pytest
import torch

from liderlab.config.merging import make_config
from liderlab.errors import UserError
from liderlab.runs.build import build_stream, completed
from liderlab.streams.subsets import hold_out, spread_over_classes


def pixels(source) -> list[bytes]:
    return [row.numpy().tobytes() for row in source.rows(torch.arange(len(source)))["x"]]


def test_validation_images_come_from_training_images(stream) -> None:
    split = hold_out(stream, 0.25)
    for before, after in zip(stream.tasks, split.tasks, strict=True):
        assert sorted(pixels(after.train) + pixels(after.test)) == sorted(pixels(before.train))
        assert not set(pixels(after.test)) & set(pixels(before.test))
        counts = torch.bincount(after.test.rows(torch.arange(len(after.test)))["y"])
        assert counts[list(after.classes)].tolist() == [3, 3]  # a quarter of 12, of each class
    assert hold_out(stream, None) is stream


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.9])
def test_held_out_rows_are_spread_evenly(share: float) -> None:
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(0, 5, (200,), generator=generator)
    held = spread_over_classes(y, share)
    for c in range(5):
        rows = held[y == c].tolist()
        n, m = len(rows), max(1, round(share * (y == c).sum().item()))
        taken = [sum(rows[: k + 1]) for k in range(n)]
        assert taken == [(k + 1) * m // n for k in range(n)]


def test_the_validation_option_does_not_depend_on_the_seed() -> None:
    def held(seed: int) -> list[bytes]:
        fields = {"benchmark": {"name": "synthetic", "validation": 0.25}, "seed": seed}
        return pixels(build_stream(completed(make_config(fields))).tasks[0].test)

    assert held(0) == held(1)
    assert len(held(0)) == 12


def test_too_few_images_are_refused(stream) -> None:
    with pytest.raises(UserError, match="smaller share"):
        hold_out(stream, 0.99)
    with pytest.raises(UserError, match="validation"):
        make_config({"benchmark": {"name": "synthetic", "validation": 1.5}})
