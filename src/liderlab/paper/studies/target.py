"""LiDER on the batches of the current task, or on those of the buffer."""

from .study_definition import grid
from .study_rows import accuracy_study

STUDY = accuracy_study(
    title="LiDER on the current task or on the buffer",
    tables={"faa": "target-faa", "ff": "target-ff"},
    settings=("cifar100", "cifar100-pretrained", "miniimagenet", "cub200"),
    variants=grid(method=("er-ace", "der++"), addition=("", "lider-stream", "lider")),
    series={"alone": "", "+ LiDER (current task)": "lider-stream", "+ LiDER (buffer)": "lider"},
)
