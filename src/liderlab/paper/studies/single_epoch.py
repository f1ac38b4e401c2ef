"""One pass over every task: GMED, DER++ and ER-ACE, 10 and 20 tasks."""

from .study_definition import grid
from .study_rows import accuracy_study

STUDY = accuracy_study(
    title="One epoch per task",
    tables={"faa": "single-epoch", "ff": "single-epoch"},
    settings=("cifar100-online20", "cifar100-online"),
    variants=[
        {"method": "gmed"},
        *grid(method=("der++", "er-ace"), addition=("", "lider")),
    ],
    series={"alone": "", "+ LiDER": "lider"},
    notes=["The paper prints no hyperparameters for one epoch: these are its best for 50."],
)
