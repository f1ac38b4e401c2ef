"""LiDER as the lab's loop uses it."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from liderlab import LiDER
from liderlab.distributed.team import Team
from liderlab.errors import UserError
from liderlab.regularizers import stage_constants
from liderlab.regularizers.lider_rows import rows_to_watch
from liderlab.types import Batch
from small_network import STAGES, by_hand, images, network


def lab_batch(slots: list[int], tasks: list[int]) -> SimpleNamespace:
    slot = torch.tensor(slots)
    return SimpleNamespace(replayed=slot >= 0, task=torch.tensor(tasks), origin="both")


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ({}, [1, 2]),
        ({"rows": "past"}, [1]),
        ({"on": "stream"}, [0, 3]),
        ({"on": "both"}, [0, 1, 2, 3]),
        ({"draw": "fresh"}, []),
        ({"alpha": 0.0, "beta": 0.0}, []),
    ],
)
def test_watches_the_chosen_rows(options, rows):
    model = network().eval()
    lider = LiDER(model, STAGES, **{"alpha": 0.2, "beta": 0.7, **options})
    lider.calibrate([images(8, seed=1)])
    step = SimpleNamespace(task=SimpleNamespace(index=1), team=Team(), memory=[1])
    with lider.hear(lab_batch([-1, 4, 0, -1], [1, 0, 1, 1]), step):
        model(images())
    terms = lider.losses(step) if options.get("draw") != "fresh" else {}
    if not rows:
        assert terms == {}
        assert isinstance(lider.hear(lab_batch([-1], [1]), step), nullcontext)
        return
    λ = by_hand(model, images())[rows]
    per_row = {
        "lider/c_lip": 0.2 * (λ - lider.targets).abs().mean(1),
        "lider/0_lip": 0.7 * λ.mean(1),
    }
    torch.testing.assert_close(terms, per_row)
    assert lider.losses(step) == {}  # paid once


@pytest.mark.parametrize(
    ("rows", "origin", "watched"),
    [
        ("all", "memory", None),
        ("past", "memory", [0, 2]),
        ("past", "both", [2]),
        ("all", "both", [1, 2]),
    ],
)
def test_rows_of_past_tasks_in_a_draw_of_the_memory(rows, origin, watched):
    slot = torch.tensor([3, 4, 5]) if origin == "memory" else torch.tensor([-1, 4, 5])
    batch = Batch(
        *[torch.zeros(3, 1)] * 2,
        y=torch.zeros(3).long(),
        task=torch.tensor([0, 1, 0]),
        slot=slot,
        view=lambda raw: raw,
        origin=origin,
    )
    step = SimpleNamespace(task=SimpleNamespace(index=1), team=Team(), memory=[1])
    found, which = rows_to_watch(batch, step, "replay", rows)
    assert found
    assert (which if which is None else which.tolist()) == watched


def test_terms_of_several_passes_average_them():
    model = network().eval()
    lider = LiDER(model, STAGES, alpha=0.2, beta=0.7)
    lider.calibrate([images(8, seed=1)])
    for n in (5, 2):
        with lider.watch():
            model(images(n, seed=n))
    expected = lider.terms()
    per_row = lider.losses(SimpleNamespace())
    assert all(term.shape == (7,) for term in per_row.values())
    torch.testing.assert_close(
        {name: per_row[f"lider/{name}"].mean() for name in expected}, expected
    )


def test_readings_name_lambda_and_target_of_every_stage():
    model = network().eval()
    lider = LiDER(model, STAGES)
    lider.calibrate([images(8, seed=1)])
    with lider.watch():
        model(images())
    λ = by_hand(model, images()).mean(0)
    assert lider.readings() == pytest.approx(
        {
            "lider/λ/1": λ[0].item(),
            "lider/c/1": lider.targets[0].item(),
            "lider/λ/3": λ[1].item(),
            "lider/c/3": lider.targets[1].item(),
        }
    )
    assert LiDER(model, STAGES, alpha=0.0, beta=0.0).readings() == {}


@pytest.mark.parametrize("draw", ["reuse", "fresh"])
def test_a_run_learns_the_targets(build, draw):
    loop = build("er", {"lider": {"alpha": 0.5, "beta": 0.1, "draw": draw}})
    (lider,), events = loop.regularizers, iter(loop)
    assert "lider/c_lip" not in next(events).terms  # the memory is empty
    assert lider.calibrated
    start = lider.targets.detach().clone()
    assert {"lider/c_lip", "lider/0_lip"} <= set(next(events).terms)
    assert not torch.equal(lider.targets, start)


@pytest.mark.parametrize("changed", [{"on": "stream"}, {"rows": "past"}])
def test_fresh_draws_watch_all_drawn_rows_or_are_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="draw='fresh' draws from the memory"):
        LiDER(draw="fresh", **changed)


@pytest.mark.parametrize("on", ["stream", "both"])
def test_past_rows_are_replayed_rows(on: Any) -> None:
    with pytest.raises(UserError, match=f"rows='past' chooses .* but got on='{on}'"):
        LiDER(on=on, rows="past")


def test_a_state_for_unknown_stages_is_one_sentence() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3, stride=2))
    saved = LiDER(model)
    saved.calibrate([torch.rand(4, 3, 8, 8)])
    for holder in (LiDER(model), nn.ModuleList([LiDER(model)])):
        inside = isinstance(holder, nn.ModuleList)
        state = {f"0.{k}" if inside else k: v for k, v in saved.state_dict().items()}
        with pytest.raises(UserError, match="know the stages before a state is loaded"):
            holder.load_state_dict(state)
    known = LiDER()
    known.attach(model, torch.rand(2, 3, 8, 8))
    known.load_state_dict(saved.state_dict())
    assert torch.equal(known.targets, saved.targets)


def test_the_tolerance_is_checked_on_the_host_alone(monkeypatch) -> None:
    """Elsewhere every look would wait for the device."""
    seen: list[float] = []

    def estimate(before: Tensor, after: Tensor, *, tol: float, **_: Any) -> Tensor:
        seen.append(tol)
        return torch.zeros(len(before))

    monkeypatch.setitem(stage_constants.ESTIMATORS, "spatial", estimate)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3, stride=2))
    made = LiDER(model, stages=["0", "2"], tol=1e-3)
    for device, expected in (("cpu", 1e-3), ("meta", 0.0)):
        maps = {name: torch.zeros(2, 3, 8, 8, device=device) for name in made.chain}
        made._stages.between(maps)
        assert seen == [expected] * 2
        seen.clear()
