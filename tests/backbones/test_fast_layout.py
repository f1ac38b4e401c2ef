"""The layout that speeds up convolutions, where torch's kernels are right in it."""

import subprocess
import sys
from copy import deepcopy

import pytest
import torch

from liderlab.backbones.network import Network, in_fast_layout
from liderlab.backbones.resnet import resnet18

STEP = """
import torch
from liderlab.backbones.network import Network, in_fast_layout
from liderlab.backbones.resnet import resnet18
network = in_fast_layout(Network(resnet18(10, (3, {size}, {size}), width={width})))
for _ in range(2):
    network(torch.rand(16, 3, {size}, {size})).sum().backward()
"""


@pytest.mark.parametrize(("width", "size"), [(4, 32), (8, 64), (12, 84)])
def test_a_narrow_network_trains_on_larger_images(width: int, size: int) -> None:
    """In a process of its own: the fault ends it without a traceback."""
    code = STEP.format(width=width, size=size)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("width", [4, 16])
def test_the_fast_layout_changes_neither_outputs_nor_gradients(width: int) -> None:
    plain = Network(resnet18(10, (3, 8, 8), width=width)).double()
    fast = in_fast_layout(deepcopy(plain))
    assert fast.backbone.conv1.weight.is_contiguous(memory_format=torch.channels_last)
    x = torch.rand(4, 3, 8, 8, dtype=torch.float64)
    plain(x).square().sum().backward()
    fast(x).square().sum().backward()
    torch.testing.assert_close(fast(x), plain(x))
    for (name, one), other in zip(plain.named_parameters(), fast.parameters(), strict=True):
        torch.testing.assert_close(other.grad, one.grad, msg=name)
