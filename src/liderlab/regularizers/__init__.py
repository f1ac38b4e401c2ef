"""The regularisers, which any method can take: one file each, listed here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..registry import ClassRegistry

if TYPE_CHECKING:
    from .base import Regularizer

REGULARIZERS: ClassRegistry[Regularizer] = ClassRegistry(
    "regularizer",
    __name__,
    (
        ("bfp", "bfp:BFP", "keeps the old features a linear image of the new ones"),
        ("c-flat", "c_flat:CFlat", "steps towards minima that are flat in loss and gradient"),
        ("casper", "casper:CaSpeR", "lets replayed features fall into groups, one for each class"),
        ("lider", "lider:LiDER", "bounds each stage's Lipschitz constant on replayed samples"),
        ("mrfa", "mrfa:MRFA", "moves features of replayed samples towards a larger loss"),
        ("oewc", "oewc:OEWC", "holds weights in place by a running diagonal Fisher"),
        ("olap", "olap:OLAP", "holds layers in place by a running Kronecker-factored curvature"),
        ("spectral", "spectral:Spectral", "keeps every layer's largest singular value near one"),
        ("sam", "sam:SAM", "steps down the gradient of the worst point near the weights"),
        ("ssgd", "ssgd:SSGD", "stable training: falling learning rate, dropout, small batches"),
        ("star", "star:STAR", "keeps predictions on replayed samples under the worst change of θ"),
    ),
)
