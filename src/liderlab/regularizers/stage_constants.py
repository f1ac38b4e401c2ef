"""The Lipschitz constants λ_k of a network's stages, between neighbouring feature maps."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import Any, Literal

import torch
from torch import Tensor, nn

from ..errors import UserError
from ..functional.jacobian import jacobian_lipschitz
from ..functional.lipschitz import Reading, batch_lipschitz, spatial_lipschitz
from . import spatial_maps
from .feature_recorder import INPUT, FeatureRecorder, Features
from .jacobian_pass import stage_maps
from .stages import default_stages, evaluating, unwrap

log = logging.getLogger("liderlab")

Estimator = Literal["spatial", "batch", "jacobian"]
ESTIMATORS = {
    "spatial": spatial_lipschitz,
    "batch": batch_lipschitz,
    "jacobian": jacobian_lipschitz,
}


class StageConstants:
    """Hooks into a network, records the maps of its stages, and estimates λ_k from them.

    stages: module names in running order; None finds them (see `LiDER`). The other arguments are
    LiDER's, too.
    """

    def __init__(
        self,
        stages: list[str] | None,
        estimator: Estimator,
        reading: Reading,
        iterations: int | None,
        tol: float,
        from_input: bool,
    ) -> None:
        self.stages, self.from_input = stages, from_input
        self.estimator, self.reading = estimator, reading
        self.iterations, self.tol = iterations, tol
        self.left_out: list[str] = []
        self._checked = False
        self._network: nn.Module | None = None
        self._recorder = FeatureRecorder()

    def attach(self, network: nn.Module, example: Tensor | None = None) -> bool:
        """Hook into a network; with an `example` input, find its stages and check them.

        Returns whether the stages are known: without an example, the first batch finds them.
        """
        self._network = network
        self._checked = False
        named = self.stages is not None
        if not named and not self._find_stages(unwrap(network), example):
            return False
        if len(set(self.chain)) < max(2, len(self.chain)):
            raise ValueError(
                f"Expected different stages (beside {INPUT!r}, the network's input, which "
                f"from_input=True adds) that make two maps or more, but got {self.stages}."
            )
        self._recorder.attach(network, self.recorded)
        if example is not None:
            self._check_maps(self._maps(example), named)
        return True

    def _find_stages(self, network: nn.Module, example: Tensor | None) -> bool:
        stages = default_stages(network, example)
        if example is not None and not stages:
            raise ValueError("Found no feature maps (n, C, H, W) in this network: name its stages.")
        if stages and not hasattr(network, "taps"):
            words = ", ".join(stages)
            log.warning("LiDER watches the stages %s; pass stages=[…] to choose.", words)
        self.stages = stages or None
        return bool(stages)

    @property
    def network(self) -> nn.Module:
        if self._network is None:
            raise RuntimeError("LiDER has no network yet: LiDER(model), or attach(model).")
        return self._network

    @property
    def chain(self) -> list[str]:
        """The maps between which λ is estimated, in order: K + 1 names for K constants."""
        stages = self.stages or []
        return [INPUT, *stages] if self.from_input else list(stages)

    @property
    def recorded(self) -> list[str]:
        """The maps to record; the Jacobian needs the input alone, for a pass of its own."""
        return [INPUT] if self.estimator == "jacobian" else self.chain

    @property
    def least(self) -> int:
        """How many samples an estimate needs."""
        return 2 if self.estimator == "batch" else 1

    def recording(self, rows: int | None = None) -> AbstractContextManager[list[Features]]:
        """The context in which passes through the network are recorded, one `Features` each, of
        the first `rows` samples (None: of all)."""
        return self._recorder.recording(rows)

    def _maps(self, x: Tensor) -> Features:
        """The maps of one pass in eval mode; without gradient, unless the estimate needs one."""
        if self.estimator == "jacobian":
            return stage_maps(self.network, self.chain, x)
        with evaluating(self.network), self._recorder.recording() as passes:
            self.network(x)
        return passes[0]

    def check(self, features: Features) -> None:
        """Refuse stages for which λ has no meaning, at the first pass that is recorded."""
        if not self._checked and self.estimator != "jacobian":
            self._check_maps(features, named=True)

    def _check_maps(self, features: Features, named: bool) -> None:
        if (ran := list(features)) != self.chain:
            raise ValueError(f"Expected stages in running order, {ran}, but got {self.chain}.")
        if self.estimator == "spatial":  # the others take maps of any shape
            shapes = {name: feature.shape[1:] for name, feature in features.items()}
            if not named:  # found, not asked for: leave out maps that cannot be regularised
                chain = spatial_maps.usable(self.chain, shapes)
                self.left_out = [stage for stage in self.chain if stage not in chain]
                self.from_input = chain[0] == INPUT
                self.stages = [stage for stage in chain if stage != INPUT]
                self._recorder.attach(self.network, self.recorded)
                log.info("LiDER watches %s", " → ".join(self.chain))
            spatial_maps.check(self.chain, shapes)
        self._checked = True

    @torch.no_grad()
    def mean(self, batches: Iterable[Any], max_samples: int | None) -> Tensor:
        """(K,) mean λ_k of samples, in eval mode; the first batch finds the stages if need be.

        batches: inputs, or tuples that begin with them. max_samples: None takes all.
        """
        total, count = torch.zeros(()), 0
        device = next(self.network.parameters(), torch.zeros(())).device
        for batch in batches:
            x = (batch[0] if isinstance(batch, (tuple, list)) else batch).to(device)
            x = x if max_samples is None else x[: max_samples - count]
            if len(x) < self.least:
                continue
            if self.stages is None:
                self.attach(self.network, x)
            # If samples are independent: in parts, whose maps stay in the processor's cache.
            parts = [x] if self.estimator == "batch" else x.split(64)
            constants = torch.cat([self.of_batch(part) for part in parts])
            total = total.to(device) + constants.mean(0) * len(x)
            count += len(x)
            if max_samples is not None and max_samples - count < self.least:
                break
        if count == 0:
            least = self.least
            raise UserError(f"Expected batches of at least {least} samples, but there was none.")
        return total / count

    def of_batch(self, x: Tensor) -> Tensor:
        """λ (n, K) of a batch, from a pass of its own."""
        features = self._maps(x)
        if not self._checked:
            self._check_maps(features, named=True)
        return self.between(features)

    def of_pass(self, features: Features) -> Tensor:
        """λ (n, K) of a recorded pass."""
        local = self.estimator == "jacobian"
        return self.of_batch(features[INPUT]) if local else self.between(features)

    def between(self, features: Features) -> Tensor:
        """λ of every stage: (n, K), one row per sample; (1, K) for the batch form."""
        on_host = features[self.chain[0]].device.type == "cpu"  # elsewhere a check of tol waits
        constants = [
            ESTIMATORS[self.estimator](
                features[before],
                features[after],
                reading=self.reading,
                iterations=self.iterations,
                tol=self.tol if on_host else 0.0,
            )
            for before, after in pairwise(self.chain)
        ]
        return torch.stack([constant.reshape(-1) for constant in constants], dim=1)
