"""LiDER's options that are choices, and the combinations of options that cannot work."""

from __future__ import annotations

from typing import Any, Literal, get_args

from ..errors import UserError, check_numbers, unknown
from ..functional.lipschitz import Reading
from .stage_constants import Estimator

Weights = Literal["paper", "swapped"]
On = Literal["replay", "stream", "both"]
Rows = Literal["all", "past"]
Draw = Literal["reuse", "fresh"]
Order = Literal["c-0", "0-c"]
Calibrate = Literal["start", "first-task"]
CalibrationData = Literal["fit", "task"]

CHOICES = {
    "estimator": Estimator,
    "reading": Reading,
    "weights": Weights,
    "on": On,
    "rows": Rows,
    "draw": Draw,
    "order": Order,
    "calibrate": Calibrate,
    "calibration_data": CalibrationData,
}


def check_options(stages: Any, **given: Any) -> None:
    """Refuse an option of LiDER, or a combination of them, in one sentence."""
    for name, choices in CHOICES.items():
        if given[name] not in (allowed := get_args(choices)):
            raise unknown(name, str(given[name]), allowed)
    check_numbers(**{name: given[name] for name in ("alpha", "beta", "tol")}, at_least=0)
    check_numbers(target_lr=given["target_lr"], at_least=0, at_most=1e38)  # float32
    counts = {name: given[name] for name in ("iterations", "calibration_rows", "rows_at_most")}
    check_numbers(**counts, at_least=1, whole=True)
    on, rows = given["on"], given["rows"]
    if given["draw"] == "fresh" and (on, rows) != ("replay", "all"):
        raise UserError(
            "draw='fresh' draws from the memory and watches all drawn rows: it goes with "
            f"on='replay' and rows='all', but got on={on!r} and rows={rows!r}."
        )
    if given["estimator"] == "batch" and given["rows_at_most"] == 1:
        raise UserError("The batch form compares rows with each other: it needs rows_at_most ≥ 2.")
    if rows == "past" and on != "replay":
        raise UserError(
            "rows='past' chooses among replayed rows, as the stream has the current task's "
            f"alone: it goes with on='replay', but got on={on!r}."
        )
    if given["control"] and (given["draw"] != "fresh" or given["alpha"] == given["beta"] == 0):
        raise UserError(
            "control makes the passes of draw='fresh' for every term of a weight above 0, and "
            "leaves out the terms: choose draw='fresh' and such a weight."
        )
    if isinstance(stages, str):
        raise ValueError(f"Expected a list of stages, [{stages!r}], but got {stages!r}.")
