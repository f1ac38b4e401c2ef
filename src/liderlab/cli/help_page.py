"""The layout of `--help`: a manual page, in 80 columns.

Usage, what the command does, what it reads and writes, its options under headings, and examples to
copy. Plain text; headings and names are bold in a terminal, unless NO_COLOR is set.
"""

from __future__ import annotations

import os
import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

NARROW, WIDE = 60, 100  # columns of text, however wide the terminal is
INDENT, TERM = 2, 24  # columns before a name, and for it
VALUES = {"int": "N", "float": "X", "path": "PATH"}
GLUE = "\N{NO-BREAK SPACE}"
Row = tuple[str, str]


class HelpCommand(TyperCommand):
    """A command whose help has this layout."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        typer.echo(page(self, ctx), nl=False)


class HelpGroup(TyperGroup):
    """A group of commands whose help has this layout."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        typer.echo(page(self, ctx), nl=False)


def page(command: TyperCommand | TyperGroup, ctx: Any) -> str:
    """The whole help of a command."""
    width = min(WIDE, max(NARROW, shutil.get_terminal_size().columns)) - 1
    parameters: list[Any] = list(command.get_params(ctx))
    arguments = [p for p in parameters if p.param_type_name == "argument"]
    options = [p for p in parameters if p.param_type_name == "option"]
    parts = [f"{_bold('Usage:')} {' '.join(_usage(command, ctx, arguments))}"]
    for paragraph in (command.help or "").split("\n\n"):
        parts.append(textwrap.fill(" ".join(paragraph.split()), width))
    sections = [("Arguments", [(_name(p), _meaning(p, ctx)) for p in arguments])]
    if isinstance(command, TyperGroup):
        sections += _grouped(_commands(command, ctx), "Commands")
    rows = [(p.rich_help_panel, (_names(p, ctx), _meaning(p, ctx))) for p in options]
    sections += _grouped(rows, "Options")
    parts += [_section(title, content, width) for title, content in sections if content]
    if command.epilog:
        parts.append(_epilog(command.epilog))
    return "\n\n".join(parts) + "\n"


def _usage(command: TyperCommand | TyperGroup, ctx: Any, arguments: Iterable[Any]) -> Iterator[str]:
    yield ctx.command_path
    yield "[OPTIONS]"
    for argument in arguments:
        yield _name(argument) if argument.required else f"[{_name(argument)}]"
    if isinstance(command, TyperGroup):
        yield "COMMAND …"


def _name(argument: Any) -> str:
    return (argument.metavar or argument.name.upper()) + "…" * (argument.nargs != 1)


def _names(option: Any, ctx: Any) -> str:
    """`-o, --out PATH`; both names of a switch like `--memory / --no-memory`."""
    short_first = sorted(option.opts, key=len)
    names = " / ".join([", ".join(short_first), *option.secondary_opts])
    return names if option.is_flag else f"{names} {_value(option, ctx)}"


def _value(option: Any, ctx: Any) -> str:
    """The word for the value: a letter for a number, else the last word of the option's name."""
    kind = str(option.display_type(ctx)).strip("<>").removesuffix(" range")
    return option.metavar or VALUES.get(kind) or option.name.strip("_").split("_")[-1].upper()


def _meaning(parameter: Any, ctx: Any) -> str:
    """The help text; then the default and the limits, in brackets that no line break splits."""
    text, bracket, facts = parameter.get_help_record(ctx)[1].partition("  [")
    facts = re.sub(r"default: \((.*?)\)", r"default: \1", f"[{facts}")
    facts = re.sub(r"([\d.]+)<=x<=([\d.]+)", r"\1 to \2", facts)
    facts = re.sub(r"x>=([\d.]+)", r"at least \1", facts)
    return f"{text} {facts.replace(' ', GLUE)}" if bracket else text


def _commands(group: TyperGroup, ctx: Any) -> Iterator[tuple[str | None, Row]]:
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        if command is not None and not command.hidden:
            summary = " ".join((command.help or "").split("\n\n")[0].split())
            yield getattr(command, "rich_help_panel", None), (name, summary)


def _grouped(rows: Iterable[tuple[str | None, Row]], rest: str) -> list[tuple[str, list[Row]]]:
    """Rows under their headings, in the order of the first row of each."""
    groups: dict[str, list[Row]] = {}
    for heading, row in rows:
        groups.setdefault(heading or rest, []).append(row)
    return list(groups.items())


def _section(title: str, rows: Sequence[Row], width: int) -> str:
    """Names on the left, meanings on the right, or below a name that is too long."""
    lines = [_bold(f"{title}:")]
    left = min(TERM, max(len(name) for name, _ in rows))
    margin = " " * (INDENT + left + 2)
    for name, text in rows:
        body = textwrap.wrap(text, width - len(margin), break_on_hyphens=False) or [""]
        head = f"{' ' * INDENT}{_bold(name)}"
        if len(name) <= left:
            head += " " * (left - len(name) + 2) + body.pop(0)
        lines += [head.rstrip(), *(margin + line for line in body)]
    return "\n".join(lines).replace(GLUE, " ")


def _epilog(text: str) -> str:
    """Examples under a heading; any other text unchanged."""
    if not text.startswith("lider "):
        return text
    return "\n".join([_bold("Examples:"), *(f"{' ' * INDENT}{line}" for line in text.splitlines())])


def _bold(text: str) -> str:
    """Typer removes the escape codes where the output is not a terminal."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain else f"\x1b[1m{text}\x1b[0m"
