"""scikit-learn's bundled handwritten digits: real data without a download."""

from collections.abc import Sequence

import torch

from ..augmentation import Augment
from ..splitting import Images, SplitStream, split


def split_digits(tasks: int = 5, class_order: Sequence[int] | None = None) -> SplitStream:
    """1,797 images of 8x8 pixels, grey, 10 classes; every fifth one of a class is for testing.

    >>> stream = split_digits()
    >>> len(stream.tasks), stream.image_shape, len(stream.tasks[0].train), len(stream.tasks[0].test)
    (5, (1, 8, 8), 289, 71)
    """
    from sklearn.datasets import load_digits  # heavy, and only needed here

    digits = load_digits()
    pixels = torch.from_numpy(digits.images).mul(255 / 16).round().to(torch.uint8)[:, None]
    labels = torch.from_numpy(digits.target).long()
    place_in_class = (torch.nn.functional.one_hot(labels).cumsum(0) - 1).gather(1, labels[:, None])
    is_test = place_in_class[:, 0] % 5 == 4
    train, test = (Images(pixels[part], labels[part]) for part in (~is_test, is_test))
    return split(train, test, tasks, class_order, transform=Augment([0.3053], [0.3760], padding=1))
