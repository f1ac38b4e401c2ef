"""The base class of regularisers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor, nn

from ..types import Batch, Gradient, Recipe, Task, Terms

if TYPE_CHECKING:
    from ..training.step import Step


class Regularizer(nn.Module):
    """Adds loss terms to any method, and may change how it is optimised. Every hook is optional.

    A regulariser listens to the passes through `Step.net`. Like a method it returns named terms and
    never calls `backward()` or `step()`.
    """

    needs_memory: ClassVar[bool] = False
    """Whether it needs replayed samples."""
    task_by_task: ClassVar[bool] = False
    """Whether it needs a method that trains on each task when it arrives."""
    on_features: ClassVar[bool] = False
    """Whether it acts on the backbone's features alone: a frozen backbone leaves it no effect."""
    off: ClassVar[Mapping[str, Any]] = {"weight": 0.0}
    """Options at which a run is, to the bit, the run without it."""
    paper: ClassVar[str | None] = None
    year: ClassVar[int | None] = None

    @classmethod
    def facts(cls) -> dict[str, Any]:
        """The attributes above for `lider list regularizers`."""
        names = ("needs_memory", "task_by_task", "on_features", "paper", "year")
        return {name: getattr(cls, name) for name in names}

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        super()._load_from_state_dict(*args, **kwargs)
        self.loaded()

    def loaded(self) -> None:
        """Its state was loaded: copy to the host what every step must know, as reading it from the
        device each time would wait for it."""

    def attach(self, network: nn.Module, example: Tensor | None = None) -> None:
        """Meet the network, once: register hooks, make buffers for what the regulariser keeps.

        The method has attached before, so that parameters which it froze are known; compilation
        comes afterwards. A checkpoint is loaded only after all of that. Draw no random numbers
        here. example: a small input (2, C, H, W), on the network's device.
        """

    def check(self, recipe: Recipe, memory: int) -> None:
        """Refuse in one sentence a run in which it cannot work, before anything is written.

        memory: how many samples the memory can hold.
        """

    def adapt(self, recipe: Recipe, task: Task) -> Recipe:
        """Change how a task is optimised."""
        return recipe

    def start(self, step: Step) -> None:
        """A fit begins."""

    def before_pass(self, batch: Batch, step: Step) -> None:
        """These rows are about to pass through the network: make passes of your own here, which no
        other regulariser hears."""

    def hear(self, batch: Batch, step: Step) -> AbstractContextManager[Any]:
        """The context in which these rows pass through the network: record what is needed there.

        nullcontext() says that nothing is: a method may then settle the pass before `losses`.
        """
        return nullcontext()

    def losses(self, step: Step) -> Terms:
        """Terms to add to the method's in this step; exactly {} at zero weight."""
        return {}

    @property
    def perturbs(self) -> bool:
        """Whether `perturb` replaces the gradient of every step."""
        return False

    def perturb(self, gradient: Gradient, gradient_at: Callable[[Gradient], Gradient]) -> Gradient:
        """Look at the loss around the weights, and return the gradient to step down instead.

        gradient: at the weights θ. gradient_at(δ): at θ + δ, of the same rows, draws and dropout
        masks; it moves no BatchNorm statistics and stores nothing. Both are sums over all ranks.
        """
        return gradient

    def transform(self, gradient: Gradient, step: Step) -> Gradient:
        """Change the gradient before the optimizer steps: project it, scale it, add to it."""
        return gradient

    def end_task(self, step: Step) -> None:
        """A task has been trained."""

    def param_groups(self) -> list[dict[str, Any]]:
        """Parameter groups for the optimizer, beside the network's.

        A group may have a `weight_decay`, a `momentum` (SGD) and an `lr_factor` of its own: its
        learning rate is that of the network times lr_factor.
        """
        return []

    def readings(self) -> dict[str, float]:
        """Numbers worth logging beside the loss terms."""
        return {}

    def resolved(self) -> dict[str, Any]:
        """Choices it made where the configuration left them open, for result.json."""
        return {}
