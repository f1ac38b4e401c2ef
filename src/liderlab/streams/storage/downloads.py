"""Download a file: resume where it broke off, verify its checksum."""

from __future__ import annotations

import http.client
import os
import time
import urllib.error
import urllib.request
from pathlib import Path

from ...errors import UserError
from ...files import checksum, writable_folder
from ..datasets.catalogue import Remote
from .work_progress import Report

ATTEMPTS, TIMEOUT, BLOCK = 4, 30.0, 1 << 18
PARTIAL_CONTENT, RANGE_NOT_SATISFIABLE = 206, 416
BROKEN = (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError)


def download(remote: Remote, folder: Path, report: Report, *, pause: float = 1.0) -> Path:
    """Return the path of the file in `folder`, complete and with the right checksum.

    Received bytes are kept as NAME.part, so that the next call requests only the rest. pause:
    seconds to wait before the second attempt; twice as long before the third, and so on.
    """
    target = writable_folder(folder) / remote.name
    part = target.with_name(f"{target.name}.part")
    if target.is_file() and checksum(target, "md5") == remote.md5:
        return target
    resumed = part.exists()
    _fetch(remote, part, report, pause)
    if checksum(part, "md5") != remote.md5 and resumed:  # the old piece may belong to another file
        part.unlink()
        _fetch(remote, part, report, pause)
    if (got := checksum(part, "md5")) != remote.md5:
        part.unlink()
        raise UserError(
            f"{remote.url} has the checksum {got} instead of {remote.md5}: deleted the download"
        )
    os.replace(part, target)
    return target


def _fetch(remote: Remote, part: Path, report: Report, pause: float) -> None:
    """Append to `part` until it is complete, in a few attempts."""
    for attempt in range(ATTEMPTS):
        time.sleep(pause * attempt)
        have = part.stat().st_size if part.exists() else 0
        try:
            have, total = _fetch_rest(remote, part, have, report)
            if have >= total:
                return
            reason = f"broke off after {have:,} of {total:,} bytes"
        except urllib.error.HTTPError as error:
            reason = f"{error.code} {error.reason}"
            if error.code == RANGE_NOT_SATISFIABLE and have:
                return  # nothing left to send: the checksum tells whether it is complete
            if error.code < 500 and error.code != RANGE_NOT_SATISFIABLE:
                break
        except BROKEN as error:
            reason = str(getattr(error, "reason", None) or error or type(error).__name__)
    if part.exists() and not part.stat().st_size:
        part.unlink()
    raise UserError(
        f"cannot download {remote.url} ({reason}): try again later (it resumes), or get the file "
        "elsewhere and pass it with --from"
    )


def _fetch_rest(remote: Remote, part: Path, have: int, report: Report) -> tuple[int, int]:
    """Download from byte `have` on; return the bytes received so far, and the size of the file."""
    request = urllib.request.Request(remote.url, headers={"User-Agent": "liderlab"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
        have = have if response.status == PARTIAL_CONTENT else 0  # else all of it is sent
        total = have + int(response.headers.get("Content-Length") or 0)
        with part.open("ab" if have else "wb") as file:
            while block := response.read(BLOCK):
                file.write(block)
                have += len(block)
                report(remote.name, have, total or remote.size)
    return have, total
