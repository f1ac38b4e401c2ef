"""Domain-incremental streams: the same classes in every task, seen in another way."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from liderlab.config.merging import make_config
from liderlab.errors import UserError
from liderlab.methods import METHODS
from liderlab.runs.build import build_stream, completed
from liderlab.runs.execute import run
from liderlab.streams.datasets.digits import permuted_digits, rotated_digits, split_digits
from liderlab.streams.domains import Permutation, Rotation, in_domains, join_domains
from liderlab.streams.fingerprint import fingerprint
from liderlab.streams.splitting import Images, SplitStream, on_device, split
from liderlab.types import seen_classes

SMALL: dict[str, Any] = {
    "benchmark": {"name": "rotated-digits", "tasks": 2, "train_per_class": 4, "test_per_class": 2},
    "method": "er",
    "backbone": {"name": "convnet-small", "width": 8},
    "training": {"epochs": 1},
    "memory": {"size": 20},
}


def rows(stream: SplitStream, task: int, part: str = "train") -> dict[str, torch.Tensor]:
    data = getattr(stream.tasks[task], part)
    return data.rows(torch.arange(len(data)))


def by_hand(image: np.ndarray, degrees: float) -> np.ndarray:
    """A rotation pixel by pixel: each takes the bilinear mean at the place it came from."""
    side, angle = len(image), math.radians(degrees)
    centre = (side - 1) / 2
    padded = np.pad(image.astype(np.float64), 1)
    out = np.zeros_like(padded[1:-1, 1:-1])
    for row in range(side):
        for column in range(side):
            x, y = column - centre, row - centre
            from_x = math.cos(angle) * x - math.sin(angle) * y + centre + 1
            from_y = math.sin(angle) * x + math.cos(angle) * y + centre + 1
            left, top = math.floor(from_x), math.floor(from_y)
            for i in (top, top + 1):
                for j in (left, left + 1):
                    if 0 <= i < side + 2 and 0 <= j < side + 2:
                        weight = (1 - abs(from_x - j)) * (1 - abs(from_y - i))
                        out[row, column] += weight * padded[i, j]
    return out


@pytest.mark.parametrize("degrees", [0.0, 30.0, 90.0, 180.0, 261.0])
def test_a_rotation_against_a_loop_over_pixels(degrees: float) -> None:
    image = torch.randint(256, (2, 1, 7, 7), generator=torch.Generator().manual_seed(1))
    turned = Rotation(degrees)(image.to(torch.uint8))
    expected = np.stack([by_hand(one[0].numpy(), degrees) for one in image])
    assert turned.dtype == torch.uint8
    assert np.abs(turned[:, 0].numpy() - expected).max() <= 0.5 + 1e-3


def test_a_rotation_does_not_depend_on_the_other_images() -> None:
    images = rows(split_digits(1), 0)["x"][:9]
    look = Rotation(33.0)
    assert torch.equal(look(images), torch.cat([look(one[None]) for one in images]))


def test_rotated_digits_are_the_digits_turned() -> None:
    plain, stream = rows(split_digits(1), 0), rotated_digits(4)
    assert stream.setting == "domain-incremental"
    for index, task in enumerate(stream.tasks):
        assert list(task.classes) == list(range(10))
        found = rows(stream, index)
        assert torch.equal(found["x"], Rotation(45.0 * index)(plain["x"]))
        assert torch.equal(found["y"], plain["y"])
        assert found["task"].unique().tolist() == [index]
    assert seen_classes(stream.tasks[:1]) == seen_classes(stream.tasks) == list(range(10))


def test_permuted_digits_are_the_digits_with_pixels_moved() -> None:
    plain, stream = rows(split_digits(1), 0, "test"), permuted_digits(3, seed=5)
    orders = []
    for index in range(3):
        found = rows(stream, index, "test")
        look = stream.tasks[index].test.look  # type: ignore[attr-defined]
        assert isinstance(look, Permutation)
        assert sorted(look.order.tolist()) == list(range(64))
        for place, source in enumerate(look.order.tolist()):
            assert torch.equal(
                found["x"].flatten(2)[:, 0, place], plain["x"].flatten(2)[:, 0, source]
            )
        orders.append(look.order.tolist())
    assert orders[0] == list(range(64))
    assert orders[0] != orders[1] != orders[2]


def test_fingerprints_tell_domains_apart() -> None:
    streams = [
        rotated_digits(3),
        rotated_digits(3, degrees=90),
        permuted_digits(3),
        permuted_digits(3, seed=1),
        permuted_digits(4),
    ]
    assert len({fingerprint(stream) for stream in streams}) == len(streams)
    assert fingerprint(rotated_digits(3)) == fingerprint(rotated_digits(3))
    host = torch.device("cpu")
    assert fingerprint(on_device(rotated_digits(3), host)) == fingerprint(rotated_digits(3))


def test_domains_with_other_classes_are_refused() -> None:
    images = Images(torch.zeros(4, 1, 4, 4, dtype=torch.uint8), [0, 1, 0, 1])
    one, other = (split(images, images, 1, names=names) for names in (["a", "b"], ["a", "c"]))
    with pytest.raises(UserError, match=r"domain 2 has other classes than the first one \(b, c\)"):
        join_domains([one, other])
    assert len(in_domains(one, [Rotation(0.0), Rotation(90.0)]).tasks) == 2


NEED_NEW = [name for name in METHODS if METHODS.class_of(name).new_classes]


@pytest.mark.parametrize("method", ["icarl", "x-der-rpc", "lwf"])
def test_methods_that_need_new_classes_are_refused(method: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"{method} needs new classes in every task, and rotated"):
        run(make_config(SMALL, {"method": method}), tmp_path / "x")
    assert not (tmp_path / "x").exists()
    assert method in NEED_NEW


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tasks": [5, 5]}, "--tasks takes the number of its domains"),
        ({"base": 5}, "--tasks takes the number of its domains"),
        ({"degrees": 0}, "Expected degrees > 0"),
        ({"name": "permuted-digits", "seed": -1}, "Expected seed"),
        ({"name": "domains"}, "name the folder: --benchmark domains:PATH"),
    ],
)
def test_bad_input(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        build_stream(completed(make_config(SMALL, {"benchmark": fields})))


def test_a_result_says_which_setting_it_is(lider: Any) -> None:
    result = run(make_config(SMALL), "x")
    assert result["setting"] == "domain-incremental"
    assert result["class_incremental"]["fwt"] is not None
    first, second = (result[f"{kind}_incremental"]["accuracy_matrix"] for kind in ("class", "task"))
    assert first[-1] == second[-1]  # among the task's classes: all of them
    code, out, _ = lider("show", "x")
    assert code == 0
    assert "│ domain-incremental" in out
    assert "(domain-incremental, %)" in out
    assert "class-incremental" not in out
    assert (
        run(make_config(SMALL, {"benchmark": "synthetic"}), "y")["setting"] == "class-incremental"
    )


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    for d, domain in enumerate(("photo", "art", "sketch")):
        for c, name in enumerate(("cat", "dog")):
            folder = tmp_path / "photos" / domain / name
            folder.mkdir(parents=True)
            for i in range(5):
                colour = (80 * d, 100 * c, 20 * i)
                Image.new("RGB", (9, 9), colour).save(folder / f"{i}.png")
    return tmp_path / "photos"


def test_a_folder_of_domains(photos: Path, monkeypatch: pytest.MonkeyPatch, lider: Any) -> None:
    monkeypatch.setenv("LIDER_DATA", str(photos.parent / "data"))
    small = ("--set", "benchmark.size=8", "--width", "4", "--epochs", "1", "--buffer", "4")
    code, _, err = lider("run", "--benchmark", f"domains:{photos}", *small, "--out", "x")
    assert code == 0, err
    assert lider("report", "x", "-o", "r.html")[0] == 0
    fields = {"name": f"domains:{photos}", "size": 8, "order": ["sketch", "photo"]}
    stream = build_stream(completed(make_config({"benchmark": fields})))
    assert [len(task.train) for task in stream.tasks] == [8, 8]
    assert list(stream.names) == ["cat", "dog"]
    assert rows(stream, 0)["x"][:, 0].unique().tolist() == [160]
    assert rows(stream, 1)["x"][:, 0].unique().tolist() == [0]
    for wrong, message in (
        ({"order": ["photos"]}, "unknown domain 'photos': did you mean 'photo'"),
        ({"tasks": 3}, "has 2 domains: 1…2 tasks, not 3"),
    ):
        with pytest.raises(UserError, match=message):
            build_stream(completed(make_config({"benchmark": fields | wrong})))
    (photos / "sketch" / "cow").mkdir()
    Image.new("RGB", (9, 9)).save(photos / "sketch" / "cow" / "1.png")
    Image.new("RGB", (9, 9)).save(photos / "sketch" / "cow" / "2.png")
    with pytest.raises(UserError, match=r"domain 2 has other classes than the first one \(cow\)"):
        build_stream(completed(make_config({"benchmark": fields})))
