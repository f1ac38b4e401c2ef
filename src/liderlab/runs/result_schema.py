"""What may be taken for granted of a result.json, whoever has edited it and whoever wrote it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat, PositiveInt

Matrix = list[list[FiniteFloat | None]]


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
    scale: _Named | None = None


class _Accuracy(_Part):
    faa: FiniteFloat | None
    ff: FiniteFloat | None
    bwt: FiniteFloat | None
    fwt: FiniteFloat | None
    aia: FiniteFloat | None
    accuracy_matrix: Annotated[Matrix, AfterValidator(_square)]
    memory_accuracy: Matrix | None = None


class _Normalisation(_Part):
    mean: list[FiniteFloat]
    std: list[FiniteFloat]


class _Data(_Part):
    fingerprint: str
    train: Annotated[list[int], Field(min_length=1)]
    test: Annotated[list[int], Field(min_length=1)]


class _Weights(_Part):
    name: str
    sha256: str


class _Result(_Part):
    """Fields with a default: earlier versions did not write them."""

    config: _Config
    class_incremental: _Accuracy
    task_incremental: _Accuracy
    classes: list[Any]
    image_shape: Annotated[list[PositiveInt], Field(min_length=3, max_length=3)]
    normalisation: _Normalisation
    versions: dict[str, Any]
    seconds: FiniteFloat
    seconds_cpu: FiniteFloat | None = None
    seconds_evaluating: list[FiniteFloat] = []
    scale: _Named | None = None
    data: _Data | None = None
    pretrained: _Weights | None = None
    steps: int | None = None
    skipped_steps: int = 0


def check_result(tree: Any) -> None:
    """Raises a ValueError if something is missing or of another kind; more is always welcome.

    >>> check_result({"config": {}})
    Traceback (most recent call last):
    pydantic_core._pydantic_core.ValidationError: ...
    """
    _Result.model_validate(tree)
