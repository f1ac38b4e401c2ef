"""Scores, accuracy and loss of a classifier, as all the analyses compute them.

A **model** maps inputs (n, …) to one score per class (n, classes). If no gradient is needed, any
function will do; an `nn.Module` runs in eval mode and returns to its own mode. **Data** are tensors
x: (n, …), inputs of the model, and y: (n,), their classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..errors import UserError
from ..regularizers.stages import eval_mode

Model = Callable[[Tensor], Tensor]
BATCH = 256


@contextmanager
def in_eval_mode(model: Model) -> Iterator[None]:
    """Eval mode, if the model is a module; whether gradients are recorded does not change."""
    if isinstance(model, nn.Module):
        with eval_mode(model):
            yield
    else:
        yield


@torch.no_grad()
def scores(model: Model, x: Tensor, classes: Sequence[int] | None = None) -> Tensor:
    """(n, classes): the model's scores for these consecutive classes, computed in batches."""
    device = device_of(model, x)
    with in_eval_mode(model):
        parts = [model(part.to(device)).cpu() for part in x.split(BATCH)]
    return select_classes(torch.cat(parts), classes)


def select_classes(logits: Tensor, classes: Sequence[int] | None) -> Tensor:
    """The columns of these consecutive classes; all columns for None."""
    return logits if classes is None else logits[:, classes[0] : classes[-1] + 1]


def shift_labels(y: Tensor, classes: Sequence[int] | None) -> Tensor:
    """Labels as columns of `select_classes`."""
    return y if classes is None else y - classes[0]


def margin(values: Tensor, target: Tensor) -> Tensor:
    """The target's value minus the highest other value: (n, classes), (n,) → (n,).

    >>> margin(torch.tensor([[3.0, 1.0], [3.0, 1.0]]), torch.tensor([0, 1]))
    tensor([ 2., -2.])
    """
    if values.shape[1] < 2:
        raise UserError(
            "one class has no other to compare with: choose tasks of two or more classes"
        )
    right = values.gather(1, target[:, None])[:, 0]
    others = values.scatter(1, target[:, None], -torch.inf)
    return right - others.amax(1)


def accuracy(logits: Tensor, y: Tensor, classes: Sequence[int] | None = None) -> float:
    """Percent of rows whose highest score is that of the label."""
    right = select_classes(logits, classes).argmax(1) == shift_labels(y, classes)
    return 100 * float(right.double().mean())


def cross_entropy(logits: Tensor, y: Tensor, classes: Sequence[int] | None = None) -> Tensor:
    """Mean cross-entropy of the softmax over these classes."""
    return F.cross_entropy(select_classes(logits, classes), shift_labels(y, classes))


def device_of(model: Model, x: Tensor) -> torch.device:
    parameters = model.parameters() if isinstance(model, nn.Module) else iter(())
    return next(parameters, x).device


def check_data(x: Tensor, y: Tensor, classes: Sequence[int] | None = None) -> None:
    if len(x) != len(y) or len(y) == 0:
        raise ValueError(
            f"Expected one label for each of one or more samples, but got {len(x)} samples and "
            f"{len(y)} labels."
        )
    if classes is not None and not bool(((y >= classes[0]) & (y <= classes[-1])).all()):
        raise ValueError(f"Expected labels in {classes[0]}…{classes[-1]}, the given classes.")
