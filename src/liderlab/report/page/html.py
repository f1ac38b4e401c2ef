"""The report: one HTML file that needs nothing but a browser.

The file holds its data as JSON, one block for the overview and one per run. The script in the file
reads a block when its page is opened, and writes all text through `textContent`: no name is ever
taken for HTML. A content security policy lets the browser run this script alone and fetch nothing.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from ...errors import UserError
from ...files import write_atomically, write_errors
from ...runs.folder import RunFolder
from ..run_records import RunRecord
from .overview_data import overview
from .reference_numbers import PaperNumbers, paper_numbers
from .run_data import run_data

SCRIPTS = (  # one script in the page: later files use names of earlier ones
    *("elements", "tables", "charts", "line_chart", "small_charts", "overview", "compare"),
    *("hyperparameters", "run_page", "memory_and_configuration", "navigation"),
)


def write_report(
    records: Sequence[RunRecord],
    out: Path,
    *,
    title: str = "Continual-learning report",
    memory: bool = True,
    paper: PaperNumbers | None = None,
    figure: bytes | None = None,
    progress: Callable[[RunRecord], None] = lambda record: None,
) -> list[str]:
    """Write the report; returns a message about each damaged run, which is left out.

    memory: show the images in the runs' memories, read from their checkpoints.

    paper: published numbers to show beside runs of a preset; those of LiDER's paper by default.

    figure: a PNG about all runs, to show first.
    """
    numbers = paper_numbers() if paper is None else paper
    kept: list[RunRecord] = []
    blocks, problems = [], []
    for record in records:
        progress(record)
        try:
            with RunFolder(record.path).consistent():
                data = run_data(record, len(records), memory)
                embed([data, overview([record], title, {}, ledger=[])])
        except OSError as error:
            problems.append(f"cannot read {error.filename}: {error.strerror}")
        except UserError as error:
            problems.append(str(error))
        else:
            blocks.append((f"run-{len(kept)}", data))
            kept.append(record)
    if problems and not kept:
        raise UserError(problems[0])
    first = overview(kept, title, numbers)
    if figure is not None:
        first["figure"] = "data:image/png;base64," + base64.b64encode(figure).decode()
    page = render(title, [("overview", first), *blocks])
    text = page.encode(errors="backslashreplace")  # a folder's name need not be valid Unicode
    with write_errors(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(out, text)
    return problems


def render(title: str, blocks: Sequence[tuple[str, Any]]) -> str:
    """Fill the template with the title, the style, the script and the named blocks of data."""
    assets = files(__package__) / "assets"
    css, template = ((assets / f"report.{kind}").read_text("utf-8") for kind in ("css", "html"))
    parts = [(assets / f"{name}.js").read_text("utf-8") for name in SCRIPTS]
    script = "\n".join(['"use strict";', "(() => {", *parts, "})();"])
    values = {
        "policy": f"default-src 'none'; img-src data:; style-src {_hash(css)}; "
        f"script-src {_hash(script)}; base-uri 'none'; form-action 'none'",
        "title": html.escape(title),
        "css": css,
        "data": "\n".join(
            f'<script type="application/json" id="{name}">{embed(tree)}</script>'
            for name, tree in blocks
        ),
        "script": script,
    }
    first, *rest_of_template = template.split("{{")
    for part in rest_of_template:
        name, _, rest = part.partition("}}")
        first += values[name] + rest
    return first


def embed(tree: Any) -> str:
    """JSON that cannot end the element that holds it.

    >>> embed("</script>")
    '"\\\\u003c/script>"'
    """
    text = json.dumps(tree, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
