"""The methods: one file each, listed here. A new method is one file and one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..registry import ClassRegistry

if TYPE_CHECKING:
    from .base import Method

METHODS: ClassRegistry[Method] = ClassRegistry(
    "method",
    __name__,
    (
        ("finetune", "finetune:Finetune", "trains on each task as it comes: the lower bound"),
        ("joint", "joint:Joint", "trains once on all tasks together: the upper bound"),
        ("er", "er:ER", "cross-entropy on the stream and on replayed samples"),
        ("er-ace", "er_ace:ERACE", "ER whose stream loss leaves past classes alone"),
        ("der", "der:logits_only", "replays stored logits"),
        ("der++", "der:DER", "replays stored logits and labels, from two independent draws"),
        ("x-der-rpc", "x_der_rpc:XDER", "DER++ with up-to-date logits and room for future classes"),
        ("icarl", "icarl:ICaRL", "distils the last network; classifies by the nearest class mean"),
        ("gdumb", "gdumb:GDumb", "only collects, then fits a fresh network on the memory"),
        (
            "a-gem",
            "a_gem:AGEM",
            "projects steps so that the loss on a replay batch cannot rise",
        ),
        ("lwf", "lwf:LwF", "distils the last network on the new task's samples; no memory"),
        ("ncm", "ncm:NCM", "the nearest class mean of a frozen backbone's features; no training"),
        (
            "linear-probe",
            "linear_probe:LinearProbe",
            "trains the last layer alone, on the stream and on replayed samples",
        ),
        ("gmed", "gmed:GMED", "ER that edits replayed samples to be harder to remember"),
    ),
)
