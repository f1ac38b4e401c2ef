"""Unpack archives of strangers: nothing outside the folder, no links, no devices."""

from __future__ import annotations

import lzma
import shutil
import stat
import tarfile
import zipfile
import zlib
from pathlib import Path, PureWindowsPath

from ...errors import UserError
from .folders import enough_room
from .work_progress import Report, silent

BROKEN = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError)


def unpack(archive: Path, folder: Path, report: Report = silent) -> None:
    """A tar (plain, gz, bz2, xz) or zip into an existing folder.

    Whoever calls this unpacks into a temporary folder and throws it away if this raises.
    """
    try:
        if zipfile.is_zipfile(archive):
            _unpack_zip(archive, folder, report)
        else:
            _unpack_tar(archive, folder, report)
    except UserError:
        raise
    except BROKEN as error:
        if isinstance(error, OSError) and error.errno and not isinstance(error, EOFError):
            raise
        raise UserError(f"{archive} is not a complete tar or zip archive") from None
    except RuntimeError as error:  # zipfile's: encrypted, or packed in a way that it does not know
        raise UserError(f"{archive} cannot be unpacked: {error}") from None


def _unpack_zip(archive: Path, folder: Path, report: Report) -> None:
    with zipfile.ZipFile(archive) as file:
        members = file.infolist()
        enough_room(folder, sum(member.file_size for member in members))
        for number, member in enumerate(members, 1):
            _check_name(archive, member.filename)
            kind = stat.S_IFMT(member.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise UserError(f"{archive} holds a link or device, {member.filename!r}: refused")
            file.extract(member, folder)
            report(f"unpacking {archive.name}", number, len(members))


def _unpack_tar(archive: Path, folder: Path, report: Report) -> None:
    packed = archive.stat().st_size
    with archive.open("rb") as raw, tarfile.open(fileobj=raw) as file:
        for member in file:
            _check_name(archive, member.name)
            if member.isdir():
                (folder / member.name).mkdir(parents=True, exist_ok=True)
            else:
                _write_member(archive, file, member, folder)
            report(f"unpacking {archive.name}", min(raw.tell(), packed), packed)


def _write_member(
    archive: Path, file: tarfile.TarFile, member: tarfile.TarInfo, folder: Path
) -> None:
    """The contents alone: owners, rights and times of strangers are not taken over."""
    content = file.extractfile(member) if member.isreg() else None
    if content is None:
        raise UserError(f"{archive} holds a link or device, {member.name!r}: refused")
    enough_room(folder, member.size)
    target = folder / member.name
    target.parent.mkdir(parents=True, exist_ok=True)
    with content, target.open("wb") as out:
        shutil.copyfileobj(content, out)


def _check_name(archive: Path, name: str) -> None:
    path = PureWindowsPath(name)  # splits at / and \, and knows drives
    if path.anchor or ".." in path.parts:
        raise UserError(f"{archive} holds a path that leads out of it, {name!r}: refused")
