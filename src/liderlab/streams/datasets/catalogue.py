"""The published data sets: sizes, licences, downloads, checksums, and layouts on disk.

Cheap to import. The checksums are the publishers' own, or those in torchvision; a data set without
either has no download.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ...errors import UserError, unknown
from ..storage.location import data_folder

IMAGE_SUFFIXES = {".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"}


@dataclass(frozen=True)
class Remote:
    """A file on the publisher's server, and its size in bytes."""

    url: str
    md5: str
    size: int

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]


@dataclass(frozen=True)
class Layout:
    """The files that a data set consists of, as glob patterns, and their usual folder."""

    folder: str
    files: tuple[str, ...]

    def fits(self, path: Path) -> bool:
        return path.is_dir() and all(any(path.glob(pattern)) for pattern in self.files)


@dataclass(frozen=True)
class DataSet:
    """A published data set.

    train, test: numbers of images; side: their size. layouts: the forms in which it is published,
    or in which torchvision stores it. md5: of single files in it, by name.
    """

    name: str
    title: str
    train: int
    test: int
    side: str
    licence: str
    layouts: tuple[Layout, ...]
    remotes: tuple[Remote, ...] = ()
    md5: dict[str, str] = field(default_factory=dict)

    @property
    def benchmark(self) -> str:
        return f"split-{self.name}"

    @property
    def images(self) -> str:
        return f"{self.train:,} + {self.test:,} of {self.side}"

    @property
    def download_bytes(self) -> int:
        return sum(remote.size for remote in self.remotes)

    @property
    def checksums(self) -> dict[str, str]:
        """MD5 by file name, of the downloads and of the files in them."""
        return {remote.name: remote.md5 for remote in self.remotes} | self.md5

    @property
    def command(self) -> str:
        """The command that prepares it."""
        command = f"lider data prepare {self.name}"
        return command if self.remotes else f"{command} --from FILE_OR_DIR"

    def find(self, root: Path) -> Path | None:
        """Its folder below the data folder, or None."""
        places = ((layout, root / layout.folder) for layout in self.layouts)
        return next((place for layout, place in places if layout.fits(place)), None)

    def locate(self, root: str | Path | None = None) -> Path:
        """Its folder, or an error that names the command to get it."""
        home = data_folder(root)
        if (found := self.find(home)) is None:
            where = f" --root {home}" if root else ""
            raise UserError(f"{self.title} is not in {home}: get it with `{self.command}{where}`")
        return found


def data_set(name: str) -> DataSet:
    """A data set by its name, or by that of its benchmark.

    >>> data_set("split-cifar100").title
    'CIFAR-100'
    """
    short = name.removeprefix("split-")
    if short not in DATA_SETS:
        raise unknown("data set", name, DATA_SETS)
    return DATA_SETS[short]


_CIFAR = "https://www.cs.toronto.edu/~kriz"
_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist"
_FASHION = "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion"

_CIFAR_TERMS = "no licence stated; cite Krizhevsky 2009"
_IMAGENET_TERMS = "ImageNet terms: non-commercial research"

_CIFAR10 = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")
_CUB = ("images.txt", "classes.txt", "image_class_labels.txt", "train_test_split.txt")
_TINY = ("wnids.txt", "train/*/images/*", "val/val_annotations.txt", "val/images/*")
_IDX_KINDS = ("images-idx3", "labels-idx1")
_IDX = ("train-images*idx3*", "train-labels*idx1*", "t10k-images*idx3*", "t10k-labels*idx1*")
_IDX_GZ = [f"{part}-{kind}-ubyte.gz" for part in ("train", "t10k") for kind in _IDX_KINDS]

