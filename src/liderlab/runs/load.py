"""A finished run's network, ready for use."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import UserError
from ..streams.augmentation import Augment
from .build import build_network, find_device
from .folder import RunFolder


class TrainedNetwork(nn.Module):
    """What a run has learned: images in, classes out.

    names: the classes by score. image_shape: (C, H, W) that it was trained on.
    """

    def __init__(
        self,
        classifier: nn.Module,
        names: Sequence[str],
        image_shape: tuple[int, int, int],
        normalise: Augment,
    ) -> None:
        super().__init__()
        self.classifier, self.names = classifier, list(names)
        self.image_shape, self._normalise = image_shape, normalise

    def forward(self, pixels: Tensor) -> Tensor:
        """Scores (n, classes) of pixels (n, C, H, W) in 0…255."""
        return self.classifier(self._normalise.normalise(pixels))

    def predict(self, images: Any) -> list[str]:
        """The class of each image.

        images: an array or tensor (n, C, H, W) or (n, H, W, C), (n, H, W) for grey ones, or a
        single image without n, of integers in 0…255; or an image file or Pillow image of any size,
        or a list of them.
        """
        return [self.names[int(best)] for best in self.probabilities(images).argmax(1)]

    @torch.no_grad()
    def probabilities(self, images: Any) -> Tensor:
        """softmax of the scores: (n, classes)."""
        device = next(self.parameters()).device
        pixels = as_pixels(images, self.image_shape).to(device)
        if not len(pixels):
            return torch.zeros(0, len(self.names))
        return torch.cat([self(part) for part in pixels.split(256)]).softmax(1).cpu()


def load(path: str | Path, device: str = "cpu", *, after_task: int | None = None) -> TrainedNetwork:
    """The network of a finished run: `liderlab.load("runs/x").predict(images)`.

    It needs the run's folder only, not the benchmark's data. after_task: as it was after that task
    (0, 1, …), if the run kept it (keep_tasks).
    """
    folder = RunFolder.open(path)
    config, result = folder.config(), folder.result()
    state = folder.state() if after_task is None else folder.task_state(after_task)
    channels, height, width = result["image_shape"]
    with folder.consistent():
        method, network = build_network(config, len(result["classes"]), (channels, height, width))
        method.attach(network, torch.zeros(2, channels, height, width))
        method.load_state_dict(state["method"])
        network.load_state_dict(state["network"])
        trained = TrainedNetwork(
            method.classifier(network),
            result["classes"],
            (channels, height, width),
            Augment(**result["normalisation"]),
        ).eval()
        with torch.no_grad():  # whatever does not fit shows by itself
            trained(torch.zeros(1, channels, height, width))
    return trained.to(find_device(device))


def as_pixels(images: Any, image_shape: tuple[int, int, int]) -> Tensor:
    """Whatever holds images, as (n, C, H, W)."""
    from PIL import Image

    if isinstance(images, (str, Path, Image.Image)):
        images = [images]
    if not isinstance(images, (list, tuple)):
        return from_array(images, image_shape)
    parts = [torch.zeros(0, *image_shape, dtype=torch.uint8)]
    for image in images:
        if isinstance(image, (Tensor, np.ndarray)):
            parts.append(from_array(image, image_shape).cpu())
        else:
            parts.append(read_image(image, image_shape)[None])
    return torch.cat(parts)


def from_array(images: Any, image_shape: tuple[int, int, int]) -> Tensor:
    """An array or tensor of images, or of one, channels first or last: (n, C, H, W)."""
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
        raise UserError(
            "expected images as whole numbers in 0…255, "
            f"but got {int(pixels.min())}…{int(pixels.max())}"
        )
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


def read_image(image: Any, image_shape: tuple[int, int, int]) -> Tensor:
    """A file or Pillow image, in the colours and the size that the network knows: (C, H, W)."""
    from PIL import Image

    channels, height, width = image_shape
    try:
        with nullcontext(image) if isinstance(image, Image.Image) else Image.open(image) as found:
            picture = found.convert("L" if channels == 1 else "RGB").resize((width, height))
    except (
        OSError,
        ValueError,
        TypeError,
        AttributeError,
        SyntaxError,  # Pillow's word for some broken files
        Image.DecompressionBombError,
    ):
        what = image if isinstance(image, (str, Path)) else f"an object of {type(image).__name__}"
        raise UserError(f"cannot read {what} as an image") from None
    return torch.from_numpy(np.array(picture)).reshape(height, width, channels).permute(2, 0, 1)
