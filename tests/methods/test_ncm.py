"""NCM: class means of frozen features, against means taken one by one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from liderlab.methods.ncm import NCM
from liderlab.training.events import StepDone, TaskDone
from liderlab.training.loop import Loop
from liderlab.types import Recipe, Task

Lider = Callable[..., tuple[int, str, str]]
CLASSES = 6


def brute_force_means(
    network: Any, stream: Any, tasks: list[Task], normalize: bool
) -> dict[int, list[float]]:
    """The mean feature of every class in these tasks, image by image, in Python's floats."""
    sums: dict[int, list[float]] = {}
    counts: dict[int, int] = {}
    for task in tasks:
        for i in range(len(task.train)):
            row = task.train.rows(torch.tensor([i]))
            x = stream.transform.sample(1, None)(row["x"])
            feature = scaled(network.features(x)[0].tolist(), normalize)
            c = int(row["y"])
            sums[c] = [
                a + b for a, b in zip(sums.get(c, [0.0] * len(feature)), feature, strict=True)
            ]
            counts[c] = counts.get(c, 0) + 1
    return {c: scaled([v / counts[c] for v in sums[c]], normalize) for c in sums}


def scaled(vector: list[float], normalize: bool) -> list[float]:
    length = math.sqrt(sum(v * v for v in vector)) if normalize else 1.0
    return [v / length for v in vector]


class Double:
    """A transform to float64."""

    def __init__(self, transform: Any) -> None:
        self.mean, self.std, self._transform = transform.mean, transform.std, transform

    def sample(self, n: int, generator: Any, part: slice = slice(None)) -> Any:
        view = self._transform.sample(n, generator, part)
        return lambda raw: view(raw.double())


def double(build: Callable[..., Loop], **how: Any) -> Loop:
    """A run in float64."""
    loop = build("ncm", **how)
    loop.network.double()
    loop.method.double()
    return loop


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("kind", ["plain", "unequal", "domains", "blurry"])
def test_scores_are_the_distances_to_brute_force_means(
    kind: str, normalize: bool, build: Callable[..., Loop], stream_of_kind: Callable[[str], Any]
) -> None:
    """After every task, in float64; domains and blurry tasks meet a class again."""
    stream = stream_of_kind(kind)
    stream = replace(stream, transform=Double(stream.transform))
    loop = double(build, stream=stream, options={"normalize": normalize})
    x = torch.rand(5, 3, 8, 8, dtype=torch.float64)
    done = 0
    for event in loop:
        if not isinstance(event, TaskDone):
            continue
        done += 1
        means = brute_force_means(loop.network, stream, stream.tasks[:done], normalize)
        scores = loop.method.classifier(loop.network)(x)
        for i, row in enumerate(loop.network.features(x).tolist()):
            feature = scaled(row, normalize)
            for c in range(CLASSES):
                expected = -math.dist(feature, means[c]) if c in means else -math.inf
                assert scores[i, c].item() == pytest.approx(expected, rel=1e-11, abs=1e-12)
    assert done == len(stream.tasks)


def test_the_network_does_not_move(build: Callable[..., Loop]) -> None:
    loop = build("ncm", epochs=3)
    before = {name: value.clone() for name, value in loop.network.state_dict().items()}
    events = [event for event in loop if isinstance(event, StepDone)]
    assert all(torch.equal(value, before[n]) for n, value in loop.network.state_dict().items())
    assert all(event.terms == {} for event in events)
    assert {event.epoch for event in events} == {0}  # one pass, however many epochs
    assert loop.method.counts.tolist() == [12] * CLASSES
    assert not loop.evaluation.class_incremental[-1].isnan().any()


def test_every_image_counts_once_also_those_of_a_short_batch(build: Callable[..., Loop]) -> None:
    loop = build("ncm", recipe=Recipe(lr=0.1, batch_size=7, drop_last=True))
    for _ in loop:
        pass
    assert loop.method.counts.tolist() == [12] * CLASSES


def test_a_class_without_images_is_never_predicted() -> None:
    class Same(torch.nn.Module):
        def features(self, x: Tensor) -> Tensor:
            return x

    method = NCM(normalize=False)
    method.register_buffer("sums", torch.tensor([[2.0, 0.0], [0.0, 0.0]]))
    method.register_buffer("counts", torch.tensor([2, 0]))
    scores = method.classifier(Same())(torch.tensor([[0.0, 0.0]]))  # type: ignore[arg-type]
    assert scores.tolist() == [[-1.0, -math.inf]]


RUN = ["run", "--benchmark", "synthetic", "--method", "ncm"]


def test_it_warns_of_an_untrained_backbone(lider: Lider, caplog: pytest.LogCaptureFixture) -> None:
    code, _, err = lider(*RUN, "--out", "a")
    assert code == 0, err
    assert "ncm leaves the backbone as it starts, and this one is untrained" in caplog.text
    caplog.clear()
    code, _, err = lider(*RUN, "--pretrained", "a", "--out", "b")
    assert code == 0, err
    assert not caplog.text


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--lider --lider-on stream", "ncm trains nothing that lider could change"),
        ("--regularizer oewc", "ncm trains nothing that oewc could change"),
        ("--set training.budget.steps=10", "passes each task once: leave out training.budget"),
        ("--set training.updates_per_batch=2", "leave out training.updates_per_batch"),
        ("--set training.patience=1", "leave out training.patience"),
        ("--heads seen", "ncm cannot be trained with training.heads=seen: choose all"),
    ],
)
def test_options_without_a_meaning_are_refused(
    options: str, sentence: str, lider: Lider, tmp_path: Path
) -> None:
    code, _, err = lider(*RUN, *options.split(), "--out", "refused")
    assert code == 2
    assert sentence in err
    assert err.count("\n") == 1
    assert not (tmp_path / "refused").exists()


def test_a_rank_without_rows_adds_nothing(make_step: Callable[..., Any]) -> None:
    method = NCM()
    train = (torch.randn(4, 4), torch.tensor([2, 3, 2, 3]))
    step, batch = make_step(method, torch.eye(6, 4), train=train)
    rows = step.batch(step.fit.data.rows(torch.arange(0)), None)
    assert method.losses(rows, step) == {}
    step.finish()
    assert not method.sums.any()
    method.losses(batch, step)
    step.finish()
    assert method.counts.tolist() == [0, 0, 2, 2, 0, 0]
