"""Laws that hold for methods and regularisers on every kind of stream, and with a transformer.

Every kind has a few pairs; the slow tests go through all pairs that a kind allows.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from liderlab.backbones import BACKBONES
from liderlab.backbones.vit import ViT
from liderlab.config.compatibility import why_not
from liderlab.methods import METHODS
from liderlab.registry import Entry
from liderlab.regularizers import REGULARIZERS
from liderlab.training.loop import Loop, StepDone
from liderlab.types import State
from short_options import SMALL, short_options

KINDS = ("unequal", "domains", "blurry", "noisy", "task-free", "transformer")
FEW = [
    ("transformer", "er-ace", "lider"),
    ("transformer", "der++", "star"),
    ("unequal", "x-der-rpc", None),
    ("unequal", "icarl", "lider"),
    ("domains", "er-ace", "lider"),
    ("domains", "der++", "oewc"),
    ("blurry", "er-ace", "oewc"),
    ("blurry", "gdumb", None),
    ("noisy", "icarl", None),
    ("unequal", "ncm", None),
    ("domains", "ncm", None),
    ("domains", "linear-probe", "oewc"),
    ("task-free", "ncm", None),
    ("task-free", "linear-probe", None),
    ("task-free", "er", "lider"),
    ("task-free", "er-ace", None),
    ("task-free", "der++", None),
]


def allowed(kind: str, method: str, regularizer: str | None) -> bool:
    made = METHODS.class_of(method)
    if made.new_classes and kind in ("domains", "blurry"):
        return False
    if kind == "task-free" and not made.task_free:
        return False
    if regularizer is None:
        return True
    if kind == "task-free" and REGULARIZERS.class_of(regularizer).task_by_task:
        return False
    return why_not(method, regularizer, {}) is None


ALL = [
    (kind, method, regularizer)
    for kind in KINDS
    for method in METHODS
    for regularizer in (None, *REGULARIZERS)
    if allowed(kind, method, regularizer)
]
REST = [pytest.param(*case, marks=pytest.mark.slow) for case in ALL if case not in FEW]
every_case = pytest.mark.parametrize(("kind", "method", "regularizer"), [*FEW, *REST])


def small_vit(classes: int, image_shape: tuple[int, int, int], *, width: int) -> ViT:
    return ViT(classes, image_shape, width=width, depth=2, patch=4)


def through_file(state: State) -> State:
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    loaded: State = torch.load(file, weights_only=True)
    return loaded


@every_case
def test_a_pair_trains_and_resumes_to_the_bit_on_every_stream(
    kind: str,
    method: str,
    regularizer: str | None,
    build: Callable[..., Loop],
    stream_of_kind: Callable[[str], Any],
    differences: Callable[..., list[str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """The resumed run keeps its images on disk: that changes nothing either."""
    monkeypatch.setitem(BACKBONES, "small-vit", Entry(small_vit, ""))
    streams = {"task-free": "blurry", "transformer": "plain"}
    network = {"backbone": "small-vit"} if kind == "transformer" else {}

    def new(**memory: Any) -> Loop:
        return build(
            method,
            {} if regularizer is None else {regularizer: SMALL.get(regularizer, {})},
            stream=stream_of_kind(streams.get(kind, kind)),
            seed=3,
            epochs=1,
            options=short_options(method, 2),
            task_free=kind == "task-free",
            memory=memory,
            **network,
        )

    whole = new()
    for event in whole:
        if isinstance(event, StepDone):
            assert all(value.isfinite() for value in event.terms.values())
    assert not whole.evaluation.class_incremental.diagonal()[-1].isnan()
    loop, events = new(storage="disk", folder=tmp_path / "0"), 0
    while True:
        for _ in loop:
            events += 1
            if events % 4 == 0:
                break
        else:
            break
        rows = {n: loop.memory.read(n, torch.arange(len(loop.memory))) for n in loop.memory.data}
        state = through_file(
            loop.state_dict() | {"memory": loop.memory.state_dict() | {"data": rows}}
        )
        loop = new(storage="disk", folder=tmp_path / str(events))
        loop.load_state_dict(state)
    expected, found = whole.state_dict(), loop.state_dict()
    for part in expected:
        if part != "memory":
            assert not differences(found[part], expected[part]), part
    rows = torch.arange(len(whole.memory))
    for name in whole.memory.data:
        assert torch.equal(loop.memory.read(name, rows), whole.memory.read(name, rows)), name
