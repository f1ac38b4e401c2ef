"""The demo: what forgetting is, what rehearsal does about it, and what LiDER adds."""

from __future__ import annotations

from collections.abc import Iterator

from .merging import make_config
from .schema import RunConfig

ROWS: dict[str, dict[str, object]] = {
    "finetune": {"method": "finetune"},
    "er-ace": {"method": "er-ace"},
    "er-ace + LiDER": {"method": "er-ace", "regularizers": {"lider": {}}},
    "joint": {"method": "joint"},
}


def demo_runs(seeds: int) -> Iterator[tuple[str, RunConfig]]:
    """Each row of the demo's table, over several seeds, on the embedded benchmark."""
    for label, choice in ROWS.items():
        for seed in range(seeds):
            yield label, make_config(choice, {"memory": {"size": 50}, "seed": seed, "threads": 1})
