"""Recording feature maps while other code runs the network."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from .stages import last_linear, tapped_module, unwrap

if TYPE_CHECKING:
    from ..distributed.team import Team

INPUT = "input"
FEATURES = "features"
"""The input of the last linear layer, before a dropout that sSGD hooks there."""
Features = dict[str, Tensor]


class Tap:
    """A permanent forward hook that records while its recorder is on.

    It holds the recorder weakly, and a copied or pickled hook has none: a frozen copy of the
    network must not reach the regulariser of the original.
    """

    def __init__(self, recorder: FeatureRecorder | None, stage: str) -> None:
        self._recorder = weakref.ref(recorder) if recorder is not None else lambda: None
        self.stage = stage

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: Any = None) -> None:
        recorder = self._recorder()
        if recorder is None or not recorder.on:
            return
        if self.stage == INPUT:
            recorder.begin(args)
        else:
            recorder.record(self.stage, args[0] if self.stage == FEATURES else output)

    def __reduce__(self) -> tuple[type[Tap], tuple[None, str]]:
        return Tap, (None, self.stage)


class FeatureRecorder:
    """Records the maps of a chain of stages, pass by pass, while `recording()`.

    Maps are cloned, because a layer behind a tap may work in place (`ReLU(inplace=True)` after a
    BatchNorm). That takes under 1% of a ResNet18's training step.
    """

    def __init__(self) -> None:
        self.on = False
        self._chain: list[str] = []
        self._passes: list[Features] = []
        self._rows: int | None = None
        self._handles: list[RemovableHandle] = []

    def attach(self, network: nn.Module, chain: Sequence[str]) -> None:
        """Record these stages, and no earlier ones any more; INPUT may be the first, FEATURES the
        last."""
        inner = unwrap(network)
        own = (INPUT, FEATURES)
        modules = {stage: tapped_module(inner, stage) for stage in chain if stage not in own}
        for handle in self._handles:
            handle.remove()
        self._chain = list(chain)
        self._handles = [inner.register_forward_pre_hook(Tap(self, INPUT))]  # a pass begins
        for stage, module in modules.items():
            self._handles.append(module.register_forward_hook(Tap(self, stage)))
        if FEATURES in chain:
            if (classifier := last_linear(inner)) is None:
                raise ValueError("Found no trained linear layer, whose input are the features.")
            tap = Tap(self, FEATURES)
            self._handles.append(classifier.register_forward_pre_hook(tap, prepend=True))

    @contextmanager
    def recording(self, rows: int | None = None) -> Iterator[list[Features]]:
        """Yield the list that the passes are recorded into; refuse incomplete passes, or none.

        rows: only the first so many samples of every pass; None: all.
        """
        if self.on:
            raise RuntimeError("Already watching: watch() does not nest.")
        self._passes, self._rows, self.on = [], rows, True
        try:
            yield self._passes
            self._check_passes()
        finally:
            self._passes, self.on = [], False

    def begin(self, args: tuple[Any, ...]) -> None:
        """A pass begins: the network is called."""
        self._passes.append({})
        if INPUT in self._chain:
            self.record(INPUT, args[0] if args else None)

    def record(self, stage: str, feature: Any) -> None:
        if not isinstance(feature, Tensor):
            kind = type(feature).__name__
            hint = " as the first argument" if stage == INPUT else ""
            raise TypeError(f"Expected a tensor from {stage!r}{hint}, but got {kind}.")
        if not self._passes or stage in self._passes[-1]:
            raise RuntimeError(
                f"Stage {stage!r} ran outside a call of the network, or twice in one."
            )
        self._passes[-1][stage] = feature[: self._rows].clone()

    def _check_passes(self) -> None:
        if not self._passes:
            raise RuntimeError(
                "No pass was recorded while watching: run the network inside, attach before it is "
                "compiled, and attach anew to a copy."
            )
        for features in self._passes:
            if missing := [stage for stage in self._chain if stage not in features]:
                raise RuntimeError(f"Stage {missing[0]!r} did not run in this pass: is it in use?")


def joined(features: Features, team: Team) -> Features:
    """The features of all ranks, with gradient, in one message."""
    maps = [feature.flatten(1) for feature in features.values()]
    parts = team.join(torch.cat(maps, 1)).split([part.shape[1] for part in maps], 1)
    shapes = {name: feature.shape[1:] for name, feature in features.items()}
    return {
        name: part.reshape(len(part), *shape)
        for (name, shape), part in zip(shapes.items(), parts, strict=True)
    }
