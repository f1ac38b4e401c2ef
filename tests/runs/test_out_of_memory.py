"""Failed allocations."""

import numpy as np
import pytest
import torch

from liderlab.errors import UserError
from liderlab.runs.out_of_memory import memory_for


@pytest.mark.parametrize(
    ("ask", "size"),
    [
        (lambda: torch.zeros(10**15), "4,000,000.0 GB"),
        (lambda: np.zeros(10**15), "7.11 PiB"),
        (lambda: torch.zeros(10**10, 10**10), "more bytes than there are"),
    ],
    ids=["torch", "numpy", "overflow"],
)
def test_a_failed_allocation_is_explained_with_its_size(ask, size) -> None:
    with pytest.raises(UserError) as refused, memory_for("a network of width 9"):
        ask()
    assert str(refused.value) == (
        f"there is not enough memory for a network of width 9: {size} were asked for"
    )


def test_a_failed_allocation_on_a_gpu_is_explained() -> None:
    with pytest.raises(UserError, match=r"20.00 GiB were asked for"), memory_for("x"):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 …")


def test_other_errors_are_raised_unchanged() -> None:
    with pytest.raises(RuntimeError, match="invalid for input"), memory_for("x"):
        torch.zeros(4).reshape(3)
