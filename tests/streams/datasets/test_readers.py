"""Readers of every publisher's files, and their messages about broken ones."""

from __future__ import annotations

import gzip
import os
import pickle
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from liderlab.errors import UserError
from liderlab.streams import BENCHMARKS
from liderlab.streams.datasets.catalogue import DATA_SETS
from liderlab.streams.datasets.cifar import read_cifar10, read_cifar100, unpickle
from liderlab.streams.datasets.cub import read_cub
from liderlab.streams.datasets.image_folder import read_folder
from liderlab.streams.datasets.mini_imagenet import read_mini
from liderlab.streams.datasets.mnist import read_fashion, read_mnist
from liderlab.streams.datasets.raw_data import RawPart, decode_image
from liderlab.streams.datasets.tiny_imagenet import read_tiny
from liderlab.streams.splitting import SplitStream


def pixels(part: RawPart) -> np.ndarray:
    return np.concatenate(list(part.blocks()))


@pytest.mark.parametrize("form", ["cifar100_python", "cifar100_binary"])
def test_cifar100(publish: SimpleNamespace, tmp_path: Path, form: str) -> None:
    reading = read_cifar100(getattr(publish, form)(tmp_path))
    assert reading.names == ["apple", "bear", "cup", "dog"]
    assert list(reading.train.labels) == [0, 1, 2, 3] * 2
    assert list(reading.test.labels) == [0, 1, 2, 3]
    expected = publish.noise(8, 3072, seed=1).reshape(8, 3, 32, 32)
    assert np.array_equal(pixels(reading.train), expected)


@pytest.mark.parametrize("form", ["cifar10_python", "cifar10_binary"])
def test_cifar10_in_five_batches(publish: SimpleNamespace, tmp_path: Path, form: str) -> None:
    reading = read_cifar10(getattr(publish, form)(tmp_path))
    assert reading.names == ["airplane", "automobile"]
    assert list(reading.train.labels) == [0, 1] * 5
    assert np.array_equal(pixels(reading.test).reshape(2, -1), publish.noise(2, 3072, seed=5))


@pytest.mark.parametrize("read", [read_cifar10, read_cifar100])
def test_cifar_as_class_folders(publish: SimpleNamespace, tmp_path: Path, read: Any) -> None:
    """Pixels of PNG files are kept as they are, and the names' order numbers the classes."""
    images = publish.noise(4, 32, 32, 3, seed=7)
    files = ["train/truck/a.png", "train/airplane/b.png", "test/airplane/c.png", "test/truck/d.png"]
    for file, image in zip(files, images, strict=True):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(tmp_path / file)
    reading = read(tmp_path)
    assert reading.names == ["airplane", "truck"]
    assert list(reading.train.labels) == list(reading.test.labels) == [0, 1]
    assert np.array_equal(pixels(reading.train), images[[1, 0]].transpose(0, 3, 1, 2))
    assert np.array_equal(pixels(reading.test), images[[2, 3]].transpose(0, 3, 1, 2))


@pytest.mark.parametrize("suffix", [".gz", ""])
def test_idx(publish: SimpleNamespace, tmp_path: Path, suffix: str) -> None:
    reading = read_mnist(publish.mnist(tmp_path, suffix))
    assert reading.names == [str(digit) for digit in range(10)]
    assert list(reading.train.labels) == [*range(10)] * 2
    assert np.array_equal(pixels(reading.train)[:, 0], publish.noise(20, 28, 28, seed=1))
    assert read_fashion(tmp_path / "mnist").names[9] == "Ankle boot"


def test_tiny_imagenet(publish: SimpleNamespace, tmp_path: Path) -> None:
    reading = read_tiny(publish.tinyimagenet(tmp_path), 32)
    assert reading.names == ["crane (n02)", "crane (n01)", "cat"]  # wnids.txt's order
    assert list(reading.train.labels) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert list(reading.test.labels) == [0, 1, 2]
    red = pixels(reading.test)[:, 0].mean((1, 2))
    assert red == pytest.approx([0, 60, 120], abs=6)


