"""Get a file from a publisher's server: goes on where it broke off, and checks what came."""

from __future__ import annotations

import http.client
import os
import time
import urllib.error
import urllib.request
from pathlib import Path

from ...errors import UserError
from ..datasets.catalogue import Remote
from .folders import make_folder, md5_of
from .work_progress import Report, silent

ATTEMPTS, TIMEOUT, BLOCK = 4, 30.0, 1 << 18
DONE, PARTIAL, NOT_SATISFIABLE = 200, 206, 416


class _Broken(Exception):
    """The connection failed or ended early: worth another try."""


def download(remote: Remote, folder: Path, report: Report = silent, *, pause: float = 1.0) -> Path:
    """The file in `folder`, complete and with the right checksum, or an error and no such file.

    What has arrived is kept as NAME.part, so that the next call asks for the rest only.
    """
    target = make_folder(folder) / remote.name
    part = target.with_name(f"{target.name}.part")
    if target.is_file() and md5_of(target) == remote.md5:
        return target
    resumed = part.exists()
    _fetch(remote, part, report, pause)
    if md5_of(part) != remote.md5 and resumed:  # the old piece may be of another file
        part.unlink()
        _fetch(remote, part, report, pause)
    if (got := md5_of(part)) != remote.md5:
        part.unlink()
        raise UserError(
            f"{remote.url} has the checksum {got} instead of {remote.md5}: removed what came"
        )
    os.replace(part, target)
    return target


def _fetch(remote: Remote, part: Path, report: Report, pause: float) -> None:
    for attempt in range(ATTEMPTS):
        time.sleep(pause * attempt)
        try:
            return _fetch_rest(remote, part, report)
        except _Broken as error:
            reason = str(error)
    if part.exists() and not part.stat().st_size:
        part.unlink()
    raise UserError(
        f"cannot download {remote.url} ({reason}): try again to go on from there, or get the file "
        "elsewhere and give it with --from"
    )


def _fetch_rest(remote: Remote, part: Path, report: Report) -> None:
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(remote.url, headers={"User-Agent": "liderlab"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            have = have if response.status == PARTIAL else 0  # else it comes from the start
            total = have + int(response.headers.get("Content-Length") or 0)
            with part.open("ab" if have else "wb") as file:
                while block := response.read(BLOCK):
                    file.write(block)
                    have += len(block)
                    report(remote.name, have, total or remote.size)
    except urllib.error.HTTPError as error:
        if error.code == NOT_SATISFIABLE:
            return _nothing_left(part)
        if error.code < 500:
            raise UserError(
                f"cannot download {remote.url} ({error.code} {error.reason}): get the file "
                "elsewhere and give it with --from"
            ) from None
        raise _Broken(f"{error.code} {error.reason}") from None
    except (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError) as e:
        raise _Broken(str(getattr(e, "reason", None) or e or type(e).__name__)) from None
    if have < total:
        raise _Broken(f"broke off after {have:,} of {total:,} bytes")
    return None


def _nothing_left(part: Path) -> None:
    """The server has no more than we have: the checksum tells whether that is all of it."""
    if not part.stat().st_size:
        raise _Broken("the server sends nothing")
