"""Fixed or learned Lipschitz targets, with and without pre-training."""

from .. import numbers
from .study_definition import grid
from .study_rows import accuracy_study

STUDY = accuracy_study(
    title="Fixed or learned Lipschitz targets",
    tables={"faa": "fixed-target"},
    settings=("cifar100", "cifar100-pretrained"),
    variants=grid(method=("der++", "er-ace"), addition=("lider-fixed", "lider")),
    series={"fixed targets": "lider-fixed", "learned targets": "lider"},
    against="lider-fixed",
    notes=[
        "ΔFAA: learned over fixed targets. Fixed ones stay where calibration put them.",
        *(
            f"The paper's {cell.value} for {cell.method} in {cell.setting}, "
            f"buffer {cell.buffer}: {cell.note}."
            for cell in numbers.cells()
            if cell.table == "fixed-target" and cell.note
        ),
    ],
)
