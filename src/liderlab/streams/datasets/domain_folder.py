"""Your own images of several domains: PATH/DOMAIN/CLASS/*.jpg, the same classes in each domain.

Every domain is read like a folder of class folders (image_folder.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import UserError, unknown
from ..augmentation import Augment
from ..domains import join_domains
from ..splitting import SplitStream, split
from .image_folder import cached_folder, class_folders, own_folder


def domains(
    tasks: int | None = None,
    class_order: Sequence[int] | None = None,
    *,
    path: str = "",
    size: int = 64,
    order: list[str] | None = None,
) -> SplitStream:
    """A task for each domain folder, in the order of their names.

    tasks: only so many domains; None: all. size: images are stretched to size x size. They are
    normalised by mean and standard deviation of the first domain, and augmented by crops (padding
    size/8) and flips. order: the names of the domains to use, in another order.
    """
    source = own_folder(path, "domains", size)
    names = [folder.name for folder in class_folders(source)]
    chosen = names if order is None else list(dict.fromkeys(order))
    for name in chosen:
        if name not in names:
            raise unknown("domain", name, names)
    if tasks is not None and not 1 <= tasks <= len(chosen):
        raise UserError(f"{source} has {len(chosen)} domains: 1…{len(chosen)} tasks, not {tasks}")
    data = [cached_folder(source / name, size) for name in chosen[:tasks]]
    transform = Augment(data[0].mean, data[0].std, padding=size // 8, flip=True)
    return join_domains(
        [split(d.train, d.test, 1, class_order, names=d.names, transform=transform) for d in data]
    )