def test_mini_imagenet_as_class_folders(publish: SimpleNamespace, tmp_path: Path) -> None:
    reading = read_mini(publish.miniimagenet(tmp_path), 84)
    assert reading.names == ["n01", "n02", "n03"]
    assert (len(reading.train.labels), list(reading.test.labels)) == (9, [0, 1, 2])


@pytest.mark.parametrize("scale", [None, 255.0])
def test_mini_imagenet_as_arrays(publish: SimpleNamespace, tmp_path: Path, scale) -> None:
    reading = read_mini(publish.miniimagenet_arrays(tmp_path, scale), 84)
    expected = publish.noise(6, 84, 84, 3, seed=1).transpose(0, 3, 1, 2)
    assert np.array_equal(pixels(reading.train), expected)
    assert list(reading.test.labels) == [0, 1, 2]


def test_mini_imagenet_of_few_shot_learning(publish: SimpleNamespace, tmp_path: Path) -> None:
    """Its parts have different classes: all of them count, every sixth image is for testing."""
    for part, names in {"train": ["n1", "n4"], "val": ["n3"], "test": ["n2"]}.items():
        for name in names:
            for i in range(12):
                publish.picture(tmp_path / part / name / f"{i:02}.jpg", (i, 0, 0))
    reading = read_mini(tmp_path, 84)
    assert reading.names == ["n1", "n2", "n3", "n4"]
    assert np.bincount(reading.train.labels).tolist() == [10] * 4
    assert np.bincount(reading.test.labels).tolist() == [2] * 4


def test_cub(publish: SimpleNamespace, tmp_path: Path) -> None:
    reading = read_cub(publish.cub200(tmp_path), 16)
    assert reading.names == ["Black footed Albatross", "Wren"]
    assert list(reading.train.labels) == [0, 0, 1, 1]
    assert pixels(reading.test)[:, 1].mean((1, 2)) == pytest.approx([60, 60], abs=6)
    assert pixels(reading.train).shape == (4, 3, 16, 16)


def test_cub_as_class_folders(publish: SimpleNamespace, tmp_path: Path) -> None:
    """Names, labels and pixels are those of the publisher's form."""
    indexed = read_cub(publish.cub200(tmp_path), 16)
    expected = [pixels(part) for part in (indexed.train, indexed.test)]
    reading = read_cub(publish.cub200_folders(tmp_path / "copy"), 16)
    assert reading.names == indexed.names
    assert list(reading.train.labels) == list(indexed.train.labels)
    assert list(reading.test.labels) == list(indexed.test.labels)
    assert np.array_equal(pixels(reading.train), expected[0])
    assert np.array_equal(pixels(reading.test), expected[1])


@pytest.mark.parametrize(("mode", "colour"), [("L", 90), ("RGBA", (90, 90, 90, 9)), ("P", 0)])
def test_other_modes_are_converted_to_colour(
    publish: SimpleNamespace, tmp_path: Path, mode: str, colour: int
) -> None:
    path = tmp_path / ("a.jpg" if mode == "L" else "a.png")
    publish.picture(path, colour, mode=mode)
    image = decode_image(path, 8)
    assert image.shape == (3, 8, 8)
    assert np.array_equal(image[0], image[2])


def test_decoding_equals_that_of_predict(tmp_path: Path, publish: SimpleNamespace) -> None:
    from liderlab.runs.image_input import read_image

    Image.fromarray(publish.noise(1, 20, 12, 3)[0]).save(tmp_path / "a.png")
    ours = torch.from_numpy(decode_image(tmp_path / "a.png", 8).copy())
    assert torch.equal(ours, read_image(tmp_path / "a.png", (3, 8, 8)))


class Harm:
    def __reduce__(self):
        return (os.system, ("touch harmed",))


