"""How `--help` looks: like a manual page, in 80 columns.

Usage, what the command does, what it reads and writes, its options in groups, and examples that can
be copied. Plain text; headings and names are bold in a terminal, unless NO_COLOR is set.
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

START, TRAIN, LOOK, USE, MANY, PAPER, AROUND = GROUPS = (
    "Start here",
    "Train",
    "Look at runs",
    "Use the result",
    "Many runs",
    "The paper",
    "Data and tools",
)
"""Of the commands, in the order of `lider --help`."""

NARROW, WIDE = 60, 100  # columns that text is set in, whatever the terminal has
INDENT, TERM = 2, 24  # columns before a name, and for it
VALUES = {"int": "N", "float": "X", "path": "PATH", "str": "TEXT", "list[str]": "TEXT"}
GLUE = "\N{NO-BREAK SPACE}"
Row = tuple[str, str]


def examples(*commands: str) -> str:
    """What stands at the end of a command's help; one command a line."""
    return "\n".join(commands)


class Command(TyperCommand):
    """A command whose help is set as above."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        typer.echo(page(self, ctx), nl=False)


class Group(TyperGroup):
    """A command of commands."""

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
    told = [(p.rich_help_panel, (_names(p, ctx), _meaning(p, ctx))) for p in options]
    sections += _grouped(told, "Options")
    parts += [_section(title, rows, width) for title, rows in sections if rows]
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
    """`-o, --out PATH`; both ways of a switch that has two."""
    short_first = sorted(option.opts, key=len)
    names = " / ".join([", ".join(short_first), *option.secondary_opts])
    return names if option.is_flag else f"{names} {_value(option, ctx)}"


def _value(option: Any, ctx: Any) -> str:
    kind = str(option.display_type(ctx)).strip("<>").removesuffix(" range")
    return option.metavar or VALUES.get(kind, "VALUE")


def _meaning(parameter: Any, ctx: Any) -> str:
    """What it is for; then its default, and what it must be, which no line break parts."""
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
    """Rows under their titles, in the order of the first of each. Those without a title come first,
    unless that is --help alone."""
    groups: dict[str, list[Row]] = {title: [] for title in (rest, *GROUPS)}
    for title, row in rows:
        groups.setdefault(title or rest, []).append(row)
    if len(groups[rest]) == 1:
        groups[rest] = groups.pop(rest)
    return list(groups.items())


def _section(title: str, rows: Sequence[Row], width: int) -> str:
    """Names to the left, what they mean to the right; below a name that is too long for that."""
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
    """Examples under their heading; anything else as it stands."""
    if not text.startswith("lider "):
        return text
    return "\n".join([_bold("Examples:"), *(f"{' ' * INDENT}{line}" for line in text.splitlines())])


def _bold(text: str) -> str:
    """Where output is no terminal, typer takes it out again."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain else f"\x1b[1m{text}\x1b[0m"
