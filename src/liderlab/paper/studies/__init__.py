"""The paper's tables and figures, one study each: `lider study NAME`. A new study is one file and
one line here. No torch needed to list them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...registry import Entry, Registry

if TYPE_CHECKING:
    from .study_definition import Study

_STUDIES = (
    ("main", "main_tables", "five methods with and without LiDER, joint, finetune"),
    ("regularizers", "regularizers", "LiDER against sSGD, oEWC and oLAP"),
    ("target", "target", "LiDER on the current task or on the buffer"),
    ("fixed-target", "fixed_target", "fixed or learned Lipschitz targets"),
    ("which-lider", "which_lider", "the paper's LiDER, the released one, parts of both, a control"),
    ("poisoning", "poisoning", "wrong labels in the buffer"),
    ("single-epoch", "single_epoch", "one pass over every task"),
    ("sensitivity", "sensitivity", "accuracy over a grid of LiDER's α and β"),
    ("guessing-game", "guessing_game", "does the network reveal its buffer?"),
    ("decision-surface", "decision_surface", "how much of the decision surface is kept"),
    ("lipschitz-vs-buffer", "lipschitz_vs_buffer", "Lipschitz constants as the memory shrinks"),
    ("weight-perturbation", "weight_perturbation", "loss and accuracy under noisy weights"),
    ("hessian", "hessian", "curvature of the loss"),
    ("efficiency", "efficiency", "memory, speed and accuracy of growing networks"),
    ("matrix", "matrix", "every regulariser on every method, tuned alike; beyond the paper"),
    ("toy", "toy", "a decision boundary in the plane, task by task"),
)
_ANALYSES = (  # of single runs: `lider analyze NAME RUN` offers them, too
    "guessing-game",
    "decision-surface",
    "lipschitz-vs-buffer",
    "weight-perturbation",
    "hessian",
)


def facts(name: str) -> dict[str, bool]:
    """open_ended: its runs depend on the command's options, so that they cannot be counted."""
    return {"analysis": name in _ANALYSES, "open_ended": name == "matrix"}


STUDIES = Registry(
    "study",
    {
        name: Entry(f"{__name__}.{module}:STUDY", summary, facts(name))
        for name, module, summary in _STUDIES
    },
)


def find_study(name: str) -> Study:
    """The study of that name."""
    study: Study = STUDIES.load(name)  # type: ignore[assignment]  # an entry loads any value
    return study
