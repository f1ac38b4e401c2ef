"""Images for prediction, in any of the forms that users have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import UserError
from ..streams.datasets.image_decoding import decode

Shape = tuple[int, int, int]


def as_pixels(images: Any, image_shape: Shape) -> Tensor:
    """(n, C, H, W) of an array, a tensor, an image file, a Pillow image, or a list of these."""
    from PIL import Image

    if isinstance(images, (str, Path, Image.Image)):
        images = [images]
    if not isinstance(images, (list, tuple)):
        return _from_array(images, image_shape)
    parts = [torch.zeros(0, *image_shape, dtype=torch.uint8)]
    for image in images:
        if isinstance(image, (Tensor, np.ndarray)):
            parts.append(_from_array(image, image_shape).cpu())
        else:
            parts.append(read_image(image, image_shape)[None])
    return torch.cat(parts)


def _from_array(images: Any, image_shape: Shape) -> Tensor:
    """(n, C, H, W) of an array of images or of one image, channels first or last."""
    try:
        pixels = torch.as_tensor(images)
    except (TypeError, ValueError, RuntimeError):
        raise UserError(
            "expected an array or tensor of images, image files, or Pillow images, "
            f"but got {type(images).__name__}"
        ) from None
    if pixels.is_floating_point() or pixels.is_complex():
        raise UserError("expected images as whole numbers in 0…255, but got floating-point ones")
    if pixels.numel() and not 0 <= pixels.min() <= pixels.max() <= 255:
        found = f"{int(pixels.min())}…{int(pixels.max())}"
        raise UserError(f"expected images as whole numbers in 0…255, but got {found}")
    channels, height, width = image_shape
    shape, n = tuple(pixels.shape), pixels.shape[0] if pixels.dim() else 0
    if shape in (image_shape, (n, *image_shape)):
        return pixels.reshape(-1, *image_shape)
    if shape in ((height, width, channels), (n, height, width, channels)):
        return pixels.reshape(-1, height, width, channels).permute(0, 3, 1, 2)
    if channels == 1 and shape in ((height, width), (n, height, width)):
        return pixels.reshape(-1, 1, height, width)
    raise UserError(
        f"expected images of shape (n, {channels}, {height}, {width}) or "
        f"(n, {height}, {width}, {channels}), but got {shape}"
    )


def read_image(image: Any, image_shape: Shape) -> Tensor:
    """A file or Pillow image in the network's colours and size: (C, H, W)."""
    try:
        return torch.from_numpy(decode(image, image_shape))
    except FileNotFoundError:
        raise UserError(f"there is no image {image}") from None
