"""The fields of result.json that readers rely on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat, PositiveInt

from ..streams import CLASSES, DOMAINS

TASKS = "task-incremental"
Number = FiniteFloat | None
Matrix = list[list[Number]]


def _square(matrix: Matrix) -> Matrix:
    if not matrix or any(len(row) != len(matrix) for row in matrix):
        raise ValueError("expected a row after every task, with a number for every task")
    return matrix


class _Part(BaseModel):
    model_config = ConfigDict(strict=True)


class _Named(_Part):
    name: str


class _Sized(_Part):
    size: int


class _Config(_Part):
    benchmark: _Named
    method: _Named
    backbone: _Named
    regularizers: dict[str, Any]
    memory: _Sized
    seed: int


class _Accuracy(_Part):
    faa: Number
    ff: Number
    bwt: Number
    fwt: Number
    aia: Number
    min_acc: Number = None
    wc_acc: Number = None
    aaa: Number = None
    accuracy_matrix: Annotated[Matrix, AfterValidator(_square)]
    memory_accuracy: Matrix | None = None


class _Data(_Part):
    fingerprint: str
    train: Annotated[list[int], Field(min_length=1)]
    test: Annotated[list[int], Field(min_length=1)]


class _Result(_Part):
    """Fields with a default are missing in results of earlier versions."""

    config: _Config
    class_incremental: _Accuracy
    task_incremental: _Accuracy
    classes: list[Any]
    image_shape: Annotated[list[PositiveInt], Field(min_length=3, max_length=3)]
    normalisation: dict[str, list[FiniteFloat]]
    setting: str = CLASSES
    versions: dict[str, Any]
    seconds: FiniteFloat
    seconds_cpu: Number = None
    seconds_evaluating: list[FiniteFloat] = []
    scale: _Named | None = None
    data: _Data | None = None
    pretrained: dict[str, str] | None = None
    imports: list[dict[str, str]] = []
    steps: int | None = None
    skipped_steps: int = 0
    passes: int | None = None
    seconds_training: Number = None
    images_per_second: Number = None


def setting_of(result: Mapping[str, Any]) -> str:
    """The setting of the accuracies under class_incremental: domains stand there as well."""
    return str(result.get("setting", CLASSES))


def settings_of(result: Mapping[str, Any]) -> dict[str, str]:
    """The accuracies of a result, by their names in it, with the setting that each was measured in.

    Domains that share their classes have one: the network always chooses among all of them.

    >>> settings_of({"setting": "domain-incremental"})
    {'class_incremental': 'domain-incremental'}
    """
    first = {"class_incremental": setting_of(result)}
    return first if setting_of(result) == DOMAINS else first | {"task_incremental": TASKS}


def check_result(tree: Any) -> None:
    """Raise a ValueError if a field is missing or has another type; additional fields are fine.

    >>> check_result({"config": {}})
    Traceback (most recent call last):
    pydantic_core._pydantic_core.ValidationError: ...
    """
    _Result.model_validate(tree)
