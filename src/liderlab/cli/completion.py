"""What the shell offers when a value is completed. Nothing heavy is imported: Tab must be quick."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from ..registry import Registry

Offer = list[tuple[str, str]]  # values, each with a few words
Completer = Callable[[str], Offer]
DEPTH, MOST_FOLDERS = 4, 2_000  # how far and how long runs are looked for


def methods(incomplete: str) -> Offer:
    from ..methods import METHODS

    return _names(METHODS)


def benchmarks(incomplete: str) -> Offer:
    from ..streams import BENCHMARKS

    return _names(BENCHMARKS)


def backbones(incomplete: str) -> Offer:
    from ..backbones import BACKBONES

    return _names(BACKBONES)


def regularizers(incomplete: str) -> Offer:
    from ..regularizers import REGULARIZERS

    return _names(REGULARIZERS)


def studies(incomplete: str) -> Offer:
    from ..paper.studies import STUDIES

    return _names(STUDIES)


def analyses(incomplete: str) -> Offer:
    """Studies that look into one run."""
    from ..paper.studies import STUDIES

    return [(name, e.summary) for name, e in STUDIES.items() if e.facts.get("analysis")]


def presets(incomplete: str) -> Offer:
    from ..config.presets import presets as every

    return [(name, "") for name in every()]


def scales(incomplete: str) -> Offer:
    from ..config.scale import SCALES

    return [(name, scale.summary) for name, scale in SCALES.items()]


def data_sets(incomplete: str) -> Offer:
    from ..streams.datasets.catalogue import DATA_SETS

    return [(data.name, data.title) for data in DATA_SETS.values()]


def weights(incomplete: str) -> Offer:
    """Names under which `lider pretrain` has kept some; files are the shell's own business."""
    from ..config.weight_names import IMAGENET, SUFFIX, kept_weights

    kept = sorted(kept_weights("*").parent.glob(f"*{SUFFIX}"))
    return [(IMAGENET, "published weights"), *((file.stem, "kept here") for file in kept)]


def one_of(*values: str) -> Completer:
    def offer(incomplete: str) -> Offer:
        return [(value, "") for value in values]

    return offer


def run_folders(incomplete: str) -> Offer:
    """Folders of runs at and below what has been typed, but not everywhere on a large disk."""
    start = incomplete.rpartition("/")[0] if "/" in incomplete else "."
    root = Path(os.path.expanduser(f"{start}/"))  # which knows no errors
    prefix = "" if start == "." and not incomplete.startswith("./") else f"{start}/"
    found = ((f"{prefix}{folder}", _state(root / folder)) for folder in _runs_below(root))
    return sorted((name, state) for name, state in found if name.startswith(incomplete))


def _runs_below(root: Path) -> Iterator[Path]:
    waiting, looked_at = [Path()], 0
    while waiting and looked_at < MOST_FOLDERS:
        here = waiting.pop(0)
        looked_at += 1
        try:
            entries = sorted(os.scandir(root / here), key=lambda entry: entry.name)
        except OSError:
            continue
        if any(entry.name == "config.yaml" for entry in entries) and here.parts:
            yield here
        elif len(here.parts) < DEPTH:
            waiting += [
                here / entry.name
                for entry in entries
                if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)
            ]


def _state(folder: Path) -> str:
    return "finished" if (folder / "result.json").is_file() else "unfinished"


def _names(registry: Registry) -> Offer:
    return [(name, entry.summary) for name, entry in registry.items()]
