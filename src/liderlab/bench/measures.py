"""What `lider bench` measures, and how good it has to be."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import torch

from ..errors import unknown
from ..runs.provenance import versions
from . import timed_steps, transformer_step
from .alternation import Clock, Ratio, race
from .timed_steps import Action


@dataclass(frozen=True)
class Claim:
    """above/below is at most, or at least, a limit; None: only reported."""

    above: str
    below: str
    most: float | None = None
    least: float | None = None

    def met(self, ratio: float) -> bool | None:
        if self.most is None and self.least is None:
            return None
        return (self.most is None or ratio <= self.most) and (
            self.least is None or ratio >= self.least
        )


@dataclass(frozen=True)
class Measure:
    """Contestants of one race and what is claimed of them.

    Of the steps: `without` LiDER, with its `spatial`, `batch` or `jacobian` form, with
    `--lider-draw fresh`, and the `bare` loop of forward and backward passes and SGD. Of the
    curvature: the Fisher diagonal `row by row` and as `oewc` takes it, `olap`'s factors, one
    `forward+backward` pass.
    """

    summary: str
    make: Callable[[bool], dict[str, Action]]
    claims: Sequence[Claim]
    rounds: int = 11


def _steps(
    backbone: str, width: int, side: int, *names: str
) -> Callable[[bool], dict[str, Action]]:
    """quick: a network and images so small that only the course of things is checked."""

    def make(quick: bool) -> dict[str, Action]:
        size: dict[str, Any] = {"backbone": backbone, "width": width, "side": side}
        size |= {"width": 8, "side": 16 if side == 32 else 32, "batch": 4} if quick else {}
        return {name: _step(name, size) for name in names}

    return make


def _step(name: str, size: dict[str, Any]) -> Action:
    lider: dict[str, dict[str, Any] | None] = {
        "spatial": {},
        "batch": {"estimator": "batch"},
        "fresh": {"draw": "fresh"},
        "jacobian": {"estimator": "jacobian"},
    }
    work = timed_steps.prepared(**size, lider=lider.get(name))
    if name == "bare":
        return timed_steps.bare_step(work, size.get("batch", 64))
    return timed_steps.product_step(work)


def _lider_claims(most: float) -> list[Claim]:
    return [
        Claim("spatial", "without", most=most),
        Claim("batch", "without", most=most),
    ]


MEASURES = {
    "resnet18-64": Measure(
        "er-ace step, ResNet18 of width 64, 32x32, batch 64 + 64",
        _steps("resnet18", 64, 32, "without", "spatial", "batch", "bare"),
        [*_lider_claims(1.05), Claim("without", "bare", most=1.03)],
        rounds=31,
    ),
    "resnet18-16": Measure(
        "er-ace step, ResNet18 of width 16, 32x32, batch 64 + 64",
        _steps("resnet18", 16, 32, "without", "spatial", "batch", "bare"),
        [*_lider_claims(1.12), Claim("without", "bare", most=1.10)],
        rounds=101,
    ),
    "efficientnet-b2": Measure(
        "er-ace step, EfficientNet-B2, 84x84, batch 64 + 64",
        _steps("efficientnet-b2", 32, 84, "without", "spatial", "batch"),
        _lider_claims(1.10),
        rounds=31,
    ),
    "fresh": Measure(
        "as released, an extra draw and pass for each term; as resnet18-64",
        _steps("resnet18", 64, 32, "spatial", "fresh"),
        [Claim("fresh", "spatial", least=1.8)],
        rounds=5,
    ),
    "jacobian": Measure(
        "local constants, beyond the paper; as resnet18-16",
        _steps("resnet18", 16, 32, "without", "jacobian"),
        [Claim("jacobian", "without")],
        rounds=7,
    ),
    "tokens": Measure(
        "replay step, transformer of 4 blocks of 96 on 64 tokens, batch 64",
        lambda quick: (
            transformer_step.replay_steps(4, 8) if quick else transformer_step.replay_steps()
        ),
        [
            Claim("spatial", "without"),
            Claim("batch", "without"),
            Claim("jacobian", "without"),
        ],
        rounds=11,
    ),
    "curvature": Measure(
        "curvature of 64 rows, small convnet, 8x8",
        lambda quick: timed_steps.curvature(4 if quick else 64),
        [
            Claim("row by row", "oewc", least=10),
            Claim("olap", "forward+backward"),
        ],
        rounds=21,
    ),
    "herding": Measure(
        "20 exemplars of 500 rows, 512 features",
        lambda quick: timed_steps.herding(),
        [Claim("herding", "products")],
        rounds=21,
    ),
}


def measure(name: str, *, quick: bool = False, clock: Clock = "wall") -> dict[str, Any]:
    """The times of one measure's contestants and the ratios it is about."""
    if name not in MEASURES:
        raise unknown("measure", name, MEASURES)
    chosen = MEASURES[name]
    rounds = 2 if quick else chosen.rounds
    times = race(chosen.make(quick), rounds, clock)
    ratios = []
    for claim in chosen.claims:
        ratio = Ratio.of(times[claim.above], times[claim.below])
        met = None if quick else claim.met(ratio.value)
        ratios.append({**asdict(claim), **asdict(ratio), "met": met})
    return {
        "name": name,
        "summary": chosen.summary,
        "rounds": rounds,
        "milliseconds": {k: round(1000 * median(v), 3) for k, v in times.items()},
        "ratios": ratios,
    }


def machine(threads: int | None) -> dict[str, Any]:
    """Takes so many threads (None: as torch has it), and says where this runs."""
    torch.set_num_threads(threads or torch.get_num_threads())
    return {
        "cores": os.cpu_count(),
        **versions(),
    }


def load() -> float | None:
    """How many processes want to run, on average of the last minute; one of them is this one."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
