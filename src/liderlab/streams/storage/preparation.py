"""Bring a data set into the data folder: from its publisher, or from a local archive or folder.

All work is done in a temporary folder. The data set's own folder appears by one rename, after its
checksums (if there are any) have been compared.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from ...errors import UserError
from ...files import checksum, one_builder, remove_empty, temporary_folder
from .. import BENCHMARKS
from ..datasets.catalogue import DataSet, Layout, data_set
from ..splitting import SplitStream
from .archives import unpack
from .cache import delete_caches
from .downloads import download
from .location import cache_folder, data_folder, expanded
from .work_progress import ProgressLines, Report

DOWNLOADS = "downloads"
PARTS = {"train", "training", "val", "valid", "validation", "test", "testing"}


def prepare(
    name: str,
    root: str | Path | None = None,
    source: str | Path | None = None,
    *,
    checked: bool = True,
    report: Report | None = None,
) -> Path:
    """Return the folder of a data set, which is downloaded or imported from `source` if absent.

    checked: compare the number of images, and files with the publisher's checksums if there are
    any.
    """
    data, home, report = data_set(name), data_folder(root), report or ProgressLines()
    with one_builder(home, data.name):
        if (found := data.find(home)) is not None:
            if checked:
                _check_number(data, home, f"{found} is not complete", "remove it, or ")
            return found
        try:
            path = _get(data, home, source, checked, report)
            shutil.rmtree(home / DOWNLOADS / data.name, ignore_errors=True)
        finally:  # NAME.part of a failed download stays
            remove_empty(home / DOWNLOADS / data.name, home / DOWNLOADS)
        return path


def _get(
    data: DataSet, home: Path, source: str | Path | None, checked: bool, report: Report
) -> Path:
    """Download or import, then decode; a data set that cannot be decoded is deleted again."""
    if source is None:
        path = _download(data, home, report)
    else:
        path = _import(data, expanded(source), home, checked, report)
    try:
        decode_data_set(data, home)
        if checked:
            _check_number(data, home, f"{source or 'the download'} is not complete")
    except UserError:
        shutil.rmtree(path)
        delete_caches(path, cache_folder(home))
        remove_empty(cache_folder(home))
        raise
    return path


def _check_number(data: DataSet, home: Path, problem: str, advice: str = "") -> None:
    tasks = decode_data_set(data, home).tasks
    train, test = sum(len(task.train) for task in tasks), sum(len(task.test) for task in tasks)
    if (train, test) != (data.train, data.test):
        raise UserError(
            f"{problem}: {train:,} training and {test:,} test images instead of the "
            f"{data.train:,} and {data.test:,} of {data.title} ({advice}--unchecked skips this "
            "check)"
        )


def decode_data_set(data: DataSet, root: str | Path | None = None) -> SplitStream:
    """Build the data set's benchmark as one task, which decodes every image into the cache."""
    stream: SplitStream = BENCHMARKS.load(data.benchmark)(tasks=1, root=str(data_folder(root)))
    return stream


def _download(data: DataSet, home: Path, report: Report) -> Path:
    if not data.remotes:
        raise UserError(
            f"{data.title} has no public download with a known checksum: obtain the files, then "
            f"run `{data.command}`"
        )
    downloads = home / DOWNLOADS / data.name
    files = [download(remote, downloads, report) for remote in data.remotes]
    return _import(data, files[0] if len(files) == 1 else downloads, home, False, report)


def _import(data: DataSet, source: Path, home: Path, checked: bool, report: Report) -> Path:
    """Unpack or copy the source, check it, and move it to its place."""
    if not source.exists():
        raise UserError(f"{source} does not exist")
    if checked and source.is_file():
        _check_sums(data, source.parent, [source.name])
    with temporary_folder(home, data.name) as work:
        if source.is_file():
            unpack(source, work, report)
        layout, found = _find(data, source, work if source.is_file() else source)
        if checked:
            _check_sums(data, found, data.checksums)
        if not source.is_file():
            found = _copy(found, work / "copy", home)
        target = home / layout.folder
        if target.exists():
            raise UserError(f"{target} exists, but is not complete: remove it first")
        target.parent.mkdir(parents=True, exist_ok=True)
        os.rename(found, target)
    return target


def _find(data: DataSet, source: Path, folder: Path) -> tuple[Layout, Path]:
    """Find the data set: in its usual folder, or up to two levels down.

    An archive packed on another machine often has one folder more or less. Parts are not searched:
    a part alone is not the data set.
    """
    places = [folder]
    for layout in data.layouts:
        if layout.fits(folder / layout.folder):
            return layout, folder / layout.folder
    for _ in range(3):
        for layout in data.layouts:
            if fitting := [place for place in places if layout.fits(place)]:
                if len(fitting) > 1:
                    raise UserError(
                        f"{source} holds {data.title} twice, in {fitting[0].name} and "
                        f"{fitting[1].name}: name one of them"
                    )
                return layout, fitting[0]
        places = [child for place in places for child in _subfolders(place)]
    wanted = " or ".join(dict.fromkeys(", ".join(layout.files) for layout in data.layouts))
    raise UserError(f"there is no {data.title} in {source}: expected files like {wanted}")


def _subfolders(place: Path) -> list[Path]:
    try:
        found = sorted(child for child in place.iterdir() if child.is_dir())
        return [] if any(child.name.lower() in PARTS for child in found) else found
    except OSError:  # no permission
        return []


def _copy(folder: Path, copy: Path, home: Path) -> Path:
    if home.resolve().is_relative_to(folder.resolve()):
        raise UserError(f"the data folder {home} lies inside {folder}: choose another with --root")
    seen: set[Path] = set()

    def once(path: str, names: list[str]) -> list[str]:
        if (real := Path(path).resolve()) in seen:  # links may form a circle
            raise UserError(f"{path} leads to {real}, as another link does: remove one of them")
        seen.add(real)
        return [name for name in names if name.startswith(".")]  # such as a clone's history

    try:
        return Path(shutil.copytree(folder, copy, ignore=once))
    except shutil.Error as error:  # lists everything that failed
        path, _, reason = error.args[0][0]
        raise UserError(f"cannot copy {path}: {reason}") from None


def _check_sums(data: DataSet, folder: Path, names: Iterable[str]) -> None:
    """Compare files that have a publisher's name with the publisher's checksums."""
    for name in names:
        path, expected = folder / name, data.checksums.get(name)
        if expected and path.exists() and (got := checksum(path, "md5")) != expected:
            raise UserError(
                f"{path} has the checksum {got} instead of the publisher's {expected}: it is "
                "damaged or another file (--unchecked skips this check)"
            )
