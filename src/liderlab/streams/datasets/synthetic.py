"""A synthetic stream: each class is a random pattern, each image that pattern plus noise."""

from collections.abc import Sequence

import torch

from ...errors import check_numbers
from ..augmentation import Augment
from ..splitting import Images, SplitStream, split


def synthetic(
    tasks: int = 3,
    class_order: Sequence[int] | None = None,
    *,
    classes: int = 6,
    per_class: int = 24,
    channels: int = 3,
    side: int = 8,
    pixel_noise: float = 40.0,
    seed: int = 0,
) -> SplitStream:
    """Make per_class training images of every class, and a third as many for testing."""
    counts = {"classes": classes, "per_class": per_class, "channels": channels, "side": side}
    check_numbers(**counts, at_least=1, at_most=10**6, whole=True)
    check_numbers(pixel_noise=pixel_noise, at_least=0)
    check_numbers(seed=seed, at_least=0, below=2**32, whole=True)
    generator = torch.Generator().manual_seed(seed)
    shape = (channels, side, side)
    patterns = 60 + 135 * torch.rand(classes, *shape, generator=generator)

    def images(per_class: int) -> Images:
        labels = torch.arange(classes).repeat_interleave(per_class)
        noise = torch.randn(len(labels), *shape, generator=generator)
        pixels = patterns[labels] + pixel_noise * noise
        return Images(pixels.clamp(0, 255).to(torch.uint8), labels)

    transform = Augment([0.5] * channels, [0.25] * channels, padding=1, flip=True)
    return split(
        images(per_class), images(-(-per_class // 3)), tasks, class_order, transform=transform
    )
