"""Values that the shell offers on Tab. Imports nothing heavy, because Tab must be quick."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

Offer = list[tuple[str, str]]  # values, each with a few words
Completer = Callable[[str], Offer]
DEPTH, MOST_FOLDERS = 4, 2_000  # limits of the search for run folders


def one_of(*values: str) -> Completer:
    return lambda incomplete: [(value, "") for value in values]


def _registered(module: str, registry: str) -> Completer:
    """The names of a registry, which is imported when they are asked for."""

    def offer(incomplete: str) -> Offer:
        entries = getattr(import_module(f"..{module}", __package__), registry)
        return [(name, entry.summary) for name, entry in entries.items()]

    return offer


methods = _registered("methods", "METHODS")
benchmarks = _registered("streams", "BENCHMARKS")
backbones = _registered("backbones", "BACKBONES")
regularizers = _registered("regularizers", "REGULARIZERS")
studies = _registered("paper.studies", "STUDIES")
scales = _registered("config.scale", "SCALES")


def analyses(incomplete: str) -> Offer:
    """Studies that analyse one run."""
    from ..paper.studies import STUDIES

    return [(name, e.summary) for name, e in STUDIES.items() if e.facts.get("analysis")]


def presets(incomplete: str) -> Offer:
    from ..config.presets import presets

    return [(name, "") for name in presets()]


def data_sets(incomplete: str) -> Offer:
    from ..streams.datasets.catalogue import DATA_SETS

    return [(data.name, data.title) for data in DATA_SETS.values()]


def weights(incomplete: str) -> Offer:
    """Names of weights that `lider pretrain` has kept; the shell completes files itself."""
    from ..config.weight_names import IMAGENET, SUFFIX, kept_weights

    kept = sorted(kept_weights("*").parent.glob(f"*{SUFFIX}"))
    return [(IMAGENET, "published weights"), *((file.stem, "kept here") for file in kept)]


def run_folders(incomplete: str) -> Offer:
    """Run folders at and below the typed path, within limits of depth and number."""
    start = incomplete.rpartition("/")[0] if "/" in incomplete else "."
    root = Path(os.path.expanduser(f"{start}/"))  # raises no error for an unknown user
    prefix = "" if start == "." and not incomplete.startswith("./") else f"{start}/"
    found = ((f"{prefix}{folder}", _state(root / folder)) for folder in _runs_below(root))
    return sorted((name, state) for name, state in found if name.startswith(incomplete))


def _runs_below(root: Path) -> Iterator[Path]:
    waiting, visited = [Path()], 0
    while waiting and visited < MOST_FOLDERS:
        here = waiting.pop(0)
        visited += 1
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
