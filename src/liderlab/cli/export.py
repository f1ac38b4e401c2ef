"""`lider export`: a run's network for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from .commands import command
from .option_types import RunPath, option


@command("lider export runs/x", "lider export runs/x --format onnx --out net.onnx")
def export(
    run: RunPath,
    format_: Annotated[
        Literal["torch-export", "onnx"],
        option("torch-export, or onnx.", names=["--format"], metavar="FORMAT"),
    ] = "torch-export",
    out: Annotated[
        Path | None,
        option("The file.", metavar="FILE", default="network.pt2 or .onnx in the run folder"),
    ] = None,
) -> None:
    """Write a run's network as a file for other programs.

    Reads result.json and the last checkpoint in RUN. Writes --out, a network that takes uint8
    pixels, gives scores, holds the names of the classes, and needs no liderlab: docs/using.md.
    """
    from ..runs.export import SUFFIXES
    from ..runs.export import export as write

    out = out or run / f"network{SUFFIXES[format_]}"
    network = write(run, out, format_)
    shape = ", ".join(map(str, network.image_shape))
    print(f"wrote {out}: uint8 pixels (n, {shape}) to scores (n, {len(network.names)})")
