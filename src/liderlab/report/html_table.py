"""Small tables for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def html_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with a title; the first column names the rows, the others hold numbers.

    >>> html_table("FAA & FF", ["", "FAA"], [["er", "70.00"]])
    '<table><caption>FAA &amp; FF</caption>...<th>er</th><td>70.00</td>...</table>'
    """
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    lines = [f"<caption>{escape(title)}</caption><thead><tr>{head}</tr></thead><tbody>"]
    for name, *cells in rows:
        values = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        lines.append(f"<tr><th>{escape(name)}</th>{values}</tr>")
    return f"<table>{''.join(lines)}</tbody></table>"
