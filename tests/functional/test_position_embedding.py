"""Resized positions: against torch's interpolation, and against the cubic kernel by hand."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import interpolate

from liderlab.functional.position_embedding import resized_positions


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def cubic(x: float, a: float = -0.5) -> float:
    """Keys' kernel."""
    x = abs(x)
    if x < 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * (x**3 - 5 * x**2 + 8 * x - 4) if x < 2 else 0.0


def cubic_matrix(old: int, new: int) -> Tensor:
    """(new, old): weights of the old places for every new one, wider where places are left out."""
    ratio = old / new
    wide = max(ratio, 1.0)
    rows = [
        [cubic((place + 0.5 - (i + 0.5) * ratio) / wide) for place in range(old)]
        for i in range(new)
    ]
    matrix = torch.tensor(rows, dtype=torch.float64)
    return matrix / matrix.sum(1, keepdim=True)


@pytest.mark.parametrize(
    ("old", "new"), [((4, 4), (7, 7)), ((8, 8), (3, 3)), ((4, 8), (6, 12)), ((1, 1), (2, 2))]
)
@pytest.mark.parametrize("prefix", [0, 1, 2])
def test_positions_are_interpolated_channel_by_channel(
    old: tuple[int, int], new: tuple[int, int], prefix: int
) -> None:
    positions = drawn(1, prefix + old[0] * old[1], 5)
    resized = resized_positions(positions, new, prefix)
    assert resized is not None
    assert torch.equal(resized[:, :prefix], positions[:, :prefix])
    down, across = cubic_matrix(old[0], new[0]), cubic_matrix(old[1], new[1])
    for channel in range(5):
        grid = positions[0, prefix:, channel].reshape(old)
        torch_says = interpolate(grid[None, None], new, mode="bicubic", antialias=True)[0, 0]
        ours = resized[0, prefix:, channel].reshape(new)
        torch.testing.assert_close(ours, torch_says, rtol=0, atol=1e-14)
        torch.testing.assert_close(ours, down @ grid @ across.T, rtol=0, atol=1e-12)


def test_the_same_grid_stays() -> None:
    positions = drawn(1, 1 + 12, 3)
    resized = resized_positions(positions, (3, 4), 1)
    assert resized is not None
    torch.testing.assert_close(resized, positions, rtol=0, atol=1e-14)


@pytest.mark.parametrize("patches", [0, 15, 8])
def test_a_number_of_patches_that_fills_no_such_grid(patches: int) -> None:
    assert resized_positions(drawn(1, 1 + patches, 3), (4, 4), 1) is None
