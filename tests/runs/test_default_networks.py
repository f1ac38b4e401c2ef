"""Every benchmark's default network works with LiDER by one switch."""

from typing import Any

import pytest
import torch

from liderlab.config.merging import make_config
from liderlab.runs.build import build, completed
from liderlab.streams import BENCHMARKS
from liderlab.streams.splitting import Images, split
from liderlab.training.loop import StepDone


@pytest.mark.parametrize("name", BENCHMARKS)
def test_lider_works_with_the_default_network(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a few random images of the benchmark's shape, and narrower: no data needed."""
    shape = [int(side) for side in BENCHMARKS[name].facts["image"].split("x")]
    pixels = torch.randint(0, 256, (8, *shape), generator=torch.Generator().manual_seed(0))
    images = Images(pixels.to(torch.uint8), torch.arange(8) % 4)
    stream = split(images, images, tasks=2)
    monkeypatch.setattr("liderlab.runs.build.benchmark_stream", lambda config: stream)
    tree: dict[str, Any] = {
        "benchmark": {"name": name, "tasks": 2},
        "backbone": {"width": 16},
        "regularizers": {"lider": {}},
        "memory": {"size": 4},
        "training": {"epochs": 1, "batch_size": 2, "milestones": []},
        "threads": 1,
    }
    loop = build(completed(make_config(tree))).loop
    terms = next(
        event.terms
        for event in loop
        if isinstance(event, StepDone) and "lider/c_lip" in event.terms
    )
    assert torch.isfinite(torch.as_tensor(terms["lider/c_lip"]))


def test_a_choice_of_the_user_stays() -> None:
    tree = {"backbone": "mlp", "regularizers": {"lider": {"estimator": "jacobian"}}}
    assert completed(make_config(tree)).regularizers["lider"]["estimator"] == "jacobian"
    tree = {"backbone": "mlp", "regularizers": {"lider": {}}}
    assert completed(make_config(tree)).regularizers["lider"]["estimator"] == "batch"
