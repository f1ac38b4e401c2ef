"""Getting hold of feature maps while somebody else runs the network."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from .stages import tapped_module, unwrap

INPUT = "input"
Features = dict[str, Tensor]


class Tap:
    """A permanent forward hook, gated by its recorder.

    It holds the recorder weakly and is inert when copied or pickled: a frozen copy of the network
    must not talk to the regulariser of the original.
    """

    def __init__(self, recorder: Recorder | None, stage: str) -> None:
        self._recorder = weakref.ref(recorder) if recorder is not None else lambda: None
        self.stage = stage

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: Any = None) -> None:
        recorder = self._recorder()
        if recorder is not None and recorder.on:
            recorder.record(self.stage, args[0] if self.stage == INPUT else output)

    def __reduce__(self) -> tuple[type[Tap], tuple[None, str]]:
        return Tap, (None, self.stage)


class Recorder:
    """Records the network's input and its stages' maps, pass by pass, while `recording()`.

    A map is kept without a copy once a pass has shown that nothing alters it in place afterwards
    (as `ReLU(inplace=True)` behind a tapped BatchNorm would); until then, and where something does,
    a clone is kept.
    """

    def __init__(self) -> None:
        self.on = False
        self.passes: list[Features] = []
        self._handles: list[Any] = []
        self._untouched: set[str] = set()
        self._originals: list[tuple[str, Tensor, int]] = []

    def attach(self, network: nn.Module, stages: Sequence[str]) -> None:
        for handle in self._handles:
            handle.remove()
        inner = unwrap(network)
        self._untouched.clear()
        self._handles = [inner.register_forward_pre_hook(Tap(self, INPUT))]
        for stage in stages:
            module = tapped_module(inner, stage)
            self._handles.append(module.register_forward_hook(Tap(self, stage)))

    @contextmanager
    def recording(self) -> Iterator[list[Features]]:
        """Yields the list that the passes are recorded into."""
        if self.on:
            raise RuntimeError("Already watching: watch() does not nest.")
        self.passes, self.on = [], True
        try:
            yield self.passes
            self._look_for_changes()
        finally:
            self.passes, self._originals, self.on = [], [], False

    def record(self, stage: str, feature: Any) -> None:
        if not isinstance(feature, Tensor):
            kind = type(feature).__name__
            raise TypeError(f"Expected stage {stage!r} to give a tensor, but got {kind}.")
        if stage == INPUT:
            self.passes.append({})
        if not self.passes or stage in self.passes[-1]:
            raise RuntimeError(f"Stage {stage!r} ran outside a pass, or twice in one.")
        if feature.is_inference():  # such tensors keep no version to look at
            self.passes[-1][stage] = feature.clone()
            return
        self._originals.append((stage, feature, feature._version))
        self.passes[-1][stage] = feature if stage in self._untouched else feature.clone()

    def _look_for_changes(self) -> None:
        changed = {
            stage for stage, feature, version in self._originals if feature._version != version
        }
        if late := changed & self._untouched:
            self._untouched -= changed
            raise RuntimeError(
                f"Stage {late.pop()!r} was changed in place behind its tap for the first time: "
                "run the pass again, it is copied from now on."
            )
        self._untouched |= {stage for stage, _, _ in self._originals} - changed
