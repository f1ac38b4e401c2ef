"""The paper's experiments, ready to run: `lider run --preset cifar100-500-der++-lider`.

The values are data, one file per setting beside this one, which only names them and turns each
into a layer of a configuration. No torch needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from ...errors import UserError, unknown

Tree = dict[str, Any]
LIDER = " + lider"


@dataclass(frozen=True)
class Preset:
    """A setting, a buffer size, a method, with or without LiDER.

    printed: whether the paper prints the row. sources: where a value that it does not print comes
    from, by its name in the configuration ("row": the whole row). note: what is odd about it.
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


@cache
def presets() -> dict[str, Preset]:
    """All of them by name, in the order of the paper's tables."""
    found: dict[str, Preset] = {}
    for file in ORDER:
        text = (files(__package__) / f"{file}.yaml").read_text(encoding="utf-8")
        found |= {preset.name: preset for preset in read_setting(yaml.safe_load(text))}
    return found


ORDER = (
    "cifar100",
    "cifar100-pretrained",
    "miniimagenet",
    "cub200",
    "cifar100-online",
    "cifar100-online20",
    "cifar10",
)


def preset(name: str) -> Preset:
    """The preset of that name.

    >>> preset("cifar100-500-der++-lider").config["regularizers"]["lider"]["alpha"]
    0.3
    """
    if name not in presets():
        complaint = str(unknown("preset", name, presets())).partition("Allowed:")[0]
        raise UserError(f"{complaint}See what there is with: lider list presets")
    return presets()[name]


def read_setting(data: Tree) -> Iterator[Preset]:
    """The presets of one file: its rows, and for each pair of a method without and with LiDER the
    controlled one, where the penalty is all that differs."""
    for part in ("printed", "added"):
        for buffer, rows in data[part].items():
            for label, row in rows.items():
                yield _preset(data, buffer, label, row, part == "printed")
                if label.endswith(LIDER):
                    plain = rows[label.removesuffix(LIDER)]
                    if _values(plain) != _values(row):
                        yield _controlled(data, buffer, label, plain, row)


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
    )


def _controlled(data: Tree, buffer: int | str, label: str, plain: Tree, row: Tree) -> Preset:
    """The row without LiDER, with only the penalty of the row with LiDER switched on."""
    both = {**_values(plain), "lider": row["lider"]}
    both["source"] = "derived: the method's own row, LiDER's weights from the row with LiDER"
    made = _preset(data, buffer, label, both, printed=False)
    return Preset(**{**vars(made), "name": f"{made.name}-controlled", "note": plain.get("note")})


def _config(data: Tree, buffer: int | str, method: str, row: Mapping[str, Any]) -> Tree:
    """A layer of a configuration."""
    options = {k: v for k, v in _values(row).items() if k != "lr"}
    config: Tree = {
        **data["config"],
        "training": dict(data["config"]["training"]),
        "method": {"name": method, **options},
        "regularizers": {},
    }
    if "lr" in row:
        config["training"]["lr"] = row["lr"]
    if buffer != "none":
        config["memory"] = {"size": int(buffer)}
    if "lider" in row:
        config["regularizers"] = {"lider": {**row["lider"], **data["lider"]}}
    return config


def _values(row: Mapping[str, Any]) -> Tree:
    """The row's numbers, without LiDER's and without what is said about them."""
    return {k: v for k, v in row.items() if k not in ("lider", "source", "note")}
