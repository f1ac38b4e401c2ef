"""Notices that an optimizer trains the network, but not the targets beside it."""

from __future__ import annotations

import warnings

from torch import Tensor, nn


class TargetSteps:
    """Warns once if steps change the network's weights and leave targets with a gradient alone.

    A tensor counts its changes in place (`_version`), and a step is one: no value is compared, and
    no device is waited for.
    """

    def __init__(self) -> None:
        self._before: tuple[int, int] | None = None
        self._decided = False

    def check(self, network: nn.Module, targets: Tensor) -> None:
        """To be called once per step of training."""
        if self._decided or targets.grad is None:
            return
        now = sum(weight._version for weight in network.parameters()), targets._version
        before, self._before = self._before or now, now
        self._decided = now != before
        if now[0] != before[0] and now[1] == before[1]:
            warnings.warn(
                "LiDER's targets have a gradient, but no step of an optimizer changes them. Train "
                'them beside the network: SGD([{"params": model.parameters()}, '
                "*lider.param_groups()], ...), or keep them with learn_targets=False.",
                stacklevel=3,
            )
