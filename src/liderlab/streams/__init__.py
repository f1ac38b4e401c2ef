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
                    "threads": 1,  # a network this small gains nothing from more
                    "training": {
                        "epochs": 5,
                        "batch_size": 16,
                        "lr": 0.1,
                        "milestones": [3, 4],
                    },
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
                    "threads": 1,
                    "training": {"epochs": 2, "batch_size": 16, "lr": 0.1},
                },
            },
        ),
    },
)
