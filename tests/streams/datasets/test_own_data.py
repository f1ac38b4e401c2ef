"""Your own data: a folder or arrays as a benchmark."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import yaml

from liderlab import Images, add_benchmark, run, split
from liderlab.cli import main
from liderlab.config.merging import make_config
from liderlab.errors import UserError
from liderlab.streams import BENCHMARKS
from liderlab.streams.datasets.cub import split_cub200
from liderlab.streams.datasets.image_folder import folder, read_folder


def photos(publish: SimpleNamespace, root: Path, *, per_class: int = 6) -> Path:
    for number, name in enumerate(["ant", "bee", "cat", "dog"]):
        for i in range(per_class):
            publish.picture(root / name / f"{i}.png", (60 * number, 10 * i, 0))
    return root


def test_every_fifth_image_by_name_is_for_testing(publish: SimpleNamespace, tmp_path: Path) -> None:
    stream = folder(2, path=str(photos(publish, tmp_path / "p", per_class=11)), size=8)
    assert stream.names == ["ant", "bee", "cat", "dog"]
    task = stream.tasks[1]
    green = {
        part: getattr(task, part).rows(torch.arange(len(getattr(task, part))))["x"][:, 1, 0, 0]
        for part in ("train", "test")
    }
    by_name = sorted(range(11), key=lambda i: f"{i}.png")  # 0, 1, 10, 2, 3, …
    test = [10 * i for place, i in enumerate(by_name) if place % 5 == 4]
    assert green["test"].tolist() == test * 2
    assert sorted(green["train"].tolist() + green["test"].tolist()) == sorted(
        [10 * i for i in range(11)] * 2
    )


@pytest.mark.parametrize(("n", "test"), [(2, 1), (4, 1), (5, 1), (9, 1), (10, 2)])
def test_small_classes_have_a_test_image_too(
    publish: SimpleNamespace, tmp_path: Path, n: int, test: int
) -> None:
    reading = read_folder(photos(publish, tmp_path / "p", per_class=n), 8)
    assert np.bincount(reading.test.labels).tolist() == [test] * 4
    assert np.bincount(reading.train.labels).tolist() == [n - test] * 4


@pytest.mark.parametrize("part", ["test", "val"])
def test_train_and_test_folders_are_used(
    publish: SimpleNamespace, tmp_path: Path, part: str
) -> None:
    photos(publish, tmp_path / "p" / "train", per_class=3)
    photos(publish, tmp_path / "p" / part, per_class=1)
    reading = read_folder(tmp_path / "p", 8)
    assert (len(reading.train.labels), len(reading.test.labels)) == (12, 4)


def test_other_files_are_skipped(publish: SimpleNamespace, tmp_path: Path) -> None:
    root = photos(publish, tmp_path / "p")
    for junk in ("ant/.DS_Store", "ant/notes.txt", "README.md"):
        (root / junk).write_text("x")
    (root / ".git").mkdir()
    assert read_folder(root, 8).names == ["ant", "bee", "cat", "dog"]


def test_a_folder_is_normalised_by_its_own_statistics(
    publish: SimpleNamespace, tmp_path: Path
) -> None:
    stream = folder(1, path=str(photos(publish, tmp_path / "p")), size=8)
    train = stream.tasks[0].train
    x = stream.transform.sample(1, None)(train.rows(torch.arange(len(train)))["x"])
    assert x[:, :2].mean((0, 2, 3)).tolist() == pytest.approx([0, 0], abs=1e-5)
    assert x[:, :2].std((0, 2, 3), correction=0).tolist() == pytest.approx([1, 1], abs=1e-4)
    assert x.isfinite().all()  # the third channel is 0 everywhere


def test_the_folder_is_not_modified(publish: SimpleNamespace, tmp_path: Path) -> None:
    root = photos(publish, tmp_path / "p")
    before = sorted(root.rglob("*"))
    folder(2, path=str(root), size=8)
    assert sorted(root.rglob("*")) == before


def test_a_run_on_a_folder(
    publish: SimpleNamespace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    photos(publish, tmp_path / "photos")
    small = "--backbone convnet-small --width 8 --epochs 1 --buffer 4 --set benchmark.size=16"

    def lider(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["lider", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        return int(stop.value.code or 0)

    assert lider("run", "--benchmark", "folder:photos", "--tasks", "2", *small.split()) == 0
    out = tmp_path / "runs" / "folder-er-ace-seed0"
    config = yaml.safe_load((out / "config.yaml").read_text())["benchmark"]
    assert config["name"] == "folder"
    assert config["path"] == str(tmp_path / "photos")
    assert config["size"] == 16
    first = json.loads((out / "result.json").read_text())
    assert first["classes"] == ["ant", "bee", "cat", "dog"]

    monkeypatch.chdir(out)  # it runs again from anywhere
    assert lider("run", "--config", "config.yaml", "--out", "again") == 0
    again = json.loads((out / "again" / "result.json").read_text())
    assert again["class_incremental"] == first["class_incremental"]

    capsys.readouterr()
    assert lider("run", "--benchmark", f"folder:{tmp_path}/photos", "--out", "none") == 2
    assert "into how many tasks to split 4 classes: --tasks N" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: folder(2), "name the folder: --benchmark folder:PATH"),
        (lambda p: folder(2, path=str(p / "no")), "no is not a folder"),
        (lambda p: folder(2, path=str(p), size=2), "Expected size ≥ 4 .*, but got 2"),
        (lambda p: split_cub200(2, size=0), "Expected size ≥ 4 .*, but got 0"),
        (lambda p: folder(2, path=str(p / "ant")), "has no class folders"),
        (lambda p: folder(5, path=str(p), size=8), "1…4 tasks, not 5"),
    ],
)
def test_wrong_arguments_are_refused(
    publish: SimpleNamespace, tmp_path: Path, make, message: str
) -> None:
    photos(publish, tmp_path / "p")
    with pytest.raises(UserError, match=message):
        make(tmp_path / "p")


def test_an_empty_path_is_not_the_current_folder() -> None:
    assert make_config({"benchmark": "folder:"}).benchmark.options["path"] == ""


def test_a_class_needs_two_images(publish: SimpleNamespace, tmp_path: Path) -> None:
    root = photos(publish, tmp_path / "p")
    (root / "eel").mkdir()
    with pytest.raises(UserError, match="eel has no images"):
        folder(2, path=str(root), size=8)
    publish.picture(root / "eel" / "only.png", (1, 2, 3))
    with pytest.raises(UserError, match="eel has a single image"):
        folder(2, path=str(root), size=8)


def arrays(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (n, 8, 8, 3), dtype=np.uint8), np.arange(n) % 4


def test_arrays_are_split() -> None:
    (x, y), (x_test, y_test) = arrays(16, 0), arrays(8, 1)
    stream = split(Images(x, y), Images(x_test, y_test), tasks=2)
    assert stream.image_shape == (3, 8, 8)
    assert np.array_equal(
        stream.tasks[0].train.rows(torch.tensor([1]))["x"][0], x[1].transpose(2, 0, 1)
    )


def test_arrays_in_a_run(tmp_path: Path) -> None:
    add_benchmark("mine", Images(*arrays(16, 0)), Images(*arrays(8, 1)), tasks=2)
    try:
        config = make_config({"benchmark": "mine", "method": "er", "training": {"epochs": 1}})
        result = run(config, tmp_path / "run")
    finally:
        del BENCHMARKS["mine"]
    assert len(result["class_incremental"]["accuracy_matrix"]) == 2


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.zeros((4, 3, 8, 8)), [0] * 4, "of whole numbers in 0…255"),
        (np.zeros((4, 8), dtype=np.uint8), [0] * 4, r"\(n, C, H, W\)"),
        (np.zeros((4, 3, 8, 8), dtype=np.uint8), [0] * 3, "class number for each of 4 images"),
        (np.zeros((2, 3, 8, 8), dtype=np.uint8), [0.5, 1.0], "class number for each of 2 images"),
    ],
)
def test_arrays_that_are_not_images_are_refused(
    x: np.ndarray, y: list[float], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        Images(x, y)


@pytest.mark.parametrize("labels", [[-1, 0], []])
def test_labels_that_are_not_classes_are_refused(labels: list[int]) -> None:
    y = np.array(labels, dtype=np.int64)
    images = Images(np.zeros((len(y), 1, 4, 4), dtype=np.uint8), y)
    with pytest.raises(UserError, match="at least one image of each"):
        split(images, images, 1)


def test_grey_and_channel_first_arrays() -> None:
    assert Images(np.zeros((4, 8, 8), dtype=np.uint8), [0] * 4).x.shape == (4, 1, 8, 8)
    assert Images(np.zeros((4, 3, 8, 3), dtype=np.uint8), [0] * 4).x.shape == (4, 3, 8, 3)


def test_a_memory_mapped_array_is_not_copied(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((4, 1, 8, 8), dtype=np.uint8))
    x = np.load(tmp_path / "x.npy", mmap_mode="r")
    images = Images(x, [0, 1, 0, 1])
    assert images.x.data_ptr() == x.ctypes.data


def test_keras_grey_arrays_have_one_channel() -> None:
    assert Images(np.zeros((4, 8, 6, 1), dtype=np.uint8), [0] * 4).x.shape == (4, 1, 8, 6)
    assert Images(np.zeros((4, 1, 8, 1), dtype=np.uint8), [0] * 4).x.shape == (4, 1, 8, 1)


def test_train_and_test_images_have_one_shape() -> None:
    x, y = arrays(8, 0)
    with pytest.raises(UserError, match=r"one shape .* got \(3, 8, 8\) and \(3, 8, 4\)"):
        split(Images(x, y), Images(x[:, :, :4], y), tasks=2)
    with pytest.raises(UserError, match=r"got \(3, 8, 8\) and \(1, 8, 8\)"):
        split(Images(x, y), Images(x[..., 0], y), tasks=2)


@pytest.mark.parametrize("names", [["a"], list("abcde")])
def test_every_class_has_one_name(names: list[str]) -> None:
    images = Images(*arrays(8, 0))
    with pytest.raises(UserError, match="a name for each of 4 classes, but got"):
        split(images, images, 2, names=names)


def test_a_built_in_benchmark_keeps_its_name() -> None:
    images, built_in = Images(*arrays(8, 0)), BENCHMARKS["split-digits"]
    for replace in (False, True):
        with pytest.raises(UserError, match="split-digits is a built-in benchmark"):
            add_benchmark("split-digits", images, images, tasks=2, replace=replace)
    assert BENCHMARKS["split-digits"] is built_in


def test_arrays_are_replaced_only_with_replace() -> None:
    images = Images(*arrays(8, 0))
    try:
        add_benchmark("mine", images, images, tasks=2)
        with pytest.raises(UserError, match="replace=True"):
            add_benchmark("mine", images, images, tasks=4)
        assert BENCHMARKS["mine"].facts["tasks"] == 2
        add_benchmark("mine", images, images, tasks=4, replace=True)
        assert BENCHMARKS["mine"].facts["tasks"] == 4
    finally:
        BENCHMARKS.pop("mine", None)


@pytest.mark.parametrize("name", ["", "a/b", "folder:x", "two words"])
def test_names_with_other_characters_are_refused(name: str) -> None:
    images = Images(*arrays(8, 0))
    with pytest.raises(UserError, match="letters, digits"):
        add_benchmark(name, images, images, tasks=2)
