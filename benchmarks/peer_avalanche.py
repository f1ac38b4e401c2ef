"""The job of `peers.py` with Avalanche, run by its interpreter.

    python peer_avalanche.py METHOD DATA --width 64 [--steps N]

Avalanche has no command: this is the script that its documentation asks users to write, with its
own stream, network, strategy and evaluation. The last line is the accuracy in percent.
"""

import argparse
from typing import Any

import torch
from avalanche.benchmarks import SplitCIFAR100
from avalanche.evaluation.metrics import accuracy_metrics
from avalanche.models import SlimResNet18
from avalanche.training.plugins import EvaluationPlugin
from avalanche.training.supervised import DER, ER_ACE

TASKS, ROWS, MEMORY, LR = 2, 64, 500, 0.03


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("method", choices=["er-ace", "der++"])
    parser.add_argument("data")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--steps", type=int)
    options = parser.parse_args()
    torch.set_num_threads(1)
    stream = SplitCIFAR100(
        n_experiences=10, fixed_class_order=list(range(100)), dataset_root=options.data
    )
    model = SlimResNet18(100, nf=options.width)
    common: dict[str, Any] = {
        "model": model,
        "optimizer": torch.optim.SGD(model.parameters(), lr=LR),
        "mem_size": MEMORY,
        "batch_size_mem": ROWS,
        "train_mb_size": ROWS,
        "eval_mb_size": ROWS,
        "evaluator": EvaluationPlugin(accuracy_metrics(stream=True)),
    }
    strategy = ER_ACE(**common) if options.method == "er-ace" else DER(**common, beta=0.5)
    found: dict[str, float] = {}
    for number, experience in enumerate(stream.train_stream[:TASKS]):
        if options.steps:
            rows = list(range(options.steps * ROWS))
            experience.dataset = experience.dataset.subset(rows)
        strategy.train(experience, num_workers=0)
        found = strategy.eval(stream.test_stream[: number + 1], num_workers=0)
    print(100 * next(value for name, value in found.items() if "Top1_Acc_Stream" in name))


if __name__ == "__main__":
    main()
