"""The data, first weights and software versions that a run is made from."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy
import torch

from .. import __version__
from ..config.schema import RunConfig
from ..errors import UserError
from ..streams.fingerprint import fingerprint
from ..streams.splitting import SplitStream
from ..types import State

Origin = dict[str, Any]


def origin_of(
    stream: SplitStream,
    pretrained: Mapping[str, str] | None,
    imports: Sequence[Mapping[str, str]] = (),
) -> Origin:
    """data: fingerprint, and number of training and test images of every task. pretrained: name
    and checksum of the first weights. imports: names and checksums of the imported files."""
    data = {
        "fingerprint": fingerprint(stream),
        "train": [len(task.train) for task in stream.tasks],
        "test": [len(task.test) for task in stream.tasks],
    }
    return {
        "data": data,
        "pretrained": None if pretrained is None else dict(pretrained),
        "imports": [dict(file) for file in imports],
    }


def check_origin(
    before: Mapping[str, Any], now: Origin, folder: Path, allow_changed_imports: bool = False
) -> None:
    """Refuse to resume with other data, first weights or imports than the run was begun with.

    before: the origin in the run's folder; older versions wrote none.
    """
    for part, mark in (("data", "fingerprint"), ("pretrained", "sha256")):
        old, new = before.get(part), now[part]
        if old is not None and new is not None and old[mark] != new[mark]:
            name = "data" if part == "data" else f"weights than these in {new['name']}"
            raise UserError(
                f"{folder} was begun with other {name} ({mark} {old[mark][:16]}, now "
                f"{new[mark][:16]}): bring those back, or start again in another folder"
            )
    if not allow_changed_imports and (changed := changed_imports(before, now)):
        files = " and ".join(f"{file['name']} (sha256 {file['sha256'][:16]})" for file in changed)
        raise UserError(
            f"{folder} was begun with other imports, {files}: bring those back, start again in "
            "another folder, or go on with --allow-changed-imports"
        )


def changed_imports(before: Mapping[str, Any], now: Origin) -> list[dict[str, str]]:
    """The imports of the run so far whose content is in no import of now; files may move."""
    there = {file["sha256"] for file in now["imports"]}
    return [dict(file) for file in before.get("imports", []) if file["sha256"] not in there]


def changed_fields(state: State, config: RunConfig) -> list[dict[str, Any]]:
    """The values until the checkpoint of fields that have changed since then, and its steps; empty
    if none has. Only fields on which results can depend count."""
    before = state.get("config", {})  # older versions wrote none
    now = {name: getattr(config, name) for name in ("devices", "strategy", "on_nonfinite")}
    old = {name: before[name] for name in now if before.get(name, now[name]) != now[name]}
    return [{"until_step": state["steps"], **old}] if old else []


def versions() -> dict[str, Any]:
    """Versions and hardware that floating-point results depend on."""
    return {
        "liderlab": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "platform": platform.platform(),
        "processor": processor(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
    }


def processor() -> str:
    """The CPU's model."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not Linux
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()
