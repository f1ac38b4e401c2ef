"""The analysis of one finished run by a study's `measure`: `lider analyze`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import UserError
from ...methods import METHODS
from ...runs.folder import RunFolder
from . import find_study
from .cases import Case, Request
from .study_definition import Findings, FinishedCase

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def analyze_run(name: str, path: Path, scale: str) -> tuple[Findings, Figure, dict[str, Any]]:
    """The study's findings in this run alone, their figure, and the content of result.json."""
    study = find_study(name)
    assert study.measure is not None, "only studies that measure are offered"
    result = RunFolder.open(path).result()
    config = result["config"]
    method = config["method"]["name"]
    if study.needs_memory and not METHODS.class_of(method).rehearsal:
        raise UserError(f"{method} has no memory for {name} to look at")
    try:
        measured = study.measure(path, scale)
    except ValueError as error:  # an analysis that does not fit the run's network or data
        raise UserError(f"{name} cannot be computed for {path}: {error}") from None
    addition: Any = "lider" if "lider" in config["regularizers"] else ""
    case = Case(config["benchmark"]["name"], config["memory"]["size"], method, addition)
    findings = study.compute([FinishedCase(case, path, result, measured)], Request(scale))
    document = {
        "analysis": name,
        "title": study.title,
        "run": str(path),
        "scale": scale,
        "notes": findings.notes,
        "rows": findings.rows,
        "measured": measured,
    }
    return findings, study.show(findings), document
