"""scikit-learn's bundled handwritten digits: real data without a download."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from ..augmentation import Augment
from ..domains import in_domains, permutations, rotations
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


def rotated_digits(
    tasks: int = 5, class_order: Sequence[int] | None = None, *, degrees: float = 180.0
) -> SplitStream:
    """All digits in every task, turned by 0, d/T, 2d/T, … degrees; not augmented."""
    return in_domains(_plain_digits(class_order), rotations(tasks, degrees))


def permuted_digits(
    tasks: int = 5, class_order: Sequence[int] | None = None, *, seed: int = 0
) -> SplitStream:
    """All digits in every task, from the second on with pixels in an order of its own. seed: of
    these orders."""
    whole = _plain_digits(class_order)
    return in_domains(whole, permutations(tasks, seed, whole.image_shape))


def _plain_digits(class_order: Sequence[int] | None) -> SplitStream:
    """Digits as one task; shifting an image would mix up its permuted pixels."""
    whole = split_digits(1, class_order)
    return replace(whole, transform=Augment(whole.transform.mean, whole.transform.std))
