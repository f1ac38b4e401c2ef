"""LwF: learning without forgetting (Li & Hoiem, 2017)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..errors import check_numbers
from ..functional.losses import distillation, masked_cross_entropy
from ..types import Batch, Terms
from .base import Method

if TYPE_CHECKING:
    from ..backbones.network import Network
    from ..training.step import Step


class LwF(Method):
    """L = CE(f_now(x), y) + λ Σ_t KD(f_t(x), f*_t(x)),  t: the past tasks

        KD(z, z*) = −Σ_c p*_c log p_c,   p = softmax(z / T), p* = softmax(z* / T)   (Eq. 2 and 3)

    f_now, f_t: the logits of the current task's classes, and of task t's. f*: the network as it was
    when the task began. It keeps no samples: the rows of the new task stand for the old ones.

    Args:
        weight: λ, how much each past task counts.
        temperature: T, above 1 it makes small scores count more.
    """

    paper = "Li & Hoiem, Learning without Forgetting"
    year = 2017
    new_classes = True
    heads = ("all", "seen")  # its loss is per task already
    previous: Network

    def __init__(self, weight: float = 1.0, temperature: float = 2.0) -> None:
        super().__init__()
        check_numbers(weight=weight, at_least=0)
        check_numbers(temperature=temperature, above=0, at_most=1e38)  # float32
        self.weight, self.temperature = weight, temperature

    def attach(self, network: Network, example: Tensor) -> None:
        self.previous = network.frozen_copy()

    def begin_task(self, step: Step) -> None:
        self.previous.load_state_dict(step.network.state_dict())
        self.previous.eval()

    def losses(self, batch: Batch, step: Step) -> Terms:
        logits, task_of = step.net(batch), step.task_of
        now = torch.zeros_like(task_of, dtype=torch.bool)
        now[list(step.task.classes)] = True
        terms = {"stream": masked_cross_entropy(logits, batch.y, now)}
        if step.task.index > 0 and self.weight > 0:
            step.count(len(batch))
            old = self.previous(batch.x) if len(batch) else logits.detach()
            heads = [task_of == task for task in range(step.task.index)]
            distances = [distillation(logits[:, h], old[:, h], self.temperature) for h in heads]
            terms["distillation"] = self.weight * torch.stack(distances).sum(0)
        return terms
