"""Label poisoning: wrong labels on purpose, to measure how robust rehearsal is."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..errors import check_numbers
from ..functional.sampling import wrong_labels


class Poison:
    """Replaces a label with probability p when the sample enters the memory.

    The new label is uniform over the *other* classes of the sample's task, so that p is the
    fraction of wrong labels (a task of one class stays clean). Stored logits are not changed.
    It has its own generator, so that poisoning changes no other draw.

    classes: the classes of every task, in order.

    >>> poison = Poison(1.0, [range(0, 2), range(2, 5)], seed=0)
    >>> poison(torch.tensor([0, 1]), torch.tensor([0, 0]))
    (tensor([1, 0]), tensor([True, True]))
    """

    def __init__(self, probability: float, classes: Sequence[Sequence[int]], seed: int) -> None:
        check_numbers(probability=probability, at_least=0, at_most=1)
        self.probability, self.classes = probability, classes
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, y: Tensor, task: Tensor) -> tuple[Tensor, Tensor]:
        """Labels (n,), and a mask (n,) of those that were replaced."""
        return wrong_labels(y, task, self.classes, self.probability, self.generator)
