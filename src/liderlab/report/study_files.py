"""A study's findings as files: JSON, CSV, Markdown and figures."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..analysis.figure_style import add_heading, save_figure
from ..files import write_atomically, write_errors
from ..paper.studies.single_run_analysis import analyze_run
from ..paper.studies.study_definition import Findings, Row, TableColumn
from .formatting import markdown_table, mean_std, with_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..paper.studies.study_execution import CompletedStudy

FILES = ("result.json", "table.csv", "table.md", "figure.png", "figure.pdf")


def write_study(completed: CompletedStudy, folder: Path) -> None:
    """Write all `FILES` of a study."""
    document = completed.document()
    title = f"# {document['title']}\n\nThe paper: {document['paper']}.\n\n"
    figure = completed.study.show(completed.findings)
    write_findings(document, title, completed.findings, figure, folder)


def write_analysis(
    name: str, run: Path, scale: str, folder: Path
) -> tuple[Findings, dict[str, Any]]:
    """Analyse one run and write all `FILES`; returns findings and content of result.json."""
    findings, figure, document = analyze_run(name, run, scale)
    title = f"# {document['title']}\n\nThe run {run}.\n\n"
    write_findings(document, title, findings, figure, folder)
    return findings, document


def write_findings(
    document: dict[str, Any], title: str, findings: Findings, figure: Figure, folder: Path
) -> None:
    """Write all `FILES`: document as result.json, title and table as table.md."""
    texts = {
        "table.csv": as_csv(findings.rows),
        "table.md": title + as_markdown(findings),
        "result.json": json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n",
    }
    add_heading(figure, document["title"], figure_facts(document))
    with write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for suffix in ("png", "pdf"):
            save_figure(figure, folder / f"figure.{suffix}")
        for name, text in texts.items():
            write_atomically(folder / name, text.encode())


def figure_facts(document: dict[str, Any]) -> list[str]:
    """Data sets, scale and number of seeds.

    >>> rows = [{"benchmark": "split-digits", "seeds": n} for n in (3, 2)]
    >>> figure_facts({"rows": rows, "scale": "smoke"})
    ['split-digits', 'scale smoke', '2…3 seeds']
    """
    rows = document["rows"]
    sets = dict.fromkeys(row["benchmark"] for row in rows if row.get("benchmark"))
    counts = sorted({int(row["seeds"]) for row in rows if row.get("seeds")})
    seeds = "…".join(str(count) for count in dict.fromkeys((*counts[:1], *counts[-1:])))
    many = [f"{seeds} seed{'s' * (counts[-1] > 1)}"] if counts else []
    return [", ".join(sets), f"scale {document['scale']}", *many]


def as_csv(rows: Sequence[Row]) -> str:
    """Every value of every row, unrounded; empty where a row has no value."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    file = io.StringIO()
    writer = csv.DictWriter(file, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def as_markdown(findings: Findings) -> str:
    """The table with the notes under it."""
    columns = findings.columns
    rows = [[cell(row, column) for column in columns] for row in findings.rows]
    table = markdown_table([column.title for column in columns], rows)
    return table + "".join(f"\n{note}\n" for note in findings.notes)


def cell(row: Row, column: TableColumn) -> str:
    """One key: the value. Two keys: value ± deviation. Three keys: value [low, high].

    >>> cell({"gain": 1.5, "low": -0.25, "high": 3.25}, TableColumn("Δ", ("gain", "low", "high")))
    '1.50 [-0.25, 3.25]'
    >>> cell({"faa": 38.43, "std": None}, TableColumn("FAA", ("faa", "std")))
    '38.43'
    """
    value, *rest = (row.get(key) for key in column.keys)
    if isinstance(value, str):
        return value
    if len(rest) == 2:
        return with_interval(value, rest[0], rest[1], column.digits, column.sign)
    return mean_std(value, rest[0] if rest else None, column.digits, column.sign)
