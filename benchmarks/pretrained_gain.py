"""LiDER's gain with a pre-trained network: Split CUB-200, ImageNet weights, 400 samples.

    python benchmarks/pretrained_gain.py --out runs/pretrained-gain     # resumes what is unfinished

At the scale `cpu` of the setting cub200 (EfficientNet-Lite0, 96x96, 4 epochs), for each seed:

1. ER-ACE and DER++ alone, with the learning rate and weights that the paper prints for CUB-200;
2. both with LiDER, all other values as before (controlled), with the printed α and β, and with
   STRONGER times as much: 4 epochs are 12.5 times fewer than the paper's 50, and the ledger's
   stronger runs on CIFAR-100 follow the same rule;
3. the linear probe, with ER-ACE's learning rate and memory.

NCM has no random part and runs once, first. Nothing is tuned here: the learning rates are those of
the paper's ResNet50. Compared are the final average accuracies on the test images, paired by seed,
with 95 % intervals; each run is evaluated once, at its end. Seeds come one after the other, so that
a record that is not complete holds whole pairs. `pretrained_gain.json` holds the results so far and
the runs that are missing; the script adds to it.

The plan was committed before its first run of a trained method; NCM, which has nothing to choose,
had been run before. The script needs CUB-200 (`lider data prepare cub200`), the extra `lite0`, and
about ten hours of one core; a run takes one thread.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from lider_gain import column, lider, numbers, settings
from liderlab.config.presets import preset
from liderlab.functional.statistics import paired_difference

SEEDS = [0, 1, 2]
STRONGER = 12.5
RECORDS = Path(__file__).with_suffix(".json")
METHODS = ("er-ace", "der++")
COMPARED = ("faa", "memory", "gap")
Run = tuple[str, dict[str, Any]]


def variants() -> dict[str, Run]:
    """Preset and further values of every run, by label."""
    runs: dict[str, Run] = {}
    for method in METHODS:
        alone, together = f"cub200-400-{method}", f"cub200-400-{method}-lider-controlled"
        printed = preset(together).config["regularizers"]["lider"]
        weights = {f"regularizers.lider.{k}": STRONGER * printed[k] for k in ("alpha", "beta")}
        runs |= {
            method: (alone, {}),
            f"{method} + lider": (together, {}),
            f"{method} + stronger lider": (together, weights),
        }
    return runs | {"linear-probe": ("cub200-400-er-ace", {"method.name": "linear-probe"})}


def plan() -> list[tuple[str, int, Run]]:
    """Every run, in order: label, seed, preset and values."""
    first = ("ncm", SEEDS[0], ("cub200-400-er-ace", {"method.name": "ncm"}))
    return [first, *((label, seed, run) for seed in SEEDS for label, run in variants().items())]


def tested(run: Run, seed: int, folder: Path) -> dict[str, Any]:
    """The final numbers of one run on the test images."""
    if not (folder / "result.json").exists():
        options = ["--scale", "cpu", "--seed", str(seed), "--resume", "--out", str(folder)]
        name, values = run
        lider("run", "--preset", name, *options, *settings({"evaluate": "last"} | values))
    return final(json.loads((folder / "result.json").read_text()))


def final(result: dict[str, Any]) -> dict[str, Any]:
    """FAA, accuracy on the memory and the gap to it (None without a memory), processor time."""
    scores = result["class_incremental"]
    if None in scores["memory_accuracy"][-1]:
        return {"faa": scores["faa"], "cpu_seconds": result["seconds_cpu"]}
    kept = numbers(result)
    return {name: kept[name] for name in (*COMPARED, "cpu_seconds")}


def found(runs: dict[str, Any], label: str, seed: int) -> bool:
    return str(seed) in runs.get(label, {})


def gains(runs: dict[str, Any]) -> dict[str, Any]:
    """Mean differences over the pairs so far, with 95 % intervals."""
    differences: dict[str, Any] = {}
    for method in METHODS:
        for label in (f"{method} + lider", f"{method} + stronger lider"):
            for name in COMPARED:
                sides = [column(runs.get(side, {}), name) for side in (label, method)]
                if interval := paired_difference(*sides):
                    differences.setdefault(label, {})[name] = {
                        "mean": interval.mean,
                        "low": interval.low,
                        "high": interval.high,
                        "pairs": len(sides[0].keys() & sides[1].keys()),
                    }
    return differences


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("runs/pretrained-gain"))
    out = parser.parse_args().out
    record = json.loads(RECORDS.read_text()) if RECORDS.exists() else {}
    runs = record.setdefault("runs", {})
    for label, seed, run in plan():
        if not found(runs, label, seed):
            numbers_of = tested(run, seed, out / label.replace(" ", "") / f"seed{seed}")
            runs.setdefault(label, {})[str(seed)] = numbers_of
        record["missing"] = [f"{name} seed{s}" for name, s, _ in plan() if not found(runs, name, s)]
        record["gain"] = gains(runs)
        RECORDS.write_text(json.dumps(record, indent=1) + "\n")
    for label, by_name in record["gain"].items():
        gain = by_name["faa"]
        print(f"{label:24} {gain['mean']:+.2f} [{gain['low']:+.2f}, {gain['high']:+.2f}]")


if __name__ == "__main__":
    main()
