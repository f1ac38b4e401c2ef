"""Benchmarks: streams of tasks. One file per data family, listed here."""

from ..registry import Entry, Registry

BENCHMARKS = Registry(
    "benchmark",
    {
        "split-digits": Entry(
            "liderlab.streams.digits:split_digits",
            "scikit-learn's 8x8 digits, bundled: 5 tasks x 2 classes",
            {
                "classes": 10,
                "tasks": 5,
                "image": "1x8x8",
                "defaults": {
                    "backbone": {"name": "convnet-small"},
                    "memory": {"size": 100},
                    "training": {"epochs": 10, "batch_size": 32, "lr": 0.1},
                },
            },
        ),
        "synthetic": Entry(
            "liderlab.streams.synthetic:synthetic",
            "random patterns with noise, made on the spot: for tests and trials",
            {
                "classes": 6,
                "tasks": 3,
                "image": "3x8x8",
                "defaults": {
                    "backbone": {"name": "convnet-small"},
                    "memory": {"size": 24},
                    "training": {"epochs": 2, "batch_size": 16, "lr": 0.1},
                },
            },
        ),
    },
)
