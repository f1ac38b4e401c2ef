"""Which data sets lie in the data folder, how large they are, and how to get missing ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..datasets.catalogue import DATA_SETS, IMAGE_SUFFIXES, DataSet


def data_inventory(home: Path) -> list[dict[str, Any]]:
    """One row per data set; complete: whether all of its images are there."""
    return [_row(data, data.find(home)) for data in DATA_SETS.values()]


def _row(data: DataSet, folder: Path | None) -> dict[str, Any]:
    files = [file for file in folder.rglob("*") if file.is_file()] if folder else []
    images = sum(file.suffix.lower() in IMAGE_SUFFIXES for file in files)
    return {
        "name": data.name,
        "title": data.title,
        "found": folder is not None,
        "path": None if folder is None else str(folder),
        "complete": folder is not None and (not images or images >= data.train + data.test),
        "bytes": sum(file.stat().st_size for file in files) if folder else None,
        "images": data.images,
        "licence": data.licence,
        "benchmark": data.benchmark,
        "download_bytes": data.download_bytes or None,
        "urls": [remote.url for remote in data.remotes],
        "command": data.command,
    }
