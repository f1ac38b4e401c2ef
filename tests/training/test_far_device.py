"""A device that is not there: its values live on the CPU, but the rules are an accelerator's.

Tensors of the two devices do not mix (but for single numbers), and in a step no value is copied
back to the host. So the whole lab can be tried for what would fail, or wait, on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from liderlab.analysis import lipschitz_bound, lipschitz_constants
from liderlab.backbones.convnet import ConvNet
from liderlab.streams.splitting import SplitStream, on_device
from liderlab.training.events import StepDone
from liderlab.training.loop import Loop

FAR = torch.device("meta")
READS = {"_local_scalar_dense", "nonzero", "is_nonzero", "masked_select", "equal", "_unique2"}


class FarTensor(Tensor):
    """On the far device; `near` holds the values."""

    near: Tensor

    @staticmethod
    def __new__(cls, near: Tensor) -> FarTensor:
        far: FarTensor = Tensor._make_wrapper_subclass(
            cls,
            near.shape,
            strides=near.stride(),
            storage_offset=near.storage_offset(),
            dtype=near.dtype,
            device=FAR,
        )
        far.near = near
        return far

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return compute(func, args, dict(kwargs or {}), reads=True)


def compute(func: Any, args: Any, kwargs: dict[str, Any], *, reads: bool) -> Any:
    """One operation, by the rules of the two devices."""
    name = func.overloadpacket.__name__
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    far = any(isinstance(tensor, FarTensor) for tensor in tensors)
    device = kwargs.get("device")
    to_far = far if device is None else torch.device(device) == FAR
    if far and not reads and (name in READS or not to_far):
        raise AssertionError(f"the step waits for the device: {func}")
    near = [t for t in tensors if not isinstance(t, FarTensor) and t.dim() > 0]
    if far and near and name not in ("_to_copy", "copy_"):
        raise AssertionError(f"{func} mixes devices: {[tuple(t.shape) for t in near]}")
    if device is not None:
        kwargs["device"] = torch.device("cpu")
    args_near, kwargs_near = tree_map(
        lambda leaf: leaf.near if isinstance(leaf, FarTensor) else leaf, (args, kwargs)
    )
    result = func(*args_near, **kwargs_near)
    first = func._schema.arguments[0] if func._schema.arguments else None
    if first is not None and first.alias_info is not None and first.alias_info.is_write:
        return args[0]  # in place
    if not to_far:
        return result
    return tree_map(lambda leaf: FarTensor(leaf) if isinstance(leaf, Tensor) else leaf, result)


class FarDevice(TorchDispatchMode):
    """With it, `to(FAR)` and `device=FAR` work. reads: whether values may come back."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = True

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return compute(func, args, dict(kwargs or {}), reads=self.reads)


def move(module: nn.Module) -> None:
    """`module.to(FAR)`, which torch would do its own way."""
    for part in module.modules():
        for name, value in part._parameters.items():
            if value is not None:
                part._parameters[name] = nn.Parameter(FarTensor(value.data), value.requires_grad)
        for name, value in part._buffers.items():
            if value is not None:
                part._buffers[name] = FarTensor(value)


def move_loop(loop: Loop, memory: bool) -> None:
    for module in (loop.network, loop.method, *loop.regularizers):
        move(module)
    loop._device = FAR
    loop._initial = {name: FarTensor(value) for name, value in loop._initial.items()}
    if memory:
        loop.memory.device = FAR
        loop.memory.data = {n: FarTensor(c) for n, c in loop.memory.data.items()}


def train_far(loop: Loop, *, memory: bool = True, strict: bool = True) -> int:
    """The whole run on the far device; returns its steps. strict: no step reads a value."""
    move_loop(loop, memory)
    device, train_on, steps = FarDevice(), loop._train_on, 0

    def watched(*args: Any) -> Any:
        device.reads = not strict
        try:
            return train_on(*args)
        finally:
            device.reads = True

    loop._train_on = watched  # type: ignore[method-assign]
    with device:
        for event in loop:
            steps += isinstance(event, StepDone)
    return steps


@pytest.fixture(autouse=True)
def autocast_knows_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    autocast = torch.autocast

    def near(device_type: str, *args: Any, **kwargs: Any) -> Any:
        return autocast("cpu" if device_type == FAR.type else device_type, *args, **kwargs)

    monkeypatch.setattr(torch, "autocast", near)


Build = Callable[..., Loop]
NEVER = 10**9


def same_weights(far: Loop, near: Loop) -> bool:
    pairs = zip(far.network.parameters(), near.network.parameters(), strict=True)
    return all(torch.equal(f.near, n) for f, n in pairs)


@pytest.mark.parametrize("method", ["er-ace", "der++", "gmed"])
def test_a_run_on_the_device_never_waits_and_learns_the_same(build: Build, method: str) -> None:
    regularizers = {"lider": {"tol": 0.0}, "oewc": {}}
    far, near = (build(method, regularizers, epochs=1, look_every=NEVER) for _ in range(2))
    assert train_far(far) == sum(isinstance(event, StepDone) for event in near)
    assert same_weights(far, near)
    assert torch.equal(far.memory.data["x"].near, near.memory.data["x"])
    assert torch.equal(far.evaluation.class_incremental[2], near.evaluation.class_incremental[2])


@pytest.mark.parametrize("method", ["x-der-rpc", "icarl", "gdumb"])
@pytest.mark.parametrize("memory", [True, False], ids=["far memory", "near memory"])
def test_the_other_methods_do_not_mix_devices(build: Build, method: str, memory: bool) -> None:
    options = {"fit_epochs": 2} if method == "gdumb" else {}
    far, near = (build(method, epochs=1, options=options) for _ in range(2))
    train_far(far, memory=memory, strict=False)
    for _ in near:
        pass
    assert same_weights(far, near)


def test_images_on_the_device_change_nothing(build: Build, stream: SplitStream) -> None:
    with FarDevice():
        moved = on_device(stream, FAR)
        assert isinstance(moved.tasks[0].train.rows(torch.arange(2))["x"], FarTensor)
    far, near = build("er", epochs=1, stream=moved, look_every=NEVER), build("er", epochs=1)
    train_far(far)
    for _ in near:
        pass
    assert same_weights(far, near)


@pytest.mark.parametrize("analysis", [lipschitz_bound, lipschitz_constants])
def test_analyses_take_their_samples_to_the_network(analysis: Callable[..., Any]) -> None:
    with FarDevice():
        assert analysis(ConvNet(4, (3, 8, 8), width=8).to(FAR), torch.rand(2, 3, 8, 8))


def test_the_far_device_refuses_reads_and_mixed_operations() -> None:
    device = FarDevice()
    with device:
        x = torch.ones(2, 3).to(FAR)
        with pytest.raises(AssertionError, match="mixes devices"):
            x + torch.ones(2, 3)
        assert (x + torch.tensor(1.0)).sum().item() == 12
        device.reads = False
        for read in (x.sum().item, x.cpu, x.nonzero):
            with pytest.raises(AssertionError, match="waits for the device"):
                read()
