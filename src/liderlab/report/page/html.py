"""The report: one HTML file that needs nothing but a browser.

What it shows stands in it as JSON, one block for the overview and one per run, which the page's own
script reads when it is looked at. Nothing of it is ever taken for HTML: every text goes through
`textContent`, and a content security policy lets the browser run this script alone and fetch
nothing at all.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from ... import __version__
from ...config.diff import flat
from ...errors import UserError
from ...files import write_atomically
from ...functional.statistics import summarise
from ...runs.folder import RunFolder
from ..definitions import METRICS, TERMS
from ..run_records import SETTINGS, Record, differing, seed_difference
from .curves import logged, short
from .ledger_lookup import in_ledger
from .paper_lookup import published
from .run_groups import Group, PaperNumbers, grouped, in_paper, without_lider

PICTURES = 4_000_000  # bytes for the memories of all runs together
LEAST_PICTURE, MOST_PICTURE = 40_000, 400_000
Tree = dict[str, Any]


def write_report(
    records: Sequence[Record],
    out: Path,
    *,
    title: str = "Continual-learning report",
    memory: bool = True,
    paper: PaperNumbers | None = None,
    progress: Callable[[Record], None] = lambda record: None,
) -> list[str]:
    """Write the page; returns a complaint about each run that was damaged and had to be left out.

    memory: with the images in the runs' memories (takes reading checkpoints).

    paper: published numbers to stand beside those of runs by preset; LiDER's paper by default.
    """
    details: list[tuple[str, Tree]] = []
    whole: list[Record] = []
    complaints: list[str] = []
    for record in records:
        progress(record)
        try:
            details.append((f"run-{len(whole)}", checked_detail(record, len(records), memory)))
            whole.append(record)
        except UserError as error:
            complaints.append(str(error))
    if complaints and not whole:
        raise UserError(complaints[0])
    blocks = [
        ("overview", overview(whole, title, published() if paper is None else paper)),
        *details,
    ]
    text = render(title, blocks).encode(errors="backslashreplace")  # a folder's name may be no text
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(out, text)
    except OSError as error:
        raise UserError(f"cannot write {out}: {error.strerror}") from None
    return complaints


def render(title: str, blocks: Sequence[tuple[str, Any]]) -> str:
    """The page around its data."""
    assets = files(__package__) / "assets"
    css, script, page = (
        (assets / f"report.{kind}").read_text(encoding="utf-8") for kind in ("css", "js", "html")
    )
    data = "\n".join(
        f'<script type="application/json" id="{name}">{embedded(tree)}</script>'
        for name, tree in blocks
    )
    values = {
        "policy": f"default-src 'none'; img-src data:; style-src {_hash(css)}; "
        f"script-src {_hash(script)}; base-uri 'none'; form-action 'none'",
        "title": html.escape(title),
        "css": css,
        "data": data,
        "script": script,
    }
    parts = page.split("{{")
    filled = [parts[0]]
    for part in parts[1:]:
        name, _, rest = part.partition("}}")
        filled += [values[name], rest]
    return "".join(filled)


def embedded(tree: Any) -> str:
    """JSON that cannot end the element it stands in.

    >>> embedded("</script>")
    '"\\\\u003c/script>"'
    """
    text = json.dumps(tree, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# The overview


def overview(records: Sequence[Record], title: str, paper: PaperNumbers) -> Tree:
    """What the first look shows, and all that sorting and filtering need."""
    groups = grouped(records)
    numbers = {id(record): number for number, record in enumerate(records)}
    rows = [_row(group, groups, paper) for group in groups]
    for row, group, ledger in zip(rows, groups, in_ledger(groups), strict=True):
        row["runs"] = [numbers[id(run)] for run in group.runs]
        row["ledger"] = ledger
    _mark_best(rows, groups)
    group_of = {run: row for row, group in enumerate(rows) for run in group["runs"]}
    configs = [flat(record.config) for record in records]
    return {
        "title": title,
        "version": __version__,
        "metrics": {key: vars(metric) for key, metric in METRICS.items()},
        "terms": TERMS,
        "groups": rows,
        "runs": [_run(record, group_of[number]) for number, record in enumerate(records)],
        "varying": {
            field: _values(field, configs)
            for field in differing(configs)
            if not field.startswith("scale.changes")
        },
    }


def _values(field: str, configs: Sequence[Tree]) -> list[tuple[str | None, int]]:
    """The values of a field, the commonest first, and how many runs have each; a few of them."""
    count = Counter(_plain(c[field]) if field in c else None for c in configs)
    return count.most_common(8)


def _row(group: Group, groups: Sequence[Group], paper: PaperNumbers) -> Tree:
    run, partner = group.first, without_lider(group, groups)
    other = partner.group if partner else None
    finished = [r for r in group.runs if r.result]
    return {
        "label": group.label,
        "note": group.note,
        "benchmark": run.benchmark,
        "tasks": run.tasks,
        "buffer": run.buffer,
        "scale": run.scale,
        "changes": _changes(run),
        "seeds": len({r.seed for r in finished}),
        "values": {s: {m: _mean(group, s, m) for m in METRICS} for s in SETTINGS},
        "adds": {s: {m: _adds(group, other, s, m) for m in METRICS} for s in SETTINGS},
        "also": list(partner.also) if partner else [],
        "paper": in_paper(group, paper),
        "curve": {s: _mean_curve([so_far(r.matrix(s)) for r in finished]) for s in SETTINGS},
    }


def _mean(group: Group, setting: str, metric: str) -> Tree | None:
    found = summarise(list(group.values(setting, metric).values()))
    return vars(found) if found else None


def _adds(group: Group, other: Group | None, setting: str, metric: str) -> Tree | None:
    if other is None:
        return None
    found = seed_difference(group.values(setting, metric), other.values(setting, metric))
    return vars(found) if found else None


def _changes(run: Record) -> list[str]:
    """What the scale made smaller, as sentences."""
    changes = (run.config.get("scale") or {}).get("changes") or {}
    return [f"{field}: {now.get('from')} → {now.get('to')}" for field, now in changes.items()]


def so_far(matrix: Sequence[Sequence[float | None]]) -> list[float | None]:
    """Mean accuracy on the tasks so far after each task; None where one is missing.

    >>> so_far([[90.0, None], [60.0, 80.0]])
    [90.0, 70.0]
    """
    rows = [row[: t + 1] for t, row in enumerate(matrix)]
    return [None if None in row else fmean(v for v in row if v is not None) for row in rows]


def _mean_curve(curves: Sequence[Sequence[float | None]]) -> Tree:
    """Mean and standard deviation over runs, task by task."""
    points = [[v for v in values if v is not None] for values in zip(*curves, strict=False)]
    return {
        "mean": [short(fmean(values)) if values else None for values in points],
        "std": [short(stdev(values)) if len(values) > 1 else None for values in points],
    }


def _mark_best(rows: Sequence[Tree], groups: Sequence[Group]) -> None:
    """Adds to each row the metrics that it has the best mean of, in its setting."""
    for row in rows:
        row["best"] = {setting: [] for setting in SETTINGS}
    rivals: dict[tuple[Any, ...], list[Tree]] = {}
    for row, group in zip(rows, groups, strict=True):
        if group.first.method != "joint":
            rivals.setdefault(group.setting, []).append(row)
    for setting in SETTINGS:
        for metric, fact in METRICS.items():
            for same in rivals.values():
                there = [row for row in same if row["values"][setting][metric]]
                if len(there) > 1:
                    means = [fact.better * row["values"][setting][metric]["mean"] for row in there]
                    there[means.index(max(means))]["best"][setting].append(metric)


def _run(record: Record, group: int) -> Tree:
    return {
        "name": record.name,
        "group": group,
        "seed": record.seed,
        "state": record.state,
        "seconds": (record.result or {}).get("seconds"),
        "values": {s: {m: record.metric(s, m) for m in METRICS} for s in SETTINGS},
    }


# One run


def checked_detail(record: Record, runs: int, memory: bool) -> Tree:
    """`detail`, or a `UserError` if this run's files would not let a page be written."""
    try:
        tree = detail(record, runs, memory)
        rows = [_row(group, [group], {}) for group in grouped([record])]
        embedded([tree, rows, _run(record, 0)])
    except UserError:
        raise
    except OSError as error:
        raise UserError(f"cannot read {error.filename}: {error.strerror}") from None
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError):
        raise UserError(f"{record.path} is damaged: run it again") from None
    return tree


