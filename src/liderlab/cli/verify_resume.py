"""`lider verify-resume`: the proof that a run survives being killed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import UserError
from .commands import command
from .option_types import option


@command(
    "lider verify-resume --method er-ace --lider --kills 5",
    "lider verify-resume --benchmark synthetic --kills 2 --keep proof",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def verify_resume(
    context: typer.Context,
    kills: Annotated[int, option("How often to kill the run.", min=1)] = 5,
    keep: Annotated[
        Path | None,
        option("Keep the runs in this new folder.", metavar="FOLDER", default="no"),
    ] = None,
) -> None:
    """Prove that a run survives SIGKILL at any moment, to the bit.

    Takes all options of lider run but --out, --force and --resume, and reads the same data. Writes
    an undisturbed run, and one or more that are killed and resumed, into a temporary folder or
    --keep; compares them. Exit code 0: no difference; 1: a difference.
    """
    for name in ("--out", "--force", "--resume"):
        if any(word.partition("=")[0] == name for word in context.args):
            raise UserError(
                f"verify-resume makes folders of its own and takes no {name}: leave it out, or "
                "keep the runs with --keep FOLDER"
            )
    if keep is not None and keep.exists():
        raise UserError(f"{keep} exists: choose another folder for --keep")
    import shutil
    import tempfile

    from ..runs.resume_proof import verify_resume as verify

    with tempfile.TemporaryDirectory() as temporary:
        folder = keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            verdict = verify(context.args, kills, folder, lambda text: print(text, flush=True))
        except UserError:
            shutil.rmtree(folder, ignore_errors=True)  # it would block the next attempt
            raise
    for difference in verdict.differences[:20]:
        print(f"differs: {difference}")
    same = "nothing differs" if not verdict.differences else f"{len(verdict.differences)} differ"
    print(f"{verdict.kills} kills in {verdict.runs} run(s); weights, memory and metrics: {same}")
    if verdict.differences:
        raise typer.Exit(1)
