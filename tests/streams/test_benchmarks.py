"""The benchmarks that need no download."""

from collections.abc import Callable

import pytest
import torch

from liderlab.streams import BENCHMARKS
from liderlab.streams.datasets.digits import split_digits
from liderlab.streams.datasets.synthetic import synthetic
from liderlab.streams.splitting import SplitStream

OFFLINE = ["split-digits", "synthetic"]


def everything(stream: SplitStream, part: str) -> dict[str, torch.Tensor]:
    sources = [getattr(task, part) for task in stream.tasks]
    rows = [source.rows(torch.arange(len(source))) for source in sources]
    return {name: torch.cat([r[name] for r in rows]) for name in ("x", "y", "task")}


@pytest.mark.parametrize("name", OFFLINE)
def test_a_benchmark_matches_its_entry(name: str) -> None:
    facts = BENCHMARKS[name].facts
    stream = BENCHMARKS.load(name)()
    assert len(stream.tasks) == facts["tasks"]
    assert len(stream.names) == facts["classes"]
    assert "x".join(map(str, stream.image_shape)) == facts["image"]
    for part in ("train", "test"):
        rows = everything(stream, part)
        assert rows["x"].dtype == torch.uint8
        assert rows["x"].shape[1:] == stream.image_shape
        assert rows["y"].unique().tolist() == list(range(facts["classes"]))


@pytest.mark.parametrize("make", [split_digits, synthetic])
def test_a_benchmark_is_deterministic(
    make: Callable[..., SplitStream], differences: Callable[..., list[str]]
) -> None:
    first, second = make(), make()
    for part in ("train", "test"):
        assert not differences(everything(first, part), everything(second, part))


@pytest.mark.parametrize("make", [split_digits, synthetic])
def test_no_test_image_is_a_training_image(make: Callable[..., SplitStream]) -> None:
    stream = make()
    train, test = (
        {bytes(x.numpy()) for x in everything(stream, p)["x"]} for p in ("train", "test")
    )
    assert len(train) > len(test) > 0
    assert not train & test


def test_digits_are_those_of_scikit_learn() -> None:
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = [3, 1, 4, 0, 5, 9, 2, 6, 8, 7]
    stream = split_digits(class_order=order)
    ours: dict[bytes, int] = {}
    for part in ("train", "test"):
        rows = everything(stream, part)
        ours |= {bytes(x.numpy()): order[y] for x, y in zip(rows["x"], rows["y"], strict=True)}
    for image, label in zip(digits.images, digits.target, strict=True):
        pixels = torch.tensor([[round(v * 255 / 16) for v in row] for row in image.tolist()])
        assert ours[bytes(pixels.to(torch.uint8).numpy())] == label
    assert sum(len(t.train) + len(t.test) for t in stream.tasks) == len(digits.target) == 1797


def test_a_fifth_of_every_digit_is_for_testing() -> None:
    stream = split_digits()
    train, test = (torch.bincount(everything(stream, part)["y"]) for part in ("train", "test"))
    assert torch.equal(test, (train + test) // 5)


def test_digits_are_normalised_by_their_own_statistics() -> None:
    stream = split_digits()
    x = stream.transform.sample(1, None)(everything(stream, "train")["x"])
    assert x.mean().item() == pytest.approx(0, abs=1e-3)
    assert x.std().item() == pytest.approx(1, abs=1e-3)


def test_arguments_of_synthetic() -> None:
    stream = synthetic(4, classes=8, per_class=5, channels=1, side=6, seed=2)
    assert stream.image_shape == (1, 6, 6)
    assert [len(task.train) for task in stream.tasks] == [10] * 4
    assert [len(task.test) for task in stream.tasks] == [4] * 4
    other = everything(synthetic(4, classes=8, per_class=5, channels=1, side=6, seed=3), "train")
    assert not torch.equal(everything(stream, "train")["x"], other["x"])