_ALL = [
    DataSet(
        name="cifar10",
        title="CIFAR-10",
        train=50_000,
        test=10_000,
        side="32x32",
        licence=_CIFAR_TERMS,
        layouts=(
            Layout("cifar-10-batches-py", (*_CIFAR10, "batches.meta")),
            Layout("cifar-10-batches-bin", (*(f"{n}.bin" for n in _CIFAR10), "batches.meta.txt")),
            Layout("cifar-10", ("train/airplane/*", "test/truck/*")),
        ),
        remotes=(
            Remote(
                f"{_CIFAR}/cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a", 170_498_071
            ),
        ),
        md5={
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
        name="cifar100",
        title="CIFAR-100",
        train=50_000,
        test=10_000,
        side="32x32",
        licence=_CIFAR_TERMS,
        layouts=(
            Layout("cifar-100-python", ("train", "test", "meta")),
            Layout("cifar-100-binary", ("train.bin", "test.bin", "fine_label_names.txt")),
            Layout("cifar-100", ("train/apple/*", "test/worm/*")),
        ),
        remotes=(
            Remote(
                f"{_CIFAR}/cifar-100-python.tar.gz", "eb9058c3a382ffc7106e4002c42a8d85", 169_001_437
            ),
        ),
        md5={
            "train": "16019d7e3df5f24257cddd939b257f8d",
            "test": "f0ef6b0ae62326f3e7ffdfab6717acfc",
            "meta": "7973b15100ade9c7d40fb424638fde48",
        },
    ),
    DataSet(
        name="miniimagenet",
        title="mini-ImageNet",
        train=50_000,
        test=10_000,
        side="84x84",
        licence=_IMAGENET_TERMS,
        layouts=(
            Layout("mini-imagenet", ("train_x.npy", "train_y.npy", "test_x.npy", "test_y.npy")),
            Layout("mini-imagenet", ("train/*/*", "test/*/*")),
            Layout("mini-imagenet", ("train/*/*", "val/*/*")),
            Layout("mini-imagenet", ("n[0-9]*/*",)),
        ),
    ),
    DataSet(
        name="cub200",
        title="CUB-200-2011",
        train=5_994,
        test=5_794,
        side="any size",
        licence="Caltech: non-commercial research",
        layouts=(
            Layout("CUB_200_2011", (*_CUB, "images/*/*")),
            Layout("CUB_200_2011", ("train/*/*", "test/*/*")),
        ),
        remotes=(
            Remote(
                "https://data.caltech.edu/records/65de6-vp158/files/CUB_200_2011.tgz",
                "97eceeb196236b17998738112f37df78",
                1_150_585_339,
            ),
        ),
    ),
    DataSet(
        name="tinyimagenet",
        title="Tiny ImageNet",
        train=100_000,
        test=10_000,
        side="64x64",
        licence=_IMAGENET_TERMS,
        layouts=(Layout("tiny-imagenet-200", _TINY),),
        remotes=(
            Remote(
                "http://cs231n.stanford.edu/tiny-imagenet-200.zip",
                "90528d7ca1a48142e341f4ef8d21d0de",
                248_100_043,
            ),
        ),
    ),
    DataSet(
        name="mnist",
        title="MNIST",
        train=60_000,
        test=10_000,
        side="28x28",
        licence="CC BY-SA 3.0 (LeCun, Cortes, Burges)",
        layouts=tuple(Layout(folder, _IDX) for folder in ("mnist", "MNIST/raw", "MNIST")),
        remotes=(
            Remote(f"{_MNIST}/{_IDX_GZ[0]}", "f68b3c2dcbeaaa9fbdd348bbdeb94873", 9_912_422),
            Remote(f"{_MNIST}/{_IDX_GZ[1]}", "d53e105ee54ea40749a09fcbcd1e9432", 28_881),
            Remote(f"{_MNIST}/{_IDX_GZ[2]}", "9fb629c4189551a2d022fa330f9573f3", 1_648_877),
            Remote(f"{_MNIST}/{_IDX_GZ[3]}", "ec29112dd5afa0611ce80d1b7f02629c", 4_542),
        ),
    ),
    DataSet(
        name="fashion-mnist",
        title="Fashion-MNIST",
        train=60_000,
        test=10_000,
        side="28x28",
        licence="MIT (Zalando)",
        layouts=tuple(
            Layout(folder, _IDX) for folder in ("fashion-mnist", "FashionMNIST/raw", "FashionMNIST")
        ),
        remotes=(
            Remote(f"{_FASHION}/{_IDX_GZ[0]}", "8d4fb7e6c68d591d4c3dfef9ec88bf0d", 26_421_880),
            Remote(f"{_FASHION}/{_IDX_GZ[1]}", "25c81989df183df01b3e8a0aad5dffbe", 29_515),
            Remote(f"{_FASHION}/{_IDX_GZ[2]}", "bef4ecab320f06d8554ea6380940ec79", 4_422_102),
            Remote(f"{_FASHION}/{_IDX_GZ[3]}", "bb300cfdad3c16e7a12a480ee83cd310", 5_148),
        ),
    ),
]
DATA_SETS = {data.name: data for data in _ALL}
