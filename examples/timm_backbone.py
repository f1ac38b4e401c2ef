"""A network of timm by its name, with LiDER on the stages that it finds there."""

import timm  # noqa: F401  (pip install timm)

from liderlab import run
from liderlab.config.merging import make_config

config = make_config(
    {
        "benchmark": "synthetic",
        "backbone": "timm:resnet10t",
        "method": "er-ace",
        "regularizers": {"lider": {}},
        "memory": {"size": 50},
        "training": {"epochs": 10, "lr": 0.03},
    }
)
result = run(config, "runs/timm")
print(f"final accuracy {result['class_incremental']['faa']:.1f} %")  # chance: 16.7 %
