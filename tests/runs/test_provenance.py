"""A run records its data and first weights, and resumes with no others."""

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from liderlab import BENCHMARKS, Images, add_benchmark, split
from liderlab.config.merging import make_config
from liderlab.config.schema import RunConfig
from liderlab.errors import UserError
from liderlab.runs.build import Run
from liderlab.runs.execute import run
from liderlab.runs.folder import RunFolder
from liderlab.streams.augmentation import Augment
from liderlab.streams.fingerprint import fingerprint
from liderlab.training.events import Event

SMALL = {"backbone": {"name": "convnet-small", "width": 8}, "training": {"epochs": 1}}


class Crash(BaseException):
    """Stands for a killed process."""


def images(n: int, seed: int) -> Images:
    pixels = np.random.default_rng(seed).integers(0, 256, (n, 8, 8, 3), dtype=np.uint8)
    return Images(pixels, np.arange(n) % 4)


def register(seed: int) -> None:
    add_benchmark("mine", images(19, seed), images(8, 1), tasks=2, replace=True)


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    BENCHMARKS.pop("mine", None)


def config(**changes: Any) -> RunConfig:
    return make_config({"benchmark": "mine", "method": "er", "checkpoint_every": 1}, SMALL, changes)


def crash_after(steps: int) -> Callable[[Run, Event], None]:
    def listener(work: Run, event: Event) -> None:
        if work.loop.steps > steps:
            raise Crash

    return listener


def test_the_result_counts_and_names_the_data(tmp_path: Path) -> None:
    register(seed=0)
    result = run(config(), tmp_path)
    assert result["data"]["train"] == [10, 9]
    assert result["data"]["test"] == [4, 4]
    stream = split(images(19, 0), images(8, 1), tasks=2)
    assert result["data"]["fingerprint"] == fingerprint(stream)
    assert result["pretrained"] is None
    assert json.loads((tmp_path / "result.json").read_text())["data"] == result["data"]


@pytest.mark.parametrize("finished", [False, True])
def test_resuming_with_other_data_is_refused(tmp_path: Path, finished: bool) -> None:
    register(seed=0)
    if finished:
        run(config(), tmp_path)
    else:
        with pytest.raises(Crash):
            run(config(), tmp_path, listener=crash_after(1))
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    register(seed=1)
    with pytest.raises(UserError, match=r"was begun with other data \(fingerprint .*, now .*\)"):
        run(config(), tmp_path, existing="resume")
    assert before == {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    register(seed=0)
    run(config(), tmp_path, existing="resume")
    assert RunFolder(tmp_path).finished


def test_the_weights_are_named_with_their_checksum(tmp_path: Path, lider: Any) -> None:
    first = tmp_path / "first"
    run(make_config({"benchmark": "synthetic", **SMALL}), first)
    network = RunFolder(first).state()["network"]
    file = tmp_path / "w.pt"
    torch.save({k.removeprefix("backbone."): v for k, v in network.items()}, file)
    given = make_config({"benchmark": "synthetic", "pretrained": str(file), **SMALL})
    given = given.model_copy(update={"checkpoint_every": "1"})
    with pytest.raises(Crash):
        run(given, tmp_path / "x", listener=crash_after(1))
    weights = file.read_bytes()
    torch.save(torch.load(file, weights_only=True) | {"fc.bias": torch.ones(6)}, file)
    with pytest.raises(UserError, match=r"other weights than these in .*w\.pt \(sha256"):
        run(given, tmp_path / "x", existing="resume")
    file.write_bytes(weights)
    result = run(given, tmp_path / "x", existing="resume")
    checksum = hashlib.sha256(weights).hexdigest()
    assert result["pretrained"] == {"name": str(file), "sha256": checksum}
    code, out, err = lider("show", "x")
    assert code == 0, err
    assert checksum in out.replace("\n", "")
    assert "data: 144 training and 48 test images, 3 tasks of 48 and 16\n" in out
    assert f"fingerprint of the data: {result['data']['fingerprint']}\n" in out


def test_a_run_of_an_older_version_resumes(tmp_path: Path) -> None:
    """Its checkpoints hold no origin."""
    register(seed=0)
    with pytest.raises(Crash):
        run(config(), tmp_path, listener=crash_after(1))
    checkpoints = RunFolder(tmp_path).checkpoints
    state = RunFolder(tmp_path).state()
    del state["origin"]
    checkpoints.clear()
    checkpoints.write(state)
    assert run(config(), tmp_path, existing="resume")["data"]["train"] == [10, 9]


def test_the_fingerprint_depends_on_data_split_and_normalisation() -> None:
    train, test = images(19, 0), images(8, 1)
    relabelled = Images(train.x, train.y.flip(0))
    brighter = Images(train.x // 2, train.y)
    streams = {
        "same": split(train, test, 2),
        "labels": split(relabelled, test, 2),
        "pixels": split(brighter, test, 2),
        "fewer": split(Images(train.x[:-1], train.y[:-1]), test, 2),
        "tasks": split(train, test, 4),
        "order": split(train, test, 2, [3, 2, 1, 0]),
        "names": split(train, test, 2, names=list("abcd")),
        "normalisation": split(train, test, 2, transform=Augment([0.4] * 3, [0.5] * 3)),
    }
    found = {name: fingerprint(stream) for name, stream in streams.items()}
    assert len(set(found.values())) == len(found)
    assert found["same"] == fingerprint(split(images(19, 0), images(8, 1), 2))


def test_numpy_numbers_are_written_as_json_numbers(tmp_path: Path) -> None:
    transform = Augment(np.float32([0.5] * 3), np.float32([0.25] * 3))
    add_benchmark("mine", images(16, 0), images(8, 1), tasks=2, transform=transform)
    run(config(), tmp_path)
    written = json.loads((tmp_path / "result.json").read_text())["normalisation"]
    assert written == {"mean": [0.5] * 3, "std": [0.25] * 3}
