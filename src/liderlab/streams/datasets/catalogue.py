"""The data sets behind the benchmarks: what they are, where they come from, whether they are here.

Facts only, cheap to import. The checksums are the publishers' own, or those that torchvision
publishes; where neither exists there is no download.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ...errors import UserError, unknown
from ..storage.location import data_folder

IMAGE_SUFFIXES = {".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"}


@dataclass(frozen=True)
class Remote:
    """A file on the publisher's server."""

    url: str
    md5: str
    size: int

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]


@dataclass(frozen=True)
class Layout:
    """One way in which a data set lies in a folder: every pattern is there."""

    folder: str
    files: tuple[str, ...]

    def fits(self, path: Path) -> bool:
        return path.is_dir() and all(any(path.glob(pattern)) for pattern in self.files)


@dataclass(frozen=True)
class DataSet:
    """What is known about one data set.

    train, test: how many images it has; side: of what size. layouts: the publishers' own, each with
    its usual folder. md5: of single files inside.
    """

    name: str
    title: str
    train: int
    test: int
    side: str
    licence: str
    benchmark: str
    layouts: tuple[Layout, ...]
    remotes: tuple[Remote, ...] = ()
    md5: dict[str, str] = field(default_factory=dict)

    @property
    def images(self) -> str:
        return f"{self.train:,} + {self.test:,} of {self.side}"

    @property
    def download_bytes(self) -> int:
        return sum(remote.size for remote in self.remotes)

    @property
    def command(self) -> str:
        """What gets it."""
        command = f"lider data prepare {self.name}"
        return command if self.remotes else f"{command} --from FILE_OR_DIR"

    def find(self, root: Path) -> Path | None:
        """Its folder below the data folder, if it is there."""
        places = ((layout, root / layout.folder) for layout in self.layouts)
        return next((place for layout, place in places if layout.fits(place)), None)

    def locate(self, root: str | Path | None = None) -> Path:
        """Its folder, or one sentence that says how to get it."""
        home = data_folder(root)
        if (found := self.find(home)) is None:
            where = f" --root {home}" if root else ""
            raise UserError(f"{self.title} is not in {home}: get it with `{self.command}{where}`")
        return found


def _idx_files(base: str, sums: dict[str, tuple[str, int]]) -> tuple[Remote, ...]:
    return tuple(Remote(f"{base}/{name}", md5, size) for name, (md5, size) in sums.items())


def _cifar(name: str, python: tuple[str, ...], binary: tuple[str, ...]) -> tuple[Layout, ...]:
    of_python, of_binary = {
        "cifar10": ("cifar-10-batches-py", "cifar-10-batches-bin"),
        "cifar100": ("cifar-100-python", "cifar-100-binary"),
    }[name]
    return Layout(of_python, python), Layout(of_binary, binary)


_CIFAR_URL = "https://www.cs.toronto.edu/~kriz"
_CIFAR_TERMS = "no licence stated; cite Krizhevsky 2009"
_IMAGENET_TERMS = "ImageNet terms: non-commercial research"
_BATCHES = tuple(f"data_batch_{number}" for number in range(1, 6))
_CUB = ("images.txt", "classes.txt", "image_class_labels.txt", "train_test_split.txt")
_TINY = ("wnids.txt", "train/*/images/*", "val/val_annotations.txt", "val/images/*")
_IDX = ("train-images*idx3*", "train-labels*idx1*", "t10k-images*idx3*", "t10k-labels*idx1*")
_MNIST = {
    "train-images-idx3-ubyte.gz": ("f68b3c2dcbeaaa9fbdd348bbdeb94873", 9_912_422),
    "train-labels-idx1-ubyte.gz": ("d53e105ee54ea40749a09fcbcd1e9432", 28_881),
    "t10k-images-idx3-ubyte.gz": ("9fb629c4189551a2d022fa330f9573f3", 1_648_877),
    "t10k-labels-idx1-ubyte.gz": ("ec29112dd5afa0611ce80d1b7f02629c", 4_542),
}
_FASHION = {
    "train-images-idx3-ubyte.gz": ("8d4fb7e6c68d591d4c3dfef9ec88bf0d", 26_421_880),
    "train-labels-idx1-ubyte.gz": ("25c81989df183df01b3e8a0aad5dffbe", 29_515),
    "t10k-images-idx3-ubyte.gz": ("bef4ecab320f06d8554ea6380940ec79", 4_422_102),
    "t10k-labels-idx1-ubyte.gz": ("bb300cfdad3c16e7a12a480ee83cd310", 5_148),
}

