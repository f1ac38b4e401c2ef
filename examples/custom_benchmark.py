"""Your own benchmark from arrays of images and labels: first the odd digits, then the even ones."""

import torch
from sklearn.datasets import load_digits

from liderlab import Images, add_benchmark, run
from liderlab.config.merging import make_config

digits = load_digits()
x = torch.tensor(digits.images * 15, dtype=torch.uint8).unsqueeze(1)  # (n, C, H, W), 0…255
y = torch.tensor(digits.target)
train, test = Images(x[:1400], y[:1400]), Images(x[1400:], y[1400:])
add_benchmark("odd-then-even", train, test, tasks=2, names=[f"digit {n}" for n in range(10)])

if __name__ == "__main__":
    config = make_config(
        {
            "benchmark": {"name": "odd-then-even", "class_order": [1, 3, 5, 7, 9, 0, 2, 4, 6, 8]},
            "method": "der++",
            "regularizers": {"lider": {}},
            "memory": {"size": 100},
            "training": {"epochs": 2, "lr": 0.1},
        }
    )
    matrix = run(config, "runs/odd-then-even")["class_incremental"]["accuracy_matrix"]
    print("after the odd digits: ", [f"{value:.1f} %" for value in matrix[0][:1]])
    print("after the even digits:", [f"{value:.1f} %" for value in matrix[1]])
