"""Pydantic's findings, each in one plain sentence."""

from __future__ import annotations

from typing import get_args

from pydantic import BaseModel, ValidationError

from ..errors import unknown

PLAIN = {
    "dict_type": "expected fields and their values",
    "model_type": "expected fields and their values",
    "sequence_str": "expected a list",
}
"""Pydantic's messages mention Python types; these replace them."""


def one_sentence(error: ValidationError, model: type[BaseModel]) -> str:
    """The first mistake, its place, and the allowed values."""
    first = error.errors()[0]
    place = [str(part) for part in first["loc"]]
    if first["type"] == "extra_forbidden":
        allowed = _fields(model, place[:-1])
        kind = f"field of {'.'.join(place[:-1])}" if len(place) > 1 else "field"
        return str(unknown(kind, place[-1], allowed))
    if first["type"] == "missing":
        return f"{'.'.join(place)}: field required"
    message = PLAIN.get(first["type"], first["msg"].removeprefix("Value error, "))
    message = message[0].lower() + message[1:]
    return f"{'.'.join(place)}: {message}, but got {first['input']!r}"


def _fields(model: type[BaseModel], place: list[str]) -> list[str]:
    for name in place:
        annotation = model.model_fields[name].annotation
        for kind in (annotation, *get_args(annotation)):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                model = kind
    return list(model.model_fields)
