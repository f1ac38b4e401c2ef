"""Paths of the ledger's files. No torch needed."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from ...errors import UserError

PACKAGE = Path(__file__).parent


@dataclass(frozen=True)
class LedgerPaths:
    """Folders: records, and pages for ledger.json, ledger.md and the figures."""

    records: Path
    pages: Path


def ledger_paths(out: Path | None) -> LedgerPaths:
    """The paths in the folder `out`; by default those of the source tree, if there is one."""
    if out is not None:
        return LedgerPaths(out / "records", out)
    root = PACKAGE.parents[3]
    if not (root / "pyproject.toml").is_file() or not (root / "docs").is_dir():
        raise UserError(
            "the committed ledger is written in a checkout of the project, and this is an "
            "installed package: choose a folder of your own with --out"
        )
    return LedgerPaths(PACKAGE / "records", root / "docs")


def read_findings() -> str:
    """The conclusions from the numbers, written by hand."""
    return (files(__package__) / "findings.md").read_text(encoding="utf-8")
