"""Tiny data sets in each publisher's own format, written as the publishers do."""

from __future__ import annotations

import gzip
import pickle
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

SEED = 0


def noise(n: int, *shape: int, seed: int = SEED) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (n, *shape), dtype=np.uint8)


def picture(path: Path, colour: int | tuple[int, ...], size=(8, 6), mode: str = "RGB") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, colour).save(path)


def cifar100_python(root: Path) -> Path:
    """Pickles of Python 2, whose strings are bytes; four classes."""
    folder = root / "cifar-100-python"
    folder.mkdir(parents=True)
    for name, n, seed in (("train", 8, 1), ("test", 4, 2)):
        labels = [i % 4 for i in range(n)]
        content = {b"data": noise(n, 3072, seed=seed), b"fine_labels": labels}
        content |= {b"coarse_labels": [0] * n, b"batch_label": b"x", b"filenames": [b"a.png"] * n}
        (folder / name).write_bytes(pickle.dumps(content, protocol=2))
    names = {b"fine_label_names": [b"apple", b"bear", b"cup", b"dog"]}
    (folder / "meta").write_bytes(pickle.dumps(names, protocol=2))
    return folder


def cifar100_binary(root: Path) -> Path:
    folder = root / "cifar-100-binary"
    folder.mkdir(parents=True)
    for name, n, seed in (("train", 8, 1), ("test", 4, 2)):
        fine = (np.arange(n, dtype=np.uint8) % 4)[:, None]
        records = np.hstack([np.full_like(fine, 9), fine, noise(n, 3072, seed=seed)])
        records.tofile(folder / f"{name}.bin")
    (folder / "fine_label_names.txt").write_text("apple\nbear\ncup\ndog\n")
    return folder


def cifar10_python(root: Path) -> Path:
    folder = root / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    for number, name in enumerate([*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]):
        content = {b"data": noise(2, 3072, seed=number), b"labels": [0, 1]}
        (folder / name).write_bytes(pickle.dumps(content, protocol=2))
    names = {b"label_names": [b"airplane", b"automobile"]}
    (folder / "batches.meta").write_bytes(pickle.dumps(names, protocol=2))
    return folder


def cifar10_binary(root: Path) -> Path:
    folder = root / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    for number, name in enumerate([*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]):
        labels = np.array([[0], [1]], dtype=np.uint8)
        np.hstack([labels, noise(2, 3072, seed=number)]).tofile(folder / f"{name}.bin")
    (folder / "batches.meta.txt").write_text("airplane\nautomobile\n\n")
    return folder


def idx(path: Path, values: np.ndarray) -> None:
    header = bytes([0, 0, 8, values.ndim]) + np.array(values.shape, dtype=">u4").tobytes()
    content = header + values.tobytes()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def mnist(root: Path, suffix: str = ".gz", folder: str = "mnist") -> Path:
    path = root / folder
    path.mkdir(parents=True)
    for part, n, seed in (("train", 20, 1), ("t10k", 10, 2)):
        idx(path / f"{part}-images-idx3-ubyte{suffix}", noise(n, 28, 28, seed=seed))
        idx(path / f"{part}-labels-idx1-ubyte{suffix}", np.arange(n, dtype=np.uint8) % 10)
    return path


def tinyimagenet(root: Path) -> Path:
    folder = root / "tiny-imagenet-200"
    ids, lines = ["n02", "n01", "n03"], []
    for number, id_ in enumerate(ids):
        for i in range(3):
            picture(folder / "train" / id_ / "images" / f"{id_}_{i}.JPEG", (60 * number, i, 0))
        picture(folder / "val" / "images" / f"val_{number}.JPEG", (60 * number, 9, 0))
        lines.append(f"val_{number}.JPEG\t{id_}\t0\t0\t62\t62")
    (folder / "wnids.txt").write_text("\n".join(ids) + "\n")
    (folder / "words.txt").write_text("n01\tcrane, bird\nn02\tcrane\nn03\tcat, kitty\nn09\tdog\n")
    (folder / "val" / "val_annotations.txt").write_text("\n".join(lines) + "\n")
    return folder


def miniimagenet(root: Path) -> Path:
    folder = root / "mini-imagenet"
    for number, id_ in enumerate(["n01", "n02", "n03"]):
        for i in range(3):
            picture(folder / "train" / id_ / f"{i}.jpg", (60 * number, i, 0), (84, 84))
        picture(folder / "test" / id_ / "9.jpg", (60 * number, 9, 0), (84, 84))
    return folder


def miniimagenet_arrays(root: Path, scale: float | None = None) -> Path:
    folder = root / "mini-imagenet"
    folder.mkdir(parents=True)
    for part, n, seed in (("train", 6, 1), ("test", 3, 2)):
        pixels = noise(n, 84, 84, 3, seed=seed)
        np.save(folder / f"{part}_x.npy", pixels if scale is None else pixels / scale)
        np.save(folder / f"{part}_y.npy", np.arange(n) % 3)
    return folder


def cub200(root: Path) -> Path:
    folder = root / "CUB_200_2011"
    images, labels, split = [], [], []
    for number, name in enumerate(["001.Black_footed_Albatross", "002.Wren"]):
        for i in range(3):
            id_ = 3 * number + i + 1
            picture(folder / "images" / name / f"b_{i}.jpg", (90 * number, 30 * i, 0), (20, 12))
            images.append(f"{id_} {name}/b_{i}.jpg")
            labels.append(f"{id_} {number + 1}")
            split.append(f"{id_} {int(i < 2)}")
    indexes = {"images": images, "image_class_labels": labels, "train_test_split": split}
    indexes["classes"] = ["1 001.Black_footed_Albatross", "2 002.Wren"]
    for name, lines in indexes.items():
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")
    return folder


def cub200_folders(root: Path) -> Path:
    """The same images in class folders below train/ and test/, as public copies have them."""
    source, folder = cub200(root / "index"), root / "CUB-200-2011-dataset"
    for image in sorted((source / "images").rglob("*.jpg")):
        part = "test" if image.stem == "b_2" else "train"
        target = folder / part / image.parent.name / image.name
        target.parent.mkdir(parents=True, exist_ok=True)
        image.rename(target)
    (folder / "README.md").write_text("by class folders\n")
    return folder


def miniimagenet_train_val(root: Path) -> Path:
    """The same classes in train/ and val/, and no test/."""
    folder = miniimagenet(root)
    (folder / "test").rename(folder / "val")
    return folder


@pytest.fixture
def publish() -> SimpleNamespace:
    """publish.cifar100_python(root) and so on: each writes a data set and returns its folder."""
    makers: dict[str, Callable[..., object]] = {
        function.__name__: function
        for function in (
            noise,
            picture,
            idx,
            cifar100_python,
            cifar100_binary,
            cifar10_python,
            cifar10_binary,
            mnist,
            tinyimagenet,
            miniimagenet,
            miniimagenet_arrays,
            miniimagenet_train_val,
            cub200,
            cub200_folders,
        )
    }
    return SimpleNamespace(**makers)


@pytest.fixture(autouse=True)
def own_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test touches the user's data."""
    folder = tmp_path / "lider-data"
    monkeypatch.setenv("LIDER_DATA", str(folder))
    return folder


@pytest.fixture
def within_a_minute() -> Iterator[None]:
    """Fail a test that would go on for ever."""
    previous = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it takes too long"))
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)
