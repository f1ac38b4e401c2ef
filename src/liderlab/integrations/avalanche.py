"""LiDER as a plugin of Avalanche, beside ReplayPlugin or another form of rehearsal."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import torch
from torch.utils.data import DataLoader

try:
    from avalanche.core import SupervisedPlugin
except ImportError as error:
    raise ImportError("Avalanche is not installed: pip install avalanche-lib") from error

from ..regularizers.lider import LiDER


class LiDERPlugin(SupervisedPlugin):  # type: ignore[misc]
    """Adds α · L_cLip + β · L_0Lip (Eq. 9) to the loss of any strategy that rehearses.

    Avalanche mixes replayed samples into its mini-batches without marking them. A row counts as
    replayed if its class is not one of the current experience, which is right where experiences
    bring new classes. The targets c_k have their own optimizer, with the strategy's learning rate,
    because Avalanche rebuilds the strategy's optimizer with every experience.

    lider: made for the strategy's model, `LiDER(model, stages=[…])`.
    calibration_batch: batch size of the pass that sets the targets' start values.
    """

    def __init__(self, lider: LiDER, calibration_batch: int = 128) -> None:
        super().__init__()
        self.lider, self._calibration_batch = lider, calibration_batch
        self._pass = ExitStack()
        self._optimizer: torch.optim.Optimizer | None = None
        self._watched = False

    def before_training_exp(self, strategy: Any, **kwargs: Any) -> None:
        if not self.lider.calibrated:
            loader = DataLoader(strategy.experience.dataset, batch_size=self._calibration_batch)
            self.lider.calibrate(loader)
        groups = self.lider.param_groups()
        lr = strategy.optimizer.param_groups[0]["lr"]
        lr *= self.lider.target_lr
        self._optimizer = torch.optim.SGD(groups, lr=lr) if groups else None

    def before_forward(self, strategy: Any, **kwargs: Any) -> None:
        present = torch.as_tensor(
            list(strategy.experience.classes_in_this_experience), device=strategy.mb_y.device
        )
        replayed = ~torch.isin(strategy.mb_y, present)
        self._watched = bool(replayed.any())
        if self._watched:
            self._pass.enter_context(self.lider.watch(replayed))

    def after_forward(self, strategy: Any, **kwargs: Any) -> None:
        self._pass.close()

    def before_backward(self, strategy: Any, **kwargs: Any) -> None:
        if self._watched:
            strategy.loss = strategy.loss + self.lider.penalty()
        if self._optimizer:
            self._optimizer.zero_grad()

    def after_update(self, strategy: Any, **kwargs: Any) -> None:
        if self._optimizer and self._watched:
            self._optimizer.step()
