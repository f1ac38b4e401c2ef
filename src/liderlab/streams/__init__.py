"""Benchmarks: streams of tasks. One file per data family, listed here with the paper's settings.

Learning rates belong to method and buffer (presets); the ones here are for trials.
"""

from importlib import import_module
from typing import Any

from ..registry import Entry, Registry


def _facts(classes: int | None, tasks: int | None, image: str, **defaults: Any) -> dict[str, Any]:
    return {"classes": classes, "tasks": tasks, "image": image, "defaults": defaults}


BENCHMARKS = Registry(
    "benchmark",
    {
        "split-digits": Entry(
            "liderlab.streams.datasets.digits:split_digits",
            "scikit-learn's 8x8 digits, bundled: 5 tasks x 2 classes",
            _facts(
                10,
                5,
                "1x8x8",
                backbone={"name": "convnet-small"},
                memory={"size": 100},
                threads=1,  # a network this small gains nothing from more
                training={"epochs": 5, "batch_size": 16, "lr": 0.1, "milestones": [3, 4]},
            ),
        ),
        "synthetic": Entry(
            "liderlab.streams.datasets.synthetic:synthetic",
            "random patterns with noise, made on the spot: for tests and trials",
            _facts(
                6,
                3,
                "3x8x8",
                backbone={"name": "convnet-small"},
                memory={"size": 24},
                threads=1,
                training={"epochs": 2, "batch_size": 16, "lr": 0.1},
            ),
        ),
        "split-cifar100": Entry(
            "liderlab.streams.datasets.cifar:split_cifar100",
            "CIFAR-100: 10 tasks x 10 classes; 20 tasks in the single-epoch table",
            _facts(
                100,
                10,
                "3x32x32",
                backbone={"name": "resnet18"},
                memory={"size": 500},
                training={"epochs": 50, "batch_size": 64, "lr": 0.03, "milestones": [35, 45]},
            ),
        ),
        "split-miniimagenet": Entry(
            "liderlab.streams.datasets.mini_imagenet:split_miniimagenet",
            "mini-ImageNet: 20 tasks x 5 classes",
            _facts(
                100,
                20,
                "3x84x84",
                backbone={"name": "efficientnet-b2"},
                memory={"size": 2000},
                training={
                    "epochs": 80,
                    "batch_size": 128,
                    "lr": 0.1,
                    "milestones": [35, 60, 75],
                    "gamma": 0.2,
                },
            ),
        ),
        "split-cub200": Entry(
            "liderlab.streams.datasets.cub:split_cub200",
            "CUB-200-2011, birds: 10 tasks x 20 classes",
            _facts(
                200,
                10,
                "3x224x224",
                backbone={"name": "resnet50"},
                memory={"size": 400},
                training={"epochs": 50, "batch_size": 16, "lr": 0.03},
            ),
        ),
        "split-tinyimagenet": Entry(
            "liderlab.streams.datasets.tiny_imagenet:split_tinyimagenet",
            "Tiny ImageNet: 10 tasks x 20 classes; also the source of pre-training (size 32)",
            _facts(
                200,
                10,
                "3x64x64",
                backbone={"name": "resnet18"},
                memory={"size": 500},
                training={"epochs": 50, "batch_size": 64, "lr": 0.03, "milestones": [35, 45]},
            ),
        ),
        "split-cifar10": Entry(
            "liderlab.streams.datasets.cifar:split_cifar10",
            "CIFAR-10: 5 tasks x 2 classes",
            _facts(
                10,
                5,
                "3x32x32",
                backbone={"name": "resnet18"},
                memory={"size": 200},
                training={"epochs": 50, "batch_size": 32, "lr": 0.03},
            ),
        ),
        "split-mnist": Entry(
            "liderlab.streams.datasets.mnist:split_mnist",
            "MNIST, handwritten digits: 5 tasks x 2 classes",
            _facts(
                10,
                5,
                "1x28x28",
                backbone={"name": "mlp"},
                memory={"size": 200},
                training={"epochs": 1, "batch_size": 10, "lr": 0.03},
            ),
        ),
        "split-fashion-mnist": Entry(
            "liderlab.streams.datasets.mnist:split_fashion_mnist",
            "Fashion-MNIST, clothes: 5 tasks x 2 classes",
            _facts(
                10,
                5,
                "1x28x28",
                backbone={"name": "mlp"},
                memory={"size": 200},
                training={"epochs": 1, "batch_size": 10, "lr": 0.03},
            ),
        ),
        "folder": Entry(
            "liderlab.streams.datasets.image_folder:folder",
            "your own images in class folders: --benchmark folder:PATH --tasks N",
            _facts(
                None,
                None,
                "3x64x64",
                backbone={"name": "resnet18"},
                memory={"size": 200},
                training={"epochs": 5, "batch_size": 32, "lr": 0.03},
            ),
        ),
    },
)


def __getattr__(name: str) -> Any:
    """`split` and `Images` for one's own data, imported on first use: listing needs no torch."""
    if name in ("split", "Images"):
        return getattr(import_module(f"{__name__}.splitting"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
