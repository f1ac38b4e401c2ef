"""LiDER's effects beside accuracy, on the pairs of runs that `lider_gain.py` trained.

    python benchmarks/lider_side_effects.py er-ace --out runs/gain

Three claims of the paper, each measured on the final network of every finished pair (the same seed
with and without LiDER), with a paired 95 % interval:

- the memory is harder to guess: AUC of the buffer guessing game on the first task (lower is
  better);
- the network resists attacks: test accuracy under FGSM and PGD of 1/255 and 4/255 (higher is
  better);
- the minimum is flatter: rise of the training loss and fall of training accuracy under Gaussian
  noise of σ = 0.02 in all weights (lower is better).

λ on the samples in memory is measured beside them. The list was fixed before the first of these
analyses ran. Numbers and sample sizes are those of the studies at scale cpu. Results go to
`lider_side_effects.json`; analyses that it holds already are not repeated.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from liderlab.functional.statistics import paired_difference
from liderlab.paper.studies import guessing_game, lipschitz_vs_buffer, weight_perturbation

RECORDS = Path(__file__).with_suffix(".json")
SIDES = ("together", "alone")
SIGMA = 0.02


def effects(run: Path) -> dict[str, float]:
    """The numbers of one run."""
    game = guessing_game.measure(run, "cpu")
    attacked = lipschitz_vs_buffer.measure(run, "cpu")
    robust = attacked["robustness"]
    sizes = [round(255 * epsilon) for epsilon in robust["epsilons"]]
    noise = weight_perturbation.measure(run, "cpu")
    place = noise["sigmas"].index(SIGMA)
    return {
        "auc": game["auc"],
        "lambda": attacked["constants"]["mean"],
        **{
            f"{name} {size}/255": robust["accuracy"][name][sizes.index(size)]
            for name in ("fgsm", "pgd")
            for size in (1, 4)
        },
        "noise: loss": fmean(noise["loss"][place]) - fmean(noise["loss"][0]),
        "noise: accuracy": fmean(noise["accuracy"][0]) - fmean(noise["accuracy"][place]),
    }


def compared(record: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Mean paired differences, LiDER minus alone, with their intervals."""
    found = {}
    for name in next(iter(record["alone"].values()), {}):
        sides = [{int(s): run[name] for s, run in record[side].items()} for side in SIDES]
        if interval := paired_difference(*sides):
            numbers = {"mean": interval.mean, "low": interval.low, "high": interval.high}
            found[name] = numbers | {"p": interval.p, "pairs": interval.n}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("method")
    parser.add_argument("--out", type=Path, default=Path("runs/gain"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    records = json.loads(RECORDS.read_text()) if RECORDS.exists() else {}
    record = records.setdefault(arguments.method, {side: {} for side in SIDES})
    for side in SIDES:
        for result in sorted((arguments.out / arguments.method / side).glob("*/result.json")):
            seed = result.parent.name.removeprefix("seed")
            if seed not in record[side]:
                record[side][seed] = effects(result.parent)
                record["difference"] = compared(record)
                RECORDS.write_text(json.dumps(records, indent=1) + "\n")
    for name, found in record.get("difference", {}).items():
        interval = "" if found["low"] is None else f"[{found['low']:+.3f}, {found['high']:+.3f}]"
        print(f"{name:16} {found['mean']:+.3f} {interval} ({found['pairs']} pairs)")


if __name__ == "__main__":
    main()
