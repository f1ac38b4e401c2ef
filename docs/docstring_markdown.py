"""Docstrings as Markdown, for the page of the API: doctests as code, arguments one by one.

Markdown would take `>>>` for quotations, and the parser takes `alpha, beta: …` for one argument of
that name, without a default.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

GROUP = re.compile(r"( +)(\w+), (\w+(?:, \w+)*): ")


class DocstringMarkdown(griffe.Extension):
    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = with_code_blocks(with_single_arguments(obj.docstring.value))


def with_code_blocks(text: str) -> str:
    """
    >>> with_code_blocks(">>> 1 + 1\\n2")
    '```pycon\\n>>> 1 + 1\\n2\\n```'
    """
    return re.sub(
        r"^>>> (?:.+\n?)+", lambda code: f"```pycon\n{code[0].rstrip()}\n```\n", text, flags=re.M
    ).rstrip()


def with_single_arguments(text: str) -> str:
    """
    >>> print(with_single_arguments("Args:\\n    a, b: two\\n        weights.\\n    c: one."))
    Args:
        a: two
            weights.
        b: See `a`.
        c: one.
    """
    lines: list[str] = []
    others: list[str] = []  # of the group that the lines belong to
    for line in [*text.splitlines(), ""]:
        indent = len(line) - len(line.lstrip())
        if others and indent <= len(others[0]) - len(others[0].lstrip()):
            lines, others = lines + others, []
        if group := GROUP.match(line) if "Args:" in lines else None:
            space, first, rest = group.groups()
            others = [f"{space}{name}: See `{first}`." for name in rest.split(", ")]
            line = f"{space}{first}: {line[group.end() :]}"
        lines.append(line)
    return "\n".join(lines[:-1])
