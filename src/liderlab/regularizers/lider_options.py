"""LiDER's options that are choices, and the combinations of options that cannot work."""

from __future__ import annotations

from typing import Any, Literal

from ..errors import UserError, check_numbers, unknown

Weights = Literal["paper", "swapped"]
On = Literal["replay", "stream"]
Rows = Literal["all", "past"]
Draw = Literal["reuse", "fresh"]

CHOICES = {
    "estimator": ("spatial", "batch", "jacobian"),
    "reading": ("singular", "eigenvalue"),
    "weights": ("paper", "swapped"),
    "on": ("replay", "stream"),
    "rows": ("all", "past"),
    "draw": ("reuse", "fresh"),
}


def check_options(stages: Any, **given: Any) -> None:
    """Refuse an option of LiDER, or a combination of them, in one sentence."""
    for name, allowed in CHOICES.items():
        if given[name] not in allowed:
            raise unknown(name, str(given[name]), allowed)
    check_numbers(**{name: given[name] for name in ("alpha", "beta", "tol")}, at_least=0)
    check_numbers(target_lr=given["target_lr"], at_least=0, at_most=1e38)  # float32
    check_numbers(iterations=given["iterations"], at_least=1, whole=True)
    on, rows = given["on"], given["rows"]
    if given["draw"] == "fresh" and (on, rows) != ("replay", "all"):
        raise UserError(
            "draw='fresh' draws from the memory and watches all drawn rows: it goes with "
            f"on='replay' and rows='all', but got on={on!r} and rows={rows!r}."
        )
    if (on, rows) == ("stream", "past"):
        raise UserError(
            "rows='past' chooses among replayed rows, as the stream has the current task's "
            "alone: it goes with on='replay', but got on='stream'."
        )
    if isinstance(stages, str):
        raise ValueError(f"Expected a list of stages, [{stages!r}], but got {stages!r}.")
