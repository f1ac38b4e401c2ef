"""The paper's tables and figures, one study each: `lider study NAME`. A new one is one file and one
line. No torch needed to list them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...registry import Entry, Registry

if TYPE_CHECKING:
    from .study_definition import Study

_HOME = "liderlab.paper.studies"
LOOKS = {"analysis": True}  # looks into single runs: `lider analyze NAME RUN` does, too

STUDIES = Registry(
    "study",
    {
        "main": Entry(
            f"{_HOME}.main_tables:STUDY", "five methods with and without LiDER, joint, finetune"
        ),
        "regularizers": Entry(f"{_HOME}.regularizers:STUDY", "LiDER against sSGD, oEWC and oLAP"),
        "target": Entry(f"{_HOME}.target:STUDY", "LiDER on the current task or on the buffer"),
        "fixed-target": Entry(f"{_HOME}.fixed_target:STUDY", "fixed or learned Lipschitz targets"),
        "poisoning": Entry(f"{_HOME}.poisoning:STUDY", "wrong labels in the buffer"),
        "single-epoch": Entry(f"{_HOME}.single_epoch:STUDY", "one pass over every task"),
        "sensitivity": Entry(f"{_HOME}.sensitivity:STUDY", "what LiDER's α and β do"),
        "guessing-game": Entry(
            f"{_HOME}.guessing_game:STUDY", "can one tell what is in the buffer?", LOOKS
        ),
        "decision-surface": Entry(
            f"{_HOME}.decision_surface:STUDY",
            "what is left of the decision surface, task by task",
            LOOKS,
        ),
        "lipschitz-vs-buffer": Entry(
            f"{_HOME}.lipschitz_vs_buffer:STUDY", "Lipschitz constants as the memory shrinks", LOOKS
        ),
        "weight-perturbation": Entry(
            f"{_HOME}.weight_perturbation:STUDY", "loss and accuracy under noisy weights", LOOKS
        ),
        "hessian": Entry(f"{_HOME}.hessian:STUDY", "curvature of the loss", LOOKS),
        "efficiency": Entry(
            f"{_HOME}.efficiency:STUDY", "memory, speed and accuracy of growing networks"
        ),
        "toy": Entry(f"{_HOME}.toy:STUDY", "a decision boundary in the plane, task by task"),
    },
)


def find_study(name: str) -> Study:
    """The study of that name."""
    study: Study = STUDIES.load(name)  # type: ignore[assignment]  # an entry loads any value
    return study