def detail(record: Record, runs: int, memory: bool) -> Tree:
    """Everything about one run, small enough for a page with so many of them."""
    points = min(240, max(60, 6_000 // runs))
    lines, result = record.lines, record.result or {}
    on_memory, config = record.on_memory(), record.path / "config.yaml"
    return {
        "matrix": {s: _rounded(record.matrix(s)) for s in SETTINGS},
        "onMemory": _rounded(on_memory) if on_memory else None,
        "ends": [line["step"] for line in lines if line["kind"] == "task"],
        "terms": logged(lines, "terms", points),
        "readings": logged(lines, "readings", points),
        "memory": _memory(record, runs) if memory else None,
        "keepsMemory": record.buffer is not None,
        "classes": [str(name) for name in result.get("classes", [])],
        "config": {field: _plain(value) for field, value in flat(record.config).items()},
        "versions": {k: str(v) for k, v in result.get("versions", {}).items()},
        "command": f"lider run --config {shlex.quote(str(config))} --out again",
        "yaml": config.read_text(encoding="utf-8"),
    }


def _memory(record: Record, runs: int) -> Tree | None:
    """The memory at the last checkpoint; None if there is none to be read."""
    from .memory_image import memory_view

    folder = RunFolder(record.path)
    if record.buffer is None or not folder.checkpoints.files():
        return None
    budget = min(MOST_PICTURE, max(LEAST_PICTURE, PICTURES // runs))
    try:
        return memory_view(folder.state()["memory"], budget, folder.memory)
    except (UserError, OSError):  # no checkpoint is whole, or the run goes on and replaced it
        return None


def _rounded(matrix: Sequence[Sequence[float | None]]) -> list[list[float | None]]:
    return [[None if value is None else round(value, 2) for value in row] for row in matrix]


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
