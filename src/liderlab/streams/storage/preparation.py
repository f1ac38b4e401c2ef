"""Bring a data set into the data folder: from its publisher, or from a file or folder at hand.

Everything is done in a temporary folder first. The data set's own folder appears at the end, all at
once, after its checksums (where there are any) have been compared.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from ...errors import UserError
from .. import BENCHMARKS
from ..datasets.catalogue import DataSet, Layout, data_set
from ..splitting import SplitStream
from .archives import unpack
from .cache import forget
from .downloads import download
from .folders import locked, md5_of, remove_empty, unfinished
from .location import data_folder, expanded
from .work_progress import Lines, Report

DOWNLOADS = "downloads"


def prepare(
    name: str,
    root: str | Path | None = None,
    source: str | Path | None = None,
    *,
    checked: bool = True,
    report: Report | None = None,
) -> Path:
    """The folder of a data set, which is downloaded, or imported from `source`, if need be.

    checked: compare the number of images, and single files with the publisher's checksums where
    there are any.
    """
    data, home, report = data_set(name), data_folder(root), report or Lines()
    with locked(home, data.name):
        if (found := data.find(home)) is not None:
            if checked:
                _check_number(data, home, f"{found} is not complete", "remove it, or ")
            return found
        try:
            path = _get(data, home, source, checked, report)
            shutil.rmtree(home / DOWNLOADS / data.name, ignore_errors=True)
        finally:  # a piece that the next download can go on from stays
            remove_empty(home / DOWNLOADS / data.name, home / DOWNLOADS)
        return path


def _get(
    data: DataSet, home: Path, source: str | Path | None, checked: bool, report: Report
) -> Path:
    """What cannot be used was not brought."""
    if source is None:
        path = _download(data, home, report)
    else:
        path = _bring(data, expanded(source), home, checked, report)
    try:
        decode(data, home)
        if checked:
            _check_number(data, home, f"{source or 'what came'} is not complete")
    except UserError:
        shutil.rmtree(path)
        forget(path, home)
        raise
    return path


def _check_number(data: DataSet, home: Path, complaint: str, advice: str = "") -> None:
    """All images, neither fewer nor more."""
    tasks = decode(data, home).tasks
    train, test = sum(len(task.train) for task in tasks), sum(len(task.test) for task in tasks)
    if (train, test) != (data.train, data.test):
        raise UserError(
            f"{complaint}: {train:,} training and {test:,} test images instead of the "
            f"{data.train:,} and {data.test:,} of {data.title} ({advice}--unchecked takes it as "
            "it is)"
        )


def decode(data: DataSet, root: str | Path | None = None) -> SplitStream:
    """Fill the cache, by making the data set's benchmark, and so look at every image."""
    stream: SplitStream = BENCHMARKS.load(data.benchmark)(tasks=1, root=str(data_folder(root)))
    return stream


def _download(data: DataSet, home: Path, report: Report) -> Path:
    if not data.remotes:
        raise UserError(
            f"{data.title} has no public download with a known checksum: get it where you may, and "
            f"`{data.command}`"
        )
    downloads = home / DOWNLOADS / data.name
    files = [download(remote, downloads, report) for remote in data.remotes]
    archive = len(files) == 1
    return _bring(data, files[0] if archive else downloads, home, not archive, report)


def _bring(data: DataSet, source: Path, home: Path, checked: bool, report: Report) -> Path:
    """Unpack or copy, check, and put in place."""
    if not source.exists():
        raise UserError(f"{source} does not exist")
    if checked and source.is_file():
        _check_archive(data, source)
    with unfinished(home, data.name) as work:
        if source.is_file():
            unpack(source, work, report)
        place = _look_for(data, work if source.is_file() else source)
        if place is None:
            wanted = " or ".join(dict.fromkeys(", ".join(lay.files) for lay in data.layouts))
            raise UserError(f"there is no {data.title} in {source}: expected files like {wanted}")
        layout, found = place
        if checked:
            _check_files(data, found)
        if not source.is_file():
            found = _copied(found, work / "copy", home)
        target = home / layout.folder
        if target.exists():
            raise UserError(f"{target} exists, but is not complete: remove it first")
        target.parent.mkdir(parents=True, exist_ok=True)
        os.rename(found, target)
    return target


def _copied(folder: Path, copy: Path, home: Path) -> Path:
    if home.resolve().is_relative_to(folder.resolve()):
        raise UserError(f"the data folder {home} lies inside {folder}: choose another with --root")
    try:
        return Path(shutil.copytree(folder, copy))
    except shutil.Error as error:  # a list of all that went wrong
        path, _, reason = error.args[0][0]
        raise UserError(f"cannot copy {path}: {reason}") from None


def _look_for(data: DataSet, folder: Path) -> tuple[Layout, Path] | None:
    """Where in a folder the data set is: where it should be, at the top, or up to two levels down.

    What was packed on another machine often has a folder more or less.
    """
    for layout in data.layouts:
        if layout.fits(folder / layout.folder):
            return layout, folder / layout.folder
    level = [folder]
    for _ in range(3):
        for place in level:
            for layout in data.layouts:
                if layout.fits(place):
                    return layout, place
        level = [child for place in level for child in _folders(place)]
    return None


def _folders(place: Path) -> list[Path]:
    try:
        return sorted(child for child in place.iterdir() if child.is_dir())
    except OSError:  # not ours to look into
        return []


def _check_archive(data: DataSet, archive: Path) -> None:
    """A file with the publisher's name must be the publisher's."""
    for remote in data.remotes:
        if archive.name == remote.name and (got := md5_of(archive)) != remote.md5:
            raise UserError(_differs(archive, got, remote.md5))


def _check_files(data: DataSet, folder: Path) -> None:
    for name, md5 in data.md5.items():
        if (folder / name).exists() and (got := md5_of(folder / name)) != md5:
            raise UserError(_differs(folder / name, got, md5))


def _differs(path: Path, got: str, expected: str) -> str:
    return (
        f"{path} has the checksum {got} instead of the publisher's {expected}: it is damaged or "
        "another file (--unchecked takes it as it is)"
    )