DATA_SETS = {
    data.name: data
    for data in (
        DataSet(
            "cifar10",
            "CIFAR-10",
            50_000,
            10_000,
            "32x32",
            _CIFAR_TERMS,
            "split-cifar10",
            _cifar(
                "cifar10",
                (*_BATCHES, "test_batch", "batches.meta"),
                (*(f"{batch}.bin" for batch in _BATCHES), "test_batch.bin", "batches.meta.txt"),
            ),
            (
                Remote(
                    f"{_CIFAR_URL}/cifar-10-python.tar.gz",
                    "c58f30108f718f92721af3b95e74349a",
                    170_498_071,
                ),
            ),
            {
                "data_batch_1": "c99cafc152244af753f735de768cd75f",
                "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
                "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
                "data_batch_4": "634d18415352ddfa80567beed471001a",
                "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
                "test_batch": "40351d587109b95175f43aff81a1287e",
                "batches.meta": "5ff9c542aee3614f3951f8cda6e48888",
            },
        ),
        DataSet(
            "cifar100",
            "CIFAR-100",
            50_000,
            10_000,
            "32x32",
            _CIFAR_TERMS,
            "split-cifar100",
            _cifar(
                "cifar100",
                ("train", "test", "meta"),
                ("train.bin", "test.bin", "fine_label_names.txt"),
            ),
            (
                Remote(
                    f"{_CIFAR_URL}/cifar-100-python.tar.gz",
                    "eb9058c3a382ffc7106e4002c42a8d85",
                    169_001_437,
                ),
            ),
            {
                "train": "16019d7e3df5f24257cddd939b257f8d",
                "test": "f0ef6b0ae62326f3e7ffdfab6717acfc",
                "meta": "7973b15100ade9c7d40fb424638fde48",
            },
        ),
        DataSet(
            "miniimagenet",
            "mini-ImageNet",
            50_000,
            10_000,
            "84x84",
            _IMAGENET_TERMS,
            "split-miniimagenet",
            (
                Layout("mini-imagenet", ("train_x.npy", "train_y.npy", "test_x.npy", "test_y.npy")),
                Layout("mini-imagenet", ("train/*/*", "test/*/*")),
                Layout("mini-imagenet", ("n[0-9]*/*",)),
            ),
        ),
        DataSet(
            "cub200",
            "CUB-200-2011",
            5_994,
            5_794,
            "any size",
            "Caltech: non-commercial research",
            "split-cub200",
            (Layout("CUB_200_2011", (*_CUB, "images/*/*")),),
            (
                Remote(
                    "https://data.caltech.edu/records/65de6-vp158/files/CUB_200_2011.tgz",
                    "97eceeb196236b17998738112f37df78",
                    1_150_585_339,
                ),
            ),
        ),
        DataSet(
            "tinyimagenet",
            "Tiny ImageNet",
            100_000,
            10_000,
            "64x64",
            _IMAGENET_TERMS,
            "split-tinyimagenet",
            (Layout("tiny-imagenet-200", _TINY),),
            (
                Remote(
                    "http://cs231n.stanford.edu/tiny-imagenet-200.zip",
                    "90528d7ca1a48142e341f4ef8d21d0de",
                    248_100_043,
                ),
            ),
        ),
        DataSet(
            "mnist",
            "MNIST",
            60_000,
            10_000,
            "28x28",
            "CC BY-SA 3.0 (LeCun, Cortes, Burges)",
            "split-mnist",
            (Layout("mnist", _IDX), Layout("MNIST/raw", _IDX), Layout("MNIST", _IDX)),
            _idx_files("https://ossci-datasets.s3.amazonaws.com/mnist", _MNIST),
            {name: md5 for name, (md5, _) in _MNIST.items()},
        ),
        DataSet(
            "fashion-mnist",
            "Fashion-MNIST",
            60_000,
            10_000,
            "28x28",
            "MIT (Zalando)",
            "split-fashion-mnist",
            (
                Layout("fashion-mnist", _IDX),
                Layout("FashionMNIST/raw", _IDX),
                Layout("FashionMNIST", _IDX),
            ),
            _idx_files(
                "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
                _FASHION,
            ),
            {name: md5 for name, (md5, _) in _FASHION.items()},
        ),
    )
}


def data_set(name: str) -> DataSet:
    """A data set by its name, or by that of its benchmark.

    >>> data_set("split-cifar100").title
    'CIFAR-100'
    """
    short = name.removeprefix("split-")
    if short not in DATA_SETS:
        raise unknown("data set", name, DATA_SETS)
    return DATA_SETS[short]
