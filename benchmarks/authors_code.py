"""The authors' ER-ACE, alone and with LiDER, on the ledger's stream and at its scale.

    git clone https://github.com/aimagelab/LiDER
    python benchmarks/authors_code.py LiDER [--lider] [--seed 1] [--set training.epochs=1]

Method, regulariser, memory and network are theirs; images, augmentation, recipe and evaluation are
those of our preset `cifar100-500-er-ace` at scale `cpu` (first run `lider data prepare cifar100`).
Random numbers are drawn in another order, so that runs differ as seeds do.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from liderlab.config.merging import make_config
from liderlab.config.schema import RunConfig
from liderlab.config.yaml_values import parse_assignment
from liderlab.runs.build import build_stream, completed
from liderlab.types import Stream, Task

PRESET = {"preset": "cifar100-500-er-ace", "scale": "cpu", "threads": 1}
LIDER = {"buffer_lip_lambda": 0.3, "budget_lip_lambda": 0.1}  # on λ, and on |λ − c|
LIDER |= {"grad_iter_step": -2, "headless_init_act": "relu", "debug_mode": False}
NAMES = ("MyCIFAR100", "SequentialCIFAR100", "MyTinyImagenet", "SequentialTinyImagenet32R")


class Loader:
    """Batches of a task as their code expects them: augmented images, labels, original images."""

    def __init__(self, task: Task, stream: Stream, config: RunConfig) -> None:
        self.task, self.transform = task, stream.transform
        self.batch_size = config.training.batch_size

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        for index in torch.randperm(len(self.task.train)).split(self.batch_size):
            rows = self.task.train.rows(index)
            view = self.transform.sample(len(index), torch.default_generator)
            yield view(rows["x"]), rows["y"], rows["x"].float()

    def __len__(self) -> int:
        return -(-len(self.task.train) // self.batch_size)


def import_authors_code(checkout: Path, config: RunConfig, stream: Stream) -> None:
    """Make their modules importable without torchvision and their datasets, which we replace."""
    recipe, tasks = config.training, len(stream.tasks)
    setting = SimpleNamespace(minibatch_size=recipe.replay_size, batch_size=recipe.batch_size)
    data = SimpleNamespace(
        N_TASKS=tasks,
        N_CLASSES_PER_TASK=len(stream.names) // tasks,
        get_setting=lambda: setting,
    )
    stand_ins: dict[str, dict[str, Any]] = {
        "torchvision": {"transforms": None},
        "torchvision.transforms": {},
        "datasets": {"NAMES": {}, "get_dataset": lambda args: data, "__path__": []},
        "datasets.seq_cifar100": dict.fromkeys(NAMES),
        "datasets.seq_tinyimagenet": dict.fromkeys(NAMES),
    }
    for name, content in stand_ins.items():
        sys.modules[name] = ModuleType(name)
        vars(sys.modules[name]).update(content)
    sys.path.insert(0, str(checkout.absolute()))
    os.chdir(checkout)  # their code lists its models by a relative path


def make_method(lider: bool, config: RunConfig, stream: Stream) -> Any:
    recipe, name = config.training, "er_ace_lipschitz" if lider else "er_ace"
    args = SimpleNamespace(buffer_size=config.memory.size, lr=recipe.lr, distributed="no", **LIDER)
    args.optim_wd, args.optim_mom, args.datasetS = recipe.weight_decay, recipe.momentum, None

    def augment(image: Tensor) -> Tensor:
        return stream.transform.sample(1, torch.default_generator)(image[None])[0]

    width = config.backbone.options["width"]
    network = import_module("backbone.ResNet18").resnet18(len(stream.names), nf=width)
    method = getattr(import_module(f"models.{name}"), "ErACELipschitz" if lider else "ErACE")
    return method(network, torch.nn.functional.cross_entropy, args, augment)


def learn(method: Any, loader: Loader, config: RunConfig) -> None:
    """Train on one task as their loop does, with a new optimizer."""
    method.net.train()
    method.begin_task(SimpleNamespace(train_loader=loader))
    recipe = config.training
    method.opt = torch.optim.SGD(
        method.net.parameters(), recipe.lr, recipe.momentum, weight_decay=recipe.weight_decay
    )
    schedule = torch.optim.lr_scheduler.MultiStepLR(method.opt, recipe.milestones, recipe.gamma)
    for _ in range(recipe.epochs):
        for batch in loader:
            method.observe(*batch)
        schedule.step()
    method.end_task(None)


@torch.no_grad()
def accuracy(method: Any, task: Task, stream: Stream) -> float:
    method.net.eval()
    rows, right = task.test.rows(torch.arange(len(task.test))), 0
    view = stream.transform.sample(1, None)
    for x, y in zip(rows["x"].split(250), rows["y"].split(250), strict=True):
        right += int((method.net(view(x)).argmax(1) == y).sum())
    return 100 * right / len(task.test)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path, help="a clone of the authors' repository")
    parser.add_argument("--lider", action="store_true", help="their er_ace_lipschitz")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        help="like training.epochs=1",
    )
    options = parser.parse_args()
    config = completed(make_config(PRESET, *(parse_assignment(text) for text in options.set)))
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    np.random.seed(options.seed)
    stream = build_stream(config)
    import_authors_code(options.checkout, config, stream)
    method = make_method(options.lider, config, stream)
    for task in stream.tasks:
        learn(method, Loader(task, stream, config), config)
        row = [accuracy(method, seen, stream) for seen in stream.tasks[: task.index + 1]]
        numbers = " ".join(f"{value:5.1f}" for value in row)
        print(
            f"after task {task.index + 1:2}: mean {sum(row) / len(row):.2f} of {numbers}",
            flush=True,
        )


if __name__ == "__main__":
    main()
