"""Asking a classifier, as all the analyses do.

A **model** maps inputs (n, …) to one score per class (n, classes). Where no gradient is needed any
function will do; an `nn.Module` is put into eval mode and gets its own mode back. **Data** are
tensors x: (n, …), as the model takes them, and y: (n,), the right classes.
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
def asking(model: Model) -> Iterator[None]:
    """Eval mode, if the model has one; gradients stay as they are."""
    if isinstance(model, nn.Module):
        with eval_mode(model):
            yield
    else:
        yield


@torch.no_grad()
def scores(model: Model, x: Tensor, classes: Sequence[int] | None = None) -> Tensor:
    """(n, classes): the model's scores, of these (consecutive) classes only, in batches."""
    device = device_of(model, x)
    with asking(model):
        parts = [model(part.to(device)).cpu() for part in x.split(BATCH)]
    return among(torch.cat(parts), classes)


def among(logits: Tensor, classes: Sequence[int] | None) -> Tensor:
    """The columns of these consecutive classes; all of them if None."""
    return logits if classes is None else logits[:, classes[0] : classes[-1] + 1]


def relative(y: Tensor, classes: Sequence[int] | None) -> Tensor:
    """Labels as columns of `among`."""
    return y if classes is None else y - classes[0]


def margin(values: Tensor, target: Tensor) -> Tensor:
    """value of the target − the highest of the others: (n, classes), (n,) → (n,).

    >>> margin(torch.tensor([[3.0, 1.0], [3.0, 1.0]]), torch.tensor([0, 1]))
    tensor([ 2., -2.])
    """
    if values.shape[1] < 2:
        raise UserError("one class has no other to be told from: choose tasks of two or more")
    right = values.gather(1, target[:, None])[:, 0]
    others = values.scatter(1, target[:, None], -torch.inf)
    return right - others.amax(1)


def accuracy(logits: Tensor, y: Tensor, classes: Sequence[int] | None = None) -> float:
    """Percent of rows whose best score is the label's."""
    right = among(logits, classes).argmax(1) == relative(y, classes)
    return 100 * float(right.double().mean())


def cross_entropy(logits: Tensor, y: Tensor, classes: Sequence[int] | None = None) -> Tensor:
    """Mean cross-entropy of the softmax over these classes."""
    return F.cross_entropy(among(logits, classes), relative(y, classes))


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
        raise ValueError(f"Expected labels in {classes[0]}…{classes[-1]}, the classes asked about.")
