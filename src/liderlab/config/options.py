"""The options of a method, backbone, benchmark or regulariser: its constructor's arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

from pydantic import ConfigDict, ValidationError, create_model

from ..errors import UserError
from .messages import one_sentence

SUPPLIED = {
    "benchmark": {"tasks", "class_order"},
    "method": set(),
    "backbone": {"classes", "image_shape"},
    "regularizer": {"model"},
    "optimizer": set(),
    "schedule": {"epochs", "milestones", "gamma"},
}
"""Arguments that are not options: a run fills them in."""


def complete(
    target: Callable[..., Any], given: Mapping[str, Any], owner: str, kind: str
) -> dict[str, Any]:
    """Check options against the signature of their target, and add its defaults.

    >>> def thing(classes: int, *, width: int = 32) -> None: ...
    >>> complete(thing, {}, "thing", "backbone")
    {'width': 32}
    """
    function = target.__init__ if inspect.isclass(target) else target
    hints = get_type_hints(function)
    parameters = inspect.signature(function).parameters.values()
    fields: dict[str, Any] = {
        parameter.name: (hints[parameter.name], parameter.default)
        for parameter in parameters
        if parameter.name not in SUPPLIED[kind] | {"self"}
        and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    }
    model = create_model("Options", __config__=ConfigDict(extra="forbid"), **fields)
    try:
        return model.model_validate(dict(given)).model_dump()
    except ValidationError as error:
        if not fields:
            raise UserError(f"{owner} takes no options, but got {next(iter(given))!r}") from None
        raise UserError(f"{owner}: {one_sentence(error, model)}") from None
