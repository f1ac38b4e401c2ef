"""Benchmarks: streams of tasks. One file per data family, listed here with the paper's settings.

The learning rates here are for first trials; the paper's depend on method and buffer (presets).
"""

from importlib import import_module
from typing import Any

from ..registry import Entry, Registry

CLASSES, DOMAINS = "class-incremental", "domain-incremental"


def _benchmark(
    maker: str, summary: str, facts: dict[str, Any], run: dict[str, Any], training: dict[str, Any]
) -> Entry:
    """run, training: default values of a run's configuration."""
    facts = facts | {"defaults": run | {"training": training}}
    return Entry(f"liderlab.streams.datasets.{maker}", summary, facts)


# "threads": 1 where the network is too small to gain from more.
BENCHMARKS = Registry(
    "benchmark",
    {
        "split-digits": _benchmark(
            "digits:split_digits",
            "scikit-learn's 8x8 digits, bundled: 5 tasks x 2 classes",
            {"classes": 10, "tasks": 5, "image": "1x8x8"},
            {"backbone": {"name": "convnet-small"}, "memory": {"size": 100}, "threads": 1},
            {"epochs": 5, "batch_size": 16, "lr": 0.1, "milestones": [3, 4]},
        ),
        "rotated-digits": _benchmark(
            "digits:rotated_digits",
            "the digits turned by 0, 36, 72, … degrees: 5 domains, the same 10 classes",
            {"classes": 10, "tasks": 5, "image": "1x8x8", "setting": DOMAINS},
            {"backbone": {"name": "convnet-small"}, "memory": {"size": 100}, "threads": 1},
            {"epochs": 5, "batch_size": 16, "lr": 0.1, "milestones": [3, 4]},
        ),
        "permuted-digits": _benchmark(
            "digits:permuted_digits",
            "the digits with pixels in other orders: 5 domains, the same 10 classes",
            {"classes": 10, "tasks": 5, "image": "1x8x8", "setting": DOMAINS},
            {"backbone": {"name": "mlp"}, "memory": {"size": 100}, "threads": 1},
            {"epochs": 5, "batch_size": 16, "lr": 0.1, "milestones": [3, 4]},
        ),
        "synthetic": _benchmark(
            "synthetic:synthetic",
            "random patterns with noise, made on the spot: for tests and trials",
            {"classes": 6, "tasks": 3, "image": "3x8x8"},
            {"backbone": {"name": "convnet-small"}, "memory": {"size": 24}, "threads": 1},
            {"epochs": 2, "batch_size": 16, "lr": 0.1},
        ),
        "split-cifar100": _benchmark(
            "cifar:split_cifar100",
            "CIFAR-100: 10 tasks x 10 classes; 20 tasks in the single-epoch table",
            {"classes": 100, "tasks": 10, "image": "3x32x32"},
            {"backbone": {"name": "resnet18"}, "memory": {"size": 500}},
            {"epochs": 50, "batch_size": 64, "lr": 0.03, "milestones": [35, 45]},
        ),
        "split-miniimagenet": _benchmark(
            "mini_imagenet:split_miniimagenet",
            "mini-ImageNet: 20 tasks x 5 classes",
            {"classes": 100, "tasks": 20, "image": "3x84x84"},
            {"backbone": {"name": "efficientnet-b2"}, "memory": {"size": 2000}},
            {"epochs": 80, "batch_size": 128, "lr": 0.1, "milestones": [35, 60, 75], "gamma": 0.2},
        ),
        "split-cub200": _benchmark(
            "cub:split_cub200",
            "CUB-200-2011, birds: 10 tasks x 20 classes",
            {"classes": 200, "tasks": 10, "image": "3x224x224"},
            {"backbone": {"name": "resnet50"}, "memory": {"size": 400}},
            {"epochs": 50, "batch_size": 16, "lr": 0.03},
        ),
        "split-tinyimagenet": _benchmark(
            "tiny_imagenet:split_tinyimagenet",
            "Tiny ImageNet: 10 tasks x 20 classes; also the source of pre-training (size 32)",
            {"classes": 200, "tasks": 10, "image": "3x64x64"},
            {"backbone": {"name": "resnet18"}, "memory": {"size": 500}},
            {"epochs": 50, "batch_size": 64, "lr": 0.03, "milestones": [35, 45]},
        ),
        "split-cifar10": _benchmark(
            "cifar:split_cifar10",
            "CIFAR-10: 5 tasks x 2 classes",
            {"classes": 10, "tasks": 5, "image": "3x32x32"},
            {"backbone": {"name": "resnet18"}, "memory": {"size": 200}},
            {"epochs": 50, "batch_size": 32, "lr": 0.03},
        ),
        "split-mnist": _benchmark(
            "mnist:split_mnist",
            "MNIST, handwritten digits: 5 tasks x 2 classes",
            {"classes": 10, "tasks": 5, "image": "1x28x28"},
            {"backbone": {"name": "mlp"}, "memory": {"size": 200}},
            {"epochs": 1, "batch_size": 10, "lr": 0.03},
        ),
        "rotated-mnist": _benchmark(
            "mnist:rotated_mnist",
            "MNIST turned by 0, 9, 18, … degrees: 20 domains, the same 10 classes",
            {"classes": 10, "tasks": 20, "image": "1x28x28", "setting": DOMAINS},
            {"backbone": {"name": "mlp"}, "memory": {"size": 200}},
            {"epochs": 1, "batch_size": 128, "lr": 0.2},
        ),
        "permuted-mnist": _benchmark(
            "mnist:permuted_mnist",
            "MNIST with pixels in other orders: 20 domains, the same 10 classes",
            {"classes": 10, "tasks": 20, "image": "1x28x28", "setting": DOMAINS},
            {"backbone": {"name": "mlp"}, "memory": {"size": 200}},
            {"epochs": 1, "batch_size": 128, "lr": 0.2},
        ),
        "split-fashion-mnist": _benchmark(
            "mnist:split_fashion_mnist",
            "Fashion-MNIST, clothes: 5 tasks x 2 classes",
            {"classes": 10, "tasks": 5, "image": "1x28x28"},
            {"backbone": {"name": "mlp"}, "memory": {"size": 200}},
            {"epochs": 1, "batch_size": 10, "lr": 0.03},
        ),
        "folder": _benchmark(
            "image_folder:folder",
            "your own images in class folders: --benchmark folder:PATH --tasks N",
            {"classes": None, "tasks": None, "image": "3x64x64"},
            {"backbone": {"name": "resnet18"}, "memory": {"size": 200}},
            {"epochs": 5, "batch_size": 32, "lr": 0.03},
        ),
        "domains": _benchmark(
            "domain_folder:domains",
            "your own images of several domains: --benchmark domains:PATH",
            {"classes": None, "tasks": None, "image": "3x64x64", "setting": DOMAINS},
            {"backbone": {"name": "resnet18"}, "memory": {"size": 200}},
            {"epochs": 5, "batch_size": 32, "lr": 0.03},
        ),
    },
    group="liderlab.benchmarks",
)


def __getattr__(name: str) -> Any:
    """Import `split` and `Images` on first use: listing benchmarks needs no torch."""
    if name in ("split", "Images"):
        return getattr(import_module(f"{__name__}.splitting"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
