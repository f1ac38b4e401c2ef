"""Unpack downloaded archives safely: nothing outside the folder, no links, no devices.

Python 3.11.2's tarfile has no extraction filters; those of later versions allow links.
"""

from __future__ import annotations

import lzma
import shutil
import stat
import tarfile
import zipfile
import zlib
from errno import EINVAL
from pathlib import Path, PureWindowsPath

from ...errors import UserError
from ...files import check_free_space
from .work_progress import Report

BROKEN = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError)


def unpack(archive: Path, folder: Path, report: Report) -> None:
    """Unpack a tar (plain, gz, bz2, xz) or zip into an existing folder.

    After an error the folder holds some of the files: the caller deletes it. Owners, permissions
    and times in the archive are ignored.
    """
    try:
        (_unpack_zip if zipfile.is_zipfile(archive) else _unpack_tar)(archive, folder, report)
    except BROKEN as error:
        if getattr(error, "errno", None) not in (None, EINVAL):  # the disk's, not the archive's
            raise
        raise UserError(f"{archive} is not a complete tar or zip archive") from None
    except RuntimeError as error:  # zipfile's: encrypted, or an unknown compression method
        raise UserError(f"{archive} cannot be unpacked: {error}") from None


def _unpack_zip(archive: Path, folder: Path, report: Report) -> None:
    with zipfile.ZipFile(archive) as file:
        members = file.infolist()
        check_free_space(folder, sum(member.file_size for member in members))
        for number, member in enumerate(members, 1):
            kind = stat.S_IFMT(member.external_attr >> 16)
            _check(archive, member.filename, kind in (0, stat.S_IFREG, stat.S_IFDIR))
            file.extract(member, folder)
            report(f"unpacking {archive.name}", number, len(members))


def _unpack_tar(archive: Path, folder: Path, report: Report) -> None:
    packed = archive.stat().st_size
    with archive.open("rb") as raw, tarfile.open(fileobj=raw) as file:
        for member in file:
            _check(archive, member.name, member.isreg() or member.isdir())
            target = folder / member.name
            (target if member.isdir() else target.parent).mkdir(parents=True, exist_ok=True)
            if content := file.extractfile(member):
                check_free_space(folder, member.size)
                with content, target.open("wb") as out:
                    shutil.copyfileobj(content, out)
            report(f"unpacking {archive.name}", min(raw.tell(), packed), packed)


def _check(archive: Path, name: str, plain: bool) -> None:
    """Refuse paths that leave the folder; `plain` is false for links and devices."""
    path = PureWindowsPath(name)  # splits at / and \, and knows drives
    if path.anchor or ".." in path.parts:
        raise UserError(f"{archive} holds a path that leads out of it, {name!r}: refused")
    if not plain:
        raise UserError(f"{archive} holds a link or device, {name!r}: refused")
