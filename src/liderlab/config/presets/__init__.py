"""The paper's experiments, ready to run: `lider run --preset cifar100-500-der++-lider`.

The values are data, in one file per setting. Each preset is a layer of a configuration. No torch
needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from ...errors import UserError, unknown

Tree = dict[str, Any]
LIDER = " + lider"
CONTROLLED = "derived: the method's own row, LiDER's weights from the row with LiDER"
SETTINGS = (  # in the order of the paper's tables
    *("cifar100", "cifar100-pretrained", "miniimagenet", "cub200"),
    *("cifar100-online", "cifar100-online20", "cifar10"),
    *("cifar100-online-b10", "cifar10-online-b10"),  # these four of the lab, not in the paper
    *("cifar100-vit", "cifar100-vit-lora"),
)


@dataclass(frozen=True)
class Preset:
    """A setting, a buffer size, a method, with or without LiDER.

    printed: whether the paper prints the row. sources: the origin of every value that it does not
    print, by the value's name in the configuration ("row": the whole row). note: a remark on it.
    scales: by scale, values that replace the setting's own there, beside the scale's own changes.
    """

    name: str
    setting: str
    summary: str
    method: str
    buffer: int | None
    lider: bool
    printed: bool
    config: Tree
    sources: dict[str, str] = field(default_factory=dict)
    note: str | None = None
    scales: dict[str, Tree] = field(default_factory=dict)


@cache
def presets() -> dict[str, Preset]:
    """All presets by name."""
    found: dict[str, Preset] = {}
    for setting in SETTINGS:
        text = (files(__package__) / f"{setting}.yaml").read_text(encoding="utf-8")
        found |= {preset.name: preset for preset in read_setting(yaml.safe_load(text))}
    return found


def preset(name: str) -> Preset:
    """The preset of that name.

    >>> preset("cifar100-500-der++-lider").config["regularizers"]["lider"]["alpha"]
    0.3
    """
    if name not in presets():
        message = str(unknown("preset", name, presets())).partition("Allowed:")[0]
        raise UserError(f"{message}lider list presets lists all")
    return presets()[name]


def read_setting(data: Tree) -> Iterator[Preset]:
    """The presets of one file: its rows, and for each row with LiDER a controlled preset, which
    adds that row's penalty to the row without LiDER, if the two differ in anything else. Rows that
    the authors verified later are named so."""
    for buffer, rows in data.get("verified", {}).items():
        for label, row in rows.items():
            made = _preset(data, buffer, label, row, printed=False)
            yield replace(made, name=f"{made.name}-verified")
    for part in ("printed", "added"):
        for buffer, rows in data[part].items():
            for label, row in rows.items():
                yield _preset(data, buffer, label, row, part == "printed")
                plain = rows.get(label.removesuffix(LIDER))
                if label.endswith(LIDER) and _values(plain) != _values(row):
                    mixed = {**plain, "lider": row["lider"], "source": CONTROLLED}
                    made = _preset(data, buffer, label, mixed, printed=False)
                    yield replace(made, name=f"{made.name}-controlled")


def _preset(data: Tree, buffer: int | str, label: str, row: Tree, printed: bool) -> Preset:
    method, with_lider = label.removesuffix(LIDER), label.endswith(LIDER)
    parts = [data["setting"], str(buffer), method, "lider" if with_lider else ""]
    source = {"row": row["source"]} if "source" in row else {}
    return Preset(
        name="-".join(part for part in parts if part not in ("", "none")),
        setting=data["setting"],
        summary=data["summary"],
        method=method,
        buffer=None if buffer == "none" else int(buffer),
        lider=with_lider,
        printed=printed,
        config=_config(data, buffer, method, row),
        sources=data["sources"] | source,
        note=row.get("note"),
        scales=data.get("scales", {}),
    )


def _config(data: Tree, buffer: int | str, method: str, row: Tree) -> Tree:
    """A layer of a configuration."""
    options = _values(row)
    lr = {"lr": options.pop("lr")} if "lr" in options else {}
    config = {
        **data["config"],
        "training": {**data["config"]["training"], **lr},
        "method": {"name": method, **options},
        "regularizers": {"lider": {**data["lider"], **row["lider"]}} if "lider" in row else {},
    }
    return config if buffer == "none" else {**config, "memory": {"size": int(buffer)}}


def _values(row: Tree) -> Tree:
    """The row's numbers, without LiDER's."""
    return {k: v for k, v in row.items() if k not in ("lider", "source", "note")}
