"""LiDER under DDP, Fabric and `torch.compile`."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from liderlab import LiDER
from small_network import STAGES, by_hand, images, labels, network


def train_step(model: nn.Module, lider: LiDER, backward=Tensor.backward) -> dict[str, Tensor]:
    """Loss values and gradients of one step; `model` may be wrapped."""
    model.train()
    with lider.watch():
        logits = model(images())
    penalty = lider.penalty()
    backward(cross_entropy(logits, labels()) + penalty)
    return {
        "penalty": penalty.detach(),
        "constants": lider.constants,
        "targets": lider.targets.grad,
        "weights": next(model.parameters()).grad,
    }


def plain_step() -> dict[str, Tensor]:
    model = network()
    lider = LiDER(model, STAGES)
    lider.calibrate([images(8, seed=1)])
    return train_step(model, lider)


def test_under_ddp(tmp_path):
    store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        model = network()
        wrapped = nn.parallel.DistributedDataParallel(model)
        lider = LiDER(wrapped, STAGES)
        assert [name for name, _ in lider.named_parameters()] == ["targets"]
        lider.calibrate([images(8, seed=1)])
        torch.testing.assert_close(train_step(wrapped, lider), plain_step())
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.parametrize("attached", ["before", "after"])
def test_under_fabric(attached):
    from lightning_fabric import Fabric

    fabric = Fabric(accelerator="cpu", devices=1)
    model = network()
    lider = LiDER(model, STAGES) if attached == "before" else None
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    wrapped, _ = fabric.setup(model, optimizer)
    lider = lider or LiDER(wrapped, STAGES)
    lider.calibrate([images(8, seed=1)])
    torch.testing.assert_close(train_step(wrapped, lider, fabric.backward), plain_step())


@pytest.mark.parametrize(
    ("backend", "attach_to"), [("eager", "compiled"), ("aot_eager", "network")]
)
def test_under_compile(backend, attach_to):
    torch._dynamo.reset()
    model = network()
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    lider = LiDER(model if attach_to == "network" else compiled, STAGES)
    lider.calibrate([images(8, seed=1)])
    torch.testing.assert_close(train_step(compiled, lider), plain_step())
    compiled(images())  # unwatched
    model.eval()
    for seed in (1, 2):  # other values through the same graph
        with lider.watch():
            compiled(images(seed=seed))
        torch.testing.assert_close(
            lider.constants, by_hand(model, images(seed=seed)).mean(0).detach()
        )
    torch._dynamo.reset()


def test_attaching_after_compilation_is_an_error():
    torch._dynamo.reset()
    model = network()
    compiled = torch.compile(model, backend="eager")
    compiled(images())
    lider = LiDER(compiled, STAGES)  # too late
    with pytest.raises(RuntimeError, match="attach before it is compiled"), lider.watch():
        compiled(images())
    torch._dynamo.reset()