@pytest.mark.parametrize("where", ["data", "fine_labels", "anything"])
def test_a_pickle_with_more_than_arrays_is_refused(
    publish: SimpleNamespace, tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = publish.cifar100_python(tmp_path)
    content = unpickle(folder / "train") | {where.encode(): Harm()}
    (folder / "train").write_bytes(pickle.dumps(content, protocol=2))
    with pytest.raises(UserError, match=r"asks for (posix|nt)\.system, which is not allowed"):
        read_cifar100(folder)
    assert not (tmp_path / "harmed").exists()


@pytest.mark.parametrize(
    "program",
    [
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"c_codecs\nencode\n(Vx\nS'zlib'\ntR.",  # of codecs, the plain one only
        b"cnumpy\nload\n(S'x'\ntR.",
        b"cnumpy.core.multiarray\nscalar\n.",
        b"(dp0\n",
        b"",
        b"\x80\x05]\x94.",
    ],
)
def test_other_pickle_programs_are_refused(tmp_path: Path, program: bytes) -> None:
    (tmp_path / "meta").write_bytes(program)
    with pytest.raises(UserError, match="CIFAR file"):
        unpickle(tmp_path / "meta")


def bomb(path: Path, shape: tuple[int, ...]) -> None:
    """A small file that unpacks to 256 MB, whatever shape it announces."""
    head = bytes([0, 0, 8, 3]) + np.array(shape, dtype=">u4").tobytes()
    path.write_bytes(gzip.compress(head) + gzip.compress(bytes(1 << 20)) * 256)


def truncate(path: Path, keep: float = 0.6) -> None:
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * keep)])


def rewrite(path: Path, **changes: object) -> None:
    content = unpickle(path) | {key.encode(): value for key, value in changes.items()}
    path.write_bytes(pickle.dumps(content, protocol=2))


