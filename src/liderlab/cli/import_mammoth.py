"""`lider import-mammoth`: a command line of Mammoth, translated."""

from __future__ import annotations

import sys

import typer

from .commands import command


@command(
    "lider import-mammoth --model er-ace --dataset seq-cifar100 --buffer_size 500",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def import_mammoth(context: typer.Context) -> None:
    """Turn a command line of Mammoth into ours; say what differs.

    Takes the options of Mammoth's main.py unchanged. Reads and writes no files. Our command goes
    to standard output, the remarks to standard error.
    """
    from ..config.mammoth_commands import translate

    translation = translate(context.args)
    print(translation.command)
    for remark in translation.remarks:
        print(f"note: {remark}", file=sys.stderr)
