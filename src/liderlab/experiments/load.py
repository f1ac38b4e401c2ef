"""A finished run's network, ready for use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import UserError
from ..streams.augment import Augment
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

        images: an array or tensor (n, C, H, W), (n, H, W) for grey ones, or one (C, H, W), of
        integers in 0…255; or a list of image files or Pillow images of any size.
        """
        return [self.names[int(best)] for best in self.probabilities(images).argmax(1)]

    @torch.no_grad()
    def probabilities(self, images: Any) -> Tensor:
        """softmax of the scores: (n, classes)."""
        device = next(self.parameters()).device
        pixels = as_pixels(images, self.image_shape).to(device)
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
    method, network = build_network(config, len(result["classes"]), (channels, height, width))
    method.attach(network, torch.zeros(2, channels, height, width))
    method.load_state_dict(state["method"])
    network.load_state_dict(state["network"])
    trained = TrainedNetwork(
        method.classifier(network),
        result["classes"],
        (channels, height, width),
        Augment(**result["normalisation"]),
    )
    return trained.to(find_device(device)).eval()


def as_pixels(images: Any, image_shape: tuple[int, int, int]) -> Tensor:
    """Whatever holds images, as (n, C, H, W)."""
    if isinstance(images, (list, tuple)) and not isinstance(images[0], (Tensor, np.ndarray)):
        return torch.stack([read_image(image, image_shape) for image in images])
    if isinstance(images, (list, tuple)):
        images = torch.stack([torch.as_tensor(image) for image in images])
    pixels = torch.as_tensor(images)
    if pixels.is_floating_point():
        raise UserError("expected images as whole numbers in 0…255, but got floating-point ones")
    if pixels.dim() == 3:
        pixels = pixels[None] if len(pixels) == image_shape[0] else pixels[:, None]
    if pixels.dim() != 4 or tuple(pixels.shape[1:]) != image_shape:
        raise UserError(
            f"expected images of shape (n, {', '.join(map(str, image_shape))}), "
            f"but got {tuple(torch.as_tensor(images).shape)}"
        )
    return pixels


def read_image(image: Any, image_shape: tuple[int, int, int]) -> Tensor:
    """A file or Pillow image, in the colours and the size that the network knows: (C, H, W)."""
    from PIL import Image

    channels, height, width = image_shape
    try:
        picture = image if isinstance(image, Image.Image) else Image.open(image)
        picture = picture.convert("L" if channels == 1 else "RGB").resize((width, height))
    except (OSError, ValueError, Image.DecompressionBombError):
        raise UserError(f"cannot read {image} as an image") from None
    return torch.from_numpy(np.array(picture)).reshape(height, width, channels).permute(2, 0, 1)
