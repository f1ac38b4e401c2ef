"""An image file, or a Pillow image, as bytes in the network's colours and size."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import UserError

if TYPE_CHECKING:
    from PIL.Image import Image

BITS_PER_SAMPLE = 258  # the tag of a TIFF file


def decode(image: Any, image_shape: tuple[int, int, int]) -> NDArray[np.uint8]:
    """A file or Pillow image of any mode as (C, H, W); other sizes are stretched.

    Grey images of 16 bits are rescaled to 8, since Pillow would clip them. Pixels of 32 bits are
    refused: their range is unknown. Transparency is ignored.
    """
    from PIL import Image

    channels, height, width = image_shape
    try:
        if isinstance(image, (str, Path)) and not S_ISREG(os.stat(image).st_mode):
            raise UserError("it is not a file")  # reading a named pipe would never end
        with nullcontext(image) if isinstance(image, Image.Image) else Image.open(image) as found:
            picture = _eight_bits(found).convert("L" if channels == 1 else "RGB")
        picture = picture.resize((width, height)) if picture.size != (width, height) else picture
    except FileNotFoundError:
        raise
    except Exception as error:  # Pillow raises many kinds for a broken file
        name = image if isinstance(image, (str, Path)) else f"an object of {type(image).__name__}"
        raise UserError(f"cannot read {name} as an image: {error}") from None
    return np.array(picture).reshape(height, width, channels).transpose(2, 0, 1)


def _eight_bits(picture: Image) -> Image:
    """Modes of more than 8 bits as grey of 8 bits; all others unchanged."""
    from PIL import Image

    wide = picture.mode == "I" and picture.format in ("PNG", "PPM")  # 16 bits, held in 32
    if picture.mode.startswith("I;16") or wide:
        tags = getattr(picture, "tag_v2", {})
        largest = 2 ** tags.get(BITS_PER_SAMPLE, (16,))[0] - 1
        return Image.fromarray(np.rint(np.asarray(picture) * (255 / largest)).astype(np.uint8))
    if picture.mode in ("I", "F"):
        kind = "floating-point" if picture.mode == "F" else "32-bit"
        raise UserError(f"its {kind} pixels have no known range: save it with 8 or 16 bits")
    return picture
