"""The base class of methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from torch import Tensor, nn

from ..memory import Column
from ..types import Batch, Fit, Gradient, Recipe, Stream, Task, Terms

if TYPE_CHECKING:
    from ..backbones.network import Network
    from ..memory import Memory
    from ..training.step import Step


class Method(nn.Module, ABC):
    """One continual-learning method: it turns a batch into named loss terms. All methods of the
    class but `losses` have a default.

    A method never calls `backward()` or `step()` and does not know the regularisers. It changes its
    memory through `step.store` and `step.after`, once the step has been taken.
    """

    rehearsal: ClassVar[bool] = False
    """Whether it keeps a memory."""
    policy: ClassVar[str] = "reservoir"
    """The memory policy it uses unless the configuration names another."""
    task_by_task: ClassVar[bool] = True
    """Whether it trains on each task when it arrives."""
    fits_memory: ClassVar[bool] = False
    """Whether it trains on the memory alone."""
    new_classes: ClassVar[bool] = False
    """Whether it needs new classes in every task, and only these."""
    heads: ClassVar[tuple[str, ...]] = ("all", "seen", "task")
    """The values of `training.heads` that it can be trained with."""
    trains: ClassVar[Literal["all", "head", "nothing"]] = "all"
    """The part of the network that it trains: all, the last layer, or nothing."""
    task_free: ClassVar[bool] = False
    """Whether it can train without knowing where a task begins and ends."""
    paper: ClassVar[str | None] = None
    year: ClassVar[int | None] = None

    @classmethod
    def facts(cls) -> dict[str, Any]:
        """The attributes above for `lider list methods`; no policy without a memory."""
        names = (
            "rehearsal",
            "policy",
            "task_by_task",
            "fits_memory",
            "new_classes",
            "trains",
            "task_free",
            "paper",
            "year",
        )
        facts = {name: getattr(cls, name) for name in names}
        return facts if cls.rehearsal else facts | {"policy": None}

    def columns(self, classes: int) -> Mapping[str, Column]:
        """Columns that the memory stores with each sample, beside image, label and task."""
        return {}

    def readout(self, classes: int) -> nn.Module:
        """The layer from the backbone's output to the scores."""
        return nn.Identity()

    def attach(self, network: Network, example: Tensor) -> None:
        """Meet the network, once: freeze parts of it, make buffers for what the method keeps.

        The network is complete (initial or pretrained weights, on its device); regularisers attach
        afterwards, and compilation comes last. A checkpoint is loaded only after all of that.
        Draw no random numbers here. example: a small input (2, C, H, W), on the same device.
        """

    def plan(
        self, task: Task, stream: Stream, recipe: Recipe, epochs: int, memory: Memory
    ) -> list[Fit]:
        """The fits to train when a task arrives."""
        return [Fit(task.train, epochs, recipe)]

    def begin_task(self, step: Step) -> None:
        """A task arrives: take what its training needs of the network or the memory as they are.

        Called once for every task that the method trains on, before its first fit."""

    @abstractmethod
    def losses(self, batch: Batch, step: Step) -> Terms:
        """The loss terms of one batch; {} if there is nothing to optimise."""

    def transform(self, gradient: Gradient, step: Step) -> Gradient:
        """Change the gradient of all terms, the regularisers' included, before the optimizer
        steps: project it, scale it, add to it. It is the sum over all ranks."""
        return gradient

    def end_task(self, step: Step) -> None:
        """The task has been trained: change the memory or the method's state here."""

    def classifier(self, network: Network) -> nn.Module:
        """The module that scores the classes of an image at test time."""
        return network
