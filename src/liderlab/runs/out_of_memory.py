"""Failed allocations, explained in one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import UserError

ASKED = re.compile(r"allocate ([\d.]+) (bytes|[KMGTPE]iB)")  # torch's and numpy's words
TOO_MANY = "Storage size calculation overflowed"  # more than 2⁶³ bytes


@contextmanager
def memory_for(what: str) -> Iterator[None]:
    """Name the object that did not fit into memory."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if (size := asked_for(error)) is None:
            raise
        raise UserError(f"there is not enough memory for {what}: {size} were asked for") from None


def asked_for(error: RuntimeError | MemoryError) -> str | None:
    """The size of a failed allocation; None if the error is of another kind.

    >>> asked_for(RuntimeError("DefaultCPUAllocator: you tried to allocate 6400000000 bytes."))
    '6.4 GB'
    """
    if match := ASKED.search(str(error)):
        number, unit = match.groups()
        return f"{float(number) / 1e9:,.1f} GB" if unit == "bytes" else f"{number} {unit}"
    if TOO_MANY in str(error) or isinstance(error, MemoryError):
        return "more bytes than there are"
    return None