def replace_line(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


BREAKAGES: dict[str, tuple[str, Callable[..., object], Callable[[Path], object], str]] = {
    "cifar: cut off": (
        "cifar100_python",
        read_cifar100,
        lambda f: truncate(f / "train"),
        "train is not a whole CIFAR file",
    ),
    "cifar: labels missing": (
        "cifar100_python",
        read_cifar100,
        lambda f: rewrite(f / "test", fine_labels=[1]),
        "does not hold images of 3072 bytes with a class number each",
    ),
    "cifar: labels of text": (
        "cifar100_python",
        read_cifar100,
        lambda f: rewrite(f / "test", fine_labels=[b"a"] * 4),
        "with a class number each",
    ),
    "cifar: no pixels": (
        "cifar100_python",
        read_cifar100,
        lambda f: rewrite(f / "test", data=[1, 2]),
        "does not hold images",
    ),
    "cifar: other images": (
        "cifar100_python",
        read_cifar100,
        lambda f: rewrite(f / "test", data=np.zeros((4, 7), dtype=np.uint8)),
        "does not hold images of 3072 bytes",
    ),
    "cifar: no names": (
        "cifar100_python",
        read_cifar100,
        lambda f: (f / "meta").write_bytes(pickle.dumps({}, protocol=2)),
        "no class names",
    ),
    "cifar: file missing": (
        "cifar10_python",
        read_cifar10,
        lambda f: (f / "data_batch_3").unlink(),
        "cannot read .*data_batch_3",
    ),
    "cifar binary: cut off": (
        "cifar100_binary",
        read_cifar100,
        lambda f: truncate(f / "train.bin"),
        "train.bin is cut off",
    ),
    "idx: cut off": (
        "mnist",
        read_mnist,
        lambda f: truncate(f / "train-images-idx3-ubyte.gz"),
        "cannot read .*train-images",
    ),
    "idx: another kind": (
        "mnist",
        read_mnist,
        lambda f: (f / "t10k-labels-idx1-ubyte.gz").write_bytes(
            (f / "t10k-images-idx3-ubyte.gz").read_bytes()
        ),
        "not an IDX file of 1 dimension",
    ),
    "idx: more than it announces": (
        "mnist",
        read_mnist,
        lambda f: bomb(f / "train-images-idx3-ubyte.gz", (6, 28, 28)),
        "damaged: more values instead of",
    ),
    "idx: announces too much": (
        "mnist",
        read_mnist,
        lambda f: bomb(f / "train-images-idx3-ubyte.gz", (2**31, 28, 28)),
        "at most 1,073,741,824 are read",
    ),
    "idx: missing": (
        "mnist",
        read_mnist,
        lambda f: (f / "t10k-labels-idx1-ubyte.gz").unlink(),
        "has no t10k-labels",
    ),
    "tiny: no index": (
        "tinyimagenet",
        lambda f: read_tiny(f, 32),
        lambda f: (f / "val" / "val_annotations.txt").unlink(),
        "has no val_annotations.txt: it is not complete",
    ),
    "tiny: class missing": (
        "tinyimagenet",
        lambda f: read_tiny(f, 32),
        lambda f: (f / "train" / "n03").rename(f / "train" / "n04"),
        "no train/n03/images",
    ),
    "tiny: unknown class": (
        "tinyimagenet",
        lambda f: read_tiny(f, 32),
        lambda f: replace_line(f / "val" / "val_annotations.txt", "\tn03", "\tn07"),
        "not in wnids.txt: 'n07'",
    ),
    "mini: other size": (
        "miniimagenet_arrays",
        lambda f: read_mini(f, 84),
        lambda f: np.save(f / "test_x.npy", np.zeros((3, 5, 5, 3), dtype=np.uint8)),
        r"images of \(84, 84, 3\), but got \(5, 5, 3\)",
    ),
    "mini: array of objects": (
        "miniimagenet_arrays",
        lambda f: read_mini(f, 84),
        lambda f: np.save(f / "test_y.npy", np.array([Harm()], dtype=object)),
        "test_y.npy is not a whole array file",
    ),
    "mini: cut off": (
        "miniimagenet_arrays",
        lambda f: read_mini(f, 84),
        lambda f: truncate(f / "train_x.npy"),
        "train_x.npy is not a whole array file",
    ),
    "mini: array missing": (
        "miniimagenet_arrays",
        lambda f: read_mini(f, 84),
        lambda f: (f / "test_y.npy").unlink(),
        "has no test_y.npy",
    ),
    "cub: no index": (
        "cub200",
        lambda f: read_cub(f, 16),
        lambda f: (f / "train_test_split.txt").unlink(),
        "has no train_test_split.txt: it is not complete",
    ),
    "cub: image without class": (
        "cub200",
        lambda f: read_cub(f, 16),
        lambda f: replace_line(f / "image_class_labels.txt", "5 2", "7 2"),
        "image 5 has no class",
    ),
    "cub: a path that climbs out": (
        "cub200",
        lambda f: read_cub(f, 16),
        lambda f: replace_line(f / "images.txt", "002.Wren/b_1", "../../b_1"),
        "leads out of it",
    ),
    "cub: not text": (
        "cub200",
        lambda f: read_cub(f, 16),
        lambda f: (f / "classes.txt").write_bytes(b"\xff\xfe\x00"),
        "cannot read .*classes.txt",
    ),
    "folder: empty class": (
        "miniimagenet",
        lambda f: read_folder(f, 16),
        lambda f: (f / "train" / "n03").rename(f / "x") and (f / "train" / "n03").mkdir(),
        "n03 has no images",
    ),
    "folder: class in one part only": (
        "miniimagenet",
        lambda f: read_folder(f, 16),
        lambda f: (f / "test" / "n03").rename(f / "test" / "n04"),
        "'n03' is not in both train and test",
    ),
}


@pytest.mark.parametrize("case", BREAKAGES)
def test_broken_files(publish: SimpleNamespace, tmp_path: Path, case: str) -> None:
    form, read, harm, message = BREAKAGES[case]
    folder = getattr(publish, form)(tmp_path)
    read(folder)
    harm(folder)
    tracemalloc.start()
    with pytest.raises(UserError, match=message):
        read(folder)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6, "a broken file takes no memory"


@pytest.mark.parametrize("content", [b"", b"no image", b"cut off"])
def test_a_broken_picture_is_named(
    publish: SimpleNamespace, tmp_path: Path, content: bytes
) -> None:
    folder = publish.cub200(tmp_path)
    path = folder / "images" / "002.Wren" / "b_2.jpg"
    path.write_bytes(path.read_bytes()[:400] if content == b"cut off" else content)
    with pytest.raises(UserError, match=r"cannot read .*b_2\.jpg as an image"):
        pixels(read_cub(folder, 16).test)


FORMS = {
    "split-cifar100": ("cifar100_python", 2, (3, 32, 32)),
    "split-cifar10": ("cifar10_binary", 2, (3, 32, 32)),
    "split-mnist": ("mnist", 5, (1, 28, 28)),
    "split-tinyimagenet": ("tinyimagenet", 3, (3, 64, 64)),
    "split-miniimagenet": ("miniimagenet", 3, (3, 84, 84)),
    "split-cub200": ("cub200", 2, (3, 224, 224)),
}


@pytest.mark.parametrize("benchmark", FORMS)
def test_a_benchmark_uses_the_files_in_the_data_folder(
    publish: SimpleNamespace, own_data_folder: Path, benchmark: str
) -> None:
    form, tasks, shape = FORMS[benchmark]
    getattr(publish, form)(own_data_folder)
    stream: SplitStream = BENCHMARKS.load(benchmark)(tasks=tasks)
    assert stream.image_shape == shape
    assert len(stream.tasks) == tasks
    train = stream.tasks[-1].train
    rows = train.rows(torch.arange(len(train)))
    assert rows["x"].shape == (len(train), *shape)
    assert set(rows["y"].tolist()) == set(stream.tasks[-1].classes)
    x = stream.transform.sample(len(train), torch.Generator())(rows["x"])
    assert x.isfinite().all()


def test_tiny_imagenet_in_both_sizes(publish: SimpleNamespace, own_data_folder: Path) -> None:
    publish.tinyimagenet(own_data_folder)
    make = BENCHMARKS.load("split-tinyimagenet")
    assert make(tasks=3, size=32).image_shape == (3, 32, 32)
    assert make(tasks=3, size=64).image_shape == (3, 64, 64)


def test_cub_with_the_pixels_that_weights_expect(
    publish: SimpleNamespace, own_data_folder: Path
) -> None:
    """Lite0's weights expect (x − 127)/128 for x in 0…255."""
    publish.cub200(own_data_folder)
    make = BENCHMARKS.load("split-cub200")
    pixels = torch.tensor([0, 127, 255], dtype=torch.uint8).expand(1, 3, 1, 3)
    view = make(tasks=2, size=16, normalize="lite0").transform.sample(1, None)
    assert view(pixels)[0, 0, 0].tolist() == pytest.approx([-127 / 128, 0, 1], abs=1e-6)
    imagenet = make(tasks=2, size=16, normalize="imagenet").transform
    assert (imagenet.mean[0], imagenet.std[0]) == (0.485, 0.229)
    assert make(tasks=2, size=16).transform.mean[0] == 0.4856
    with pytest.raises(UserError, match="unknown normalization 'lite1': did you mean 'lite0'"):
        make(tasks=2, normalize="lite1")


def test_fashion_is_found_where_torchvision_puts_it(
    publish: SimpleNamespace, own_data_folder: Path
) -> None:
    publish.mnist(own_data_folder, "", "FashionMNIST/raw")
    assert BENCHMARKS.load("split-fashion-mnist")().names[1] == "Trouser"


@pytest.mark.parametrize("name", DATA_SETS)
def test_missing_data_is_one_sentence_with_the_command(name: str, own_data_folder: Path) -> None:
    data = DATA_SETS[name]
    with pytest.raises(UserError) as error:
        BENCHMARKS.load(data.benchmark)()
    assert f"is not in {own_data_folder}: get it with `lider data prepare {name}" in str(
        error.value
    )
    with pytest.raises(UserError, match="--root /nowhere`"):
        BENCHMARKS.load(data.benchmark)(root="/nowhere")
