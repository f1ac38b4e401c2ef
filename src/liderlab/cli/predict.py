"""`lider predict`: classify images with a trained network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from ..errors import printable
from .commands import command
from .option_types import Json, RunPath, argument
from .output import print_json


@command("lider predict runs/x photo.png", "lider predict runs/x a.png b.png --json")
def predict(
    run: RunPath,
    images: Annotated[list[Path], argument("Image files.")],
    as_json: Json = False,
) -> None:
    """Print the class of each image, and how sure the network is.

    Reads result.json and the last checkpoint in RUN, and the images, which may have any size;
    writes nothing. Prints a line per image: file, class, probability, separated by tabs.
    """
    from ..runs.load import load

    network = load(run)
    best = network.probabilities(images).max(1)
    rows: list[dict[str, Any]] = [
        {"image": str(image), "class": network.names[int(c)], "probability": round(float(p), 4)}
        for image, p, c in zip(images, best.values, best.indices, strict=True)
    ]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        image, name = printable(row["image"]), printable(row["class"])
        print(f"{image}\t{name}\t{row['probability']:.3f}")
