"""Load the network of a finished run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..backbones.lora import merge_adapters
from ..streams.augmentation import Augment
from .build import build_network, find_device
from .folder import RunFolder
from .image_input import as_pixels


class TrainedNetwork(nn.Module):
    """A trained classifier. names: of its classes. image_shape: (C, H, W) of its images."""

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
        """The name of the class of each image.

        images: an array or tensor (n, C, H, W) or (n, H, W, C), (n, H, W) for grey ones, or a
        single image without n, of integers in 0…255; or an image file or Pillow image of any size,
        or a list of them.
        """
        return [self.names[int(best)] for best in self.probabilities(images).argmax(1)]

    @torch.no_grad()
    def probabilities(self, images: Any) -> Tensor:
        """softmax(scores), (n, classes)."""
        device = next(self.parameters()).device
        pixels = as_pixels(images, self.image_shape).to(device)
        if not len(pixels):
            return torch.zeros(0, len(self.names))
        return torch.cat([self(part) for part in pixels.split(256)]).softmax(1).cpu()


def load(path: str | Path, device: str = "cpu", *, after_task: int | None = None) -> TrainedNetwork:
    """The network of a finished run: `liderlab.load("runs/x").predict(images)`.

    It needs the run's folder, not the data. Adapters (LoRA) are merged into the weights.
    after_task: the network after that task (0, 1, …), of a run with keep_tasks.
    """
    folder = RunFolder.open(path)
    config, result = folder.config(), folder.result()
    folder.check_same(config)
    state = folder.state() if after_task is None else folder.task_state(after_task)
    shape = channels, height, width = result["image_shape"]
    with folder.consistent():
        method, network = build_network(config, len(result["classes"]), (channels, height, width))
        method.attach(network, torch.zeros(2, *shape))
        method.load_state_dict(state["method"])
        network.load_state_dict(state["network"])
        merge_adapters(network)
        trained = TrainedNetwork(
            method.classifier(network),
            result["classes"],
            (channels, height, width),
            Augment(**result["normalisation"]),
        ).eval()
        with torch.no_grad():  # raises if the files do not fit together
            trained(torch.zeros(1, *shape))
    return trained.to(find_device(device))
