"""The images in a run's memory as one small picture."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from ...memory.disk_rows import StoredRows

    Pixels = np.ndarray[Any, Any]

MOST = 1_000  # images of one run
SIDE = 64  # pixels of a thumbnail at most
AT_A_TIME = 64  # images held at their full size
ENCODINGS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("png", {}),
    ("jpeg", {"quality": 88, "subsampling": 0}),
    ("jpeg", {"quality": 70, "subsampling": 0}),
)
MARKS = ("poisoned", "edits")


def memory_view(
    memory: Mapping[str, Any], budget: int, folder: Path | None = None
) -> dict[str, Any] | None:
    """A picture of a memory in a checkpoint, and the labels of its images; None without images.

    budget: bytes for the picture. If all images need more, it shows fewer of every class, but at
    least one. folder: holds the files of a memory on disk; only the images that are shown are
    read, a few at a time.
    """
    import numpy as np
    import torch

    from ...functional.sampling import rank_in_class

    data, total = memory["data"], int(memory["filled"])
    images = _images(data.get("x"), folder)
    if not total or images is None or len(images) != total:
        return None
    order = torch.argsort(data["task"] * 1_000_000 + data["y"], stable=True)
    rank = rank_in_class(data["y"][order], -torch.arange(total))
    per_class = int(rank.max()) + 1
    while per_class > 1 and int((rank < per_class).sum()) > MOST:
        per_class = max(1, int(per_class * 0.8))
    order, rank = order[rank < per_class], rank[rank < per_class]
    small = np.concatenate([thumbnails(images[part]) for part in order.split(AT_A_TIME)])
    while True:
        rows, pixels = order[rank < per_class], small[(rank < per_class).numpy()]
        columns = max(1, round(len(rows) ** 0.5))
        picture = _encoded(tile(pixels, columns), budget)
        if len(picture) <= budget or per_class == 1:
            break
        per_class = max(1, min(per_class - 1, int(per_class * budget / len(picture))))
    return {
        "picture": picture,
        "columns": columns,
        "height": pixels.shape[1],
        "width": pixels.shape[2],
        "total": total,
        "label": data["y"][rows].tolist(),
        "task": data["task"][rows].tolist(),
        **{name: data[name][rows].int().tolist() for name in MARKS if name in data},
    }


def _images(column: Any, folder: Path | None) -> Tensor | StoredRows | None:
    """Images to index by slot, in RAM or on disk."""
    from ...memory.disk_rows import StoredRows

    if not isinstance(column, Mapping):
        return column
    return StoredRows(folder / "x.rows", column) if folder and "shape" in column else None


def thumbnails(x: Tensor) -> Pixels:
    """(n, height, width, 1 or 3) uint8, not larger than `SIDE`."""
    from torch.nn.functional import interpolate

    pixels = x.float()
    if pixels.shape[1] not in (1, 3):
        pixels = pixels[:, :1]
    height, width = pixels.shape[2:]
    if max(height, width) > SIDE:
        factor = SIDE / max(height, width)
        size = (max(1, round(height * factor)), max(1, round(width * factor)))
        pixels = interpolate(pixels, size, mode="area")
    array: Pixels = pixels.round().clamp(0, 255).byte().permute(0, 2, 3, 1).numpy()
    return array


def tile(images: Pixels, columns: int) -> Pixels:
    """Images (n, h, w, c) side by side, row by row: (rows · h, columns · w, c).

    >>> import numpy as np
    >>> tile(np.zeros((5, 8, 8, 1), dtype=np.uint8), 2).shape
    (24, 16, 1)
    """
    import numpy as np

    n, h, w, c = images.shape
    rows = -(-n // columns)
    grid = np.zeros((rows * columns, h, w, c), dtype=np.uint8)
    grid[:n] = images
    return grid.reshape(rows, columns, h, w, c).swapaxes(1, 2).reshape(rows * h, columns * w, c)


def _encoded(image: Pixels, budget: int) -> str:
    """A data: URL in the first encoding that fits in `budget` bytes, else in the last."""
    from PIL import Image

    picture = Image.fromarray(image[:, :, 0] if image.shape[2] == 1 else image)
    for kind, options in ENCODINGS:
        buffer = BytesIO()
        picture.save(buffer, format=kind, **options)
        url = f"data:image/{kind};base64," + base64.b64encode(buffer.getvalue()).decode()
        if len(url) <= budget:
            break
    return url
