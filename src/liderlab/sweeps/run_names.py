"""Names of a sweep's runs, made of the values that vary; each is also the name of a folder.

A value's part of the name depends on that value alone, so that a run keeps its name when the sweep
grows.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from .dotted_names import dotted

LONGEST = 120  # bytes


def value_label(key: str, value: Any) -> str:
    """One value's part of a name.

    >>> value_label("training.lr", 0.1), value_label("method", "er-ace")
    ('lr=0.1', 'er-ace')
    >>> value_label("regularizers.lider.alpha", 0.3), value_label("regularizers", {})
    ('lider.alpha=0.3', 'regularizers=none')
    """
    if key.startswith("regularizers.") and value == {}:
        return slug(key.removeprefix("regularizers."))
    if key in ("preset", "method", "benchmark", "backbone") and isinstance(value, str):
        return slug(value)
    return slug(f"{key.removeprefix('training.').removeprefix('regularizers.')}={_text(value)}")


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        items = dotted(value).items()
        return "+".join(k if v == {} else f"{k}={_text(v)}" for k, v in items) or "none"
    if isinstance(value, list):
        return "-".join(map(_text, value)) or "none"
    return value if isinstance(value, str) else json.dumps(value)


def slug(text: str) -> str:
    """Replace characters that make trouble in folder names.

    >>> slug("a b/c")
    'a-b-c'
    """
    return re.sub(r"[^\w.+=-]+", "-", text).lstrip(".-") or "-"


def joined(labels: list[str]) -> str:
    """Labels as one name; the end of a long name becomes a hash of the whole.

    >>> joined(["er", "lr=0.1", "seed=0"])
    'er,lr=0.1,seed=0'
    """
    whole = ",".join(labels).encode()
    if len(whole) <= LONGEST:
        return whole.decode()
    start = whole[:LONGEST].decode(errors="ignore")  # the cut may fall within a character
    return f"{start}~{hashlib.sha256(whole).hexdigest()[:8]}"
