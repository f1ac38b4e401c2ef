"""A regulariser of your own, one class: keep the weights near those after the last task."""

import torch
from torch import Tensor, nn

from liderlab import REGULARIZERS, Regularizer, Step, run
from liderlab.config.merging import make_config
from liderlab.registry import Entry


class StayClose(Regularizer):
    """L = w · Σ_j (θ_j − θ*_j)², where θ* are the weights after the last task."""

    task_by_task = True  # refused with methods that do not train task by task

    def __init__(self, weight: float = 0.1) -> None:  # an option; 0 switches it off
        super().__init__()
        self.weight = weight

    def attach(self, network: nn.Module, example: Tensor | None = None) -> None:
        self.weights = network.parameters  # the method, not the network: it is no part of our state
        for number, weight in enumerate(self.weights()):
            self.register_buffer(f"anchor{number}", weight.detach().clone())  # in checkpoints

    def losses(self, step: Step) -> dict[str, Tensor]:
        if self.weight == 0 or step.task.index == 0:
            return {}
        pairs = zip(self.weights(), self.buffers(), strict=True)
        moved = torch.stack([(weight - anchor).square().sum() for weight, anchor in pairs])
        return {"stay-close": self.weight * moved.sum()}

    def end_task(self, step: Step) -> None:
        for weight, anchor in zip(self.weights(), self.buffers(), strict=True):
            anchor.copy_(weight.detach())


REGULARIZERS["stay-close"] = Entry(StayClose, "keeps the weights near those after the last task")

if __name__ == "__main__":
    for regularizers in ({}, {"stay-close": {"weight": 0.1}}, {"stay-close": {}, "lider": {}}):
        config = make_config(
            {
                "benchmark": "split-digits",
                "method": "er-ace",
                "regularizers": regularizers,
                "training": {"epochs": 1},
            }
        )
        names = " + ".join(["er-ace", *regularizers])
        faa = run(config, f"runs/{names}")["class_incremental"]["faa"]
        print(f"{names}: final accuracy {faa:.1f} %")
