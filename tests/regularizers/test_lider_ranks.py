"""LiDER's sums over two ranks, of which the test plays the other."""

from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from liderlab.distributed.team import Team
from liderlab.regularizers.feature_recorder import joined
from liderlab.regularizers.lider import LiDER


class TwoRanks(Team):
    """Rank 0 of two; the other's next message is the next of `others`."""

    def __init__(self, *others: Tensor) -> None:
        super().__init__(0, 2)
        self.others = list(others)

    def total(self, *tensors: Tensor) -> None:
        for tensor in tensors:
            tensor += self.others.pop(0)

    def join(self, rows: Tensor, counts: object = None) -> Tensor:
        return torch.cat([rows, self.others.pop(0)])

    def agree(self, *numbers: int) -> list[int]:
        return list(numbers)


def prepared() -> tuple[nn.Module, LiDER]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3, stride=2)).double()
    lider = LiDER(model, stages=["0", "2"], alpha=0.5, beta=0.25).double()
    lider.calibrate([torch.rand(6, 3, 8, 8).double()])
    return model, lider


def test_every_pass_counts_equally_on_all_ranks_together() -> None:
    """Two passes, with 2 and 3 rows here and 1 and 4 there."""
    model, lider = prepared()
    here = torch.rand(2, 3, 8, 8).double(), torch.rand(3, 3, 8, 8).double()
    there = torch.rand(1, 3, 8, 8).double(), torch.rand(4, 3, 8, 8).double()
    mine, others = ([lider._stages.of_batch(x) for x in passes] for passes in (here, there))
    sums = [torch.cat([torch.tensor([len(o)]), o.sum(0)]) for o in others]
    lider._team = TwoRanks(torch.stack(sums))
    for x in here:
        with lider.watch():
            model(x)
    terms = lider._weighted_terms(["c_lip", "0_lip"])
    for name, weight, target in (("c_lip", 0.5, lider.targets), ("0_lip", 0.25, 0.0)):
        expected = [
            weight * (row - target).abs().mean() * 10 / (2 * rows)
            for constants, rows in zip(mine, (3, 7), strict=True)
            for row in constants
        ]
        torch.testing.assert_close(terms[name], torch.stack(expected))
    last = torch.cat([mine[1], others[1]])
    torch.testing.assert_close(lider.constants, last.mean(0).detach())


def test_a_pass_without_rows_here_counts_there() -> None:
    """Its terms have no rows, and λ for the log is the other rank's."""
    model, lider = prepared()
    lider._team = TwoRanks(torch.tensor([[2.0, 0.4, 0.6]]).double())
    with lider.watch(torch.arange(0)):
        model(torch.rand(2, 3, 8, 8).double())
    terms = lider._weighted_terms(["c_lip", "0_lip"])
    assert {name: tuple(term.shape) for name, term in terms.items()} == {
        "c_lip": (0,),
        "0_lip": (0,),
    }
    assert lider.constants.tolist() == pytest.approx([0.2, 0.3])


@pytest.mark.parametrize(("team", "shared"), [(Team(), False), (TwoRanks(), True)])
def test_two_ranks_share_their_sums(team: Team, shared: bool) -> None:
    _, lider = prepared()
    rows = torch.arange(2)
    batch = SimpleNamespace(origin="both", replayed=rows < 0, task=rows)
    step = SimpleNamespace(task=SimpleNamespace(index=1), team=team, memory=[1])
    lider.hear(batch, step)  # type: ignore[arg-type]
    assert (lider._team is team) == shared
    lider._team, lider.draw = None, "fresh"
    step.draw, step.generator = lambda generator: None, lambda name: None
    lider.losses(step)  # type: ignore[arg-type]
    assert (lider._team is team) == shared


def test_features_of_all_ranks_are_joined_map_by_map() -> None:
    mine = {"input": torch.rand(2, 3, 4, 5), "layer": torch.rand(2, 6), "last": torch.rand(2, 2, 2)}
    other = {name: torch.rand(3, *feature.shape[1:]) for name, feature in mine.items()}
    message = torch.cat([feature.flatten(1) for feature in other.values()], 1)
    found = joined(mine, TwoRanks(message))
    assert list(found) == list(mine)
    for name, feature in found.items():
        assert torch.equal(feature, torch.cat([mine[name], other[name]]))


@pytest.mark.parametrize(
    ("alpha", "beta", "active"), [(0, 0, False), (0.5, 0, True), (0, 0.5, True)]
)
def test_one_weight_is_enough_to_be_active(alpha: float, beta: float, active: bool) -> None:
    assert LiDER(alpha=alpha, beta=beta).active == active
