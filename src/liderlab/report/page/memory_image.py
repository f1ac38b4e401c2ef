"""The images in a run's memory as one small picture."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from ...memory.disk_rows import StoredRows

MOST = 1_000  # images of one run: nobody looks at more
SIDE = 64  # pixels of a thumbnail at most
AT_A_TIME = 64  # images that are held at their full size
QUALITIES = (88, 70)
MARKS = ("poisoned", "edits")


def memory_view(
    memory: Mapping[str, Any], budget: int, folder: Path | None = None
) -> dict[str, Any] | None:
    """What a page shows of a memory (as checkpoints hold it); None if it holds no images.

    budget: bytes that the picture may take in the page. If it must, it shows fewer images of every
    class, never fewer classes. folder: where the files of a memory on disk are; only the images
    that are shown are read, a few at a time.
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
    most = _at_most(rank, MOST)
    order, rank = order[rank < most], rank[rank < most]
    small = np.concatenate([thumbnails(images[part]) for part in order.split(AT_A_TIME)])
    while True:
        rows, pixels = order[rank < most], small[(rank < most).numpy()]
        columns = max(1, round(len(rows) ** 0.5))
        for picture in encodings(tiled(pixels, columns)):
            if len(picture) <= budget:
                break
        if len(picture) <= budget or most == 1:
            break
        most = max(1, min(most - 1, int(most * budget / len(picture))))
    marks = {name: data[name][rows].int().tolist() for name in MARKS if name in data}
    return {
        "picture": picture,
        "columns": columns,
        "height": pixels.shape[1],
        "width": pixels.shape[2],
        "total": total,
        "label": data["y"][rows].tolist(),
        "task": data["task"][rows].tolist(),
        **marks,
    }


def _images(column: Any, folder: Path | None) -> Tensor | StoredRows | None:
    """Rows to index by slot, wherever they are."""
    from ...memory.disk_rows import StoredRows

    if not isinstance(column, Mapping):
        return column
    file = folder and folder / "x.rows"
    return StoredRows(file, column) if file and "shape" in column else None


def _at_most(rank: Tensor, images: int) -> int:
    """How many per class so that there are not more images than that, but one of each."""
    most = int(rank.max()) + 1
    while most > 1 and int((rank < most).sum()) > images:
        most = max(1, int(most * 0.8))
    return most


def thumbnails(x: Tensor) -> np.ndarray[Any, Any]:
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
    array: np.ndarray[Any, Any] = pixels.round().clamp(0, 255).byte().permute(0, 2, 3, 1).numpy()
    return array


def tiled(images: np.ndarray[Any, Any], columns: int) -> np.ndarray[Any, Any]:
    """Images (n, h, w, c) side by side, row by row: (rows · h, columns · w, c).

    >>> import numpy as np
    >>> tiled(np.zeros((5, 8, 8, 1), dtype=np.uint8), 2).shape
    (24, 16, 1)
    """
    import numpy as np

    n, h, w, c = images.shape
    rows = -(-n // columns)
    grid = np.zeros((rows * columns, h, w, c), dtype=np.uint8)
    grid[:n] = images
    return grid.reshape(rows, columns, h, w, c).swapaxes(1, 2).reshape(rows * h, columns * w, c)


def encodings(image: np.ndarray[Any, Any]) -> Iterator[str]:
    """The picture as data: URLs, exact first, then ever smaller."""
    from PIL import Image

    picture = Image.fromarray(image[:, :, 0] if image.shape[2] == 1 else image)
    lossy = [("jpeg", {"quality": q, "subsampling": 0}) for q in QUALITIES]
    ways: list[tuple[str, dict[str, Any]]] = [("png", {}), *lossy]
    for kind, options in ways:
        buffer = BytesIO()
        picture.save(buffer, format=kind, **options)
        yield f"data:image/{kind};base64," + base64.b64encode(buffer.getvalue()).decode()
