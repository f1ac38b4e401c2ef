"""What is kept of a finished run: small enough to be committed. No torch needed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer, ValidationError

from ...config.messages import one_sentence
from ...errors import UserError
from ...files import write_atomically
from ..studies.cases import Case

FORMAT = 1
Tree = dict[str, Any]
Matrix = list[list[float | None]]
DEFAULTS = {field.name: field.default for field in fields(Case)}


def _case(value: Any) -> Any:
    if isinstance(value, dict) and (extra := value.keys() - DEFAULTS.keys()):
        raise ValueError(f"a case has no {', '.join(sorted(extra))}")
    return value


def _sparse(case: Case) -> Tree:
    """Without what is as usual."""
    return {key: value for key, value in asdict(case).items() if value != DEFAULTS[key]}


class Metrics(BaseModel):
    """Percentages of a run; None where they are not defined, or were not measured."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    faa: float | None
    ff: float | None
    bwt: float | None
    fwt: float | None
    aia: float | None


class Curves(BaseModel):
    """λ_k and c_k by stage, each the mean of a stretch that ends at `step`; borders: the steps at
    which the tasks ended."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    step: list[int]
    constants: dict[str, list[float | None]]
    targets: dict[str, list[float | None]]
    borders: list[int]


class LedgerRecord(BaseModel):
    """One run.

    run: the name of its folder. memory_accuracy: on the memory after the last task, mean over the
    tasks in it; gap: how far that lies above FAA. matrix: class-incremental accuracy on every task
    (column) after every task (row). seconds_cpu: None where the run did not write it down. commit:
    of this project, where it is known. network: SHA-256 of the final weights. analyses: what
    `lider analyze` found in the run, by analysis. command: repeats the run.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    format: int = FORMAT
    run: str
    case: Annotated[Case, BeforeValidator(_case), PlainSerializer(_sparse)]
    scale: str
    class_incremental: Metrics
    task_incremental: Metrics
    memory_accuracy: float | None
    gap: float | None
    matrix: Matrix
    curves: Curves | None
    steps: int
    seconds: float
    seconds_cpu: float | None
    network: str | None
    data: Tree
    versions: Tree
    commit: str | None
    analyses: dict[str, Tree]
    config: Tree
    command: str

    @property
    def seed(self) -> int:
        return self.case.seed

    @property
    def name(self) -> str:
        """Readable, and different for different runs of the ledger."""
        return record_name(self.case, self.scale)

    def metric(self, name: str) -> float | None:
        """faa or ff, class-incremental."""
        value: float | None = getattr(self.class_incremental, name)
        return value

    def text(self) -> str:
        """A few lines: a change shows where it is."""
        tree = self.model_dump(mode="json")
        lines = [f" {json.dumps(k)}: {_short(v)}" for k, v in tree.items()]
        return "{\n" + ",\n".join(lines) + "\n}\n"


def record_name(case: Case, scale: str) -> str:
    """
    >>> record_name(Case("cifar100", 500, "er-ace", "lider", "controlled", seed=2), "cpu")
    'cpu-cifar100-500-er-ace+lider-controlled-seed2'
    """
    parts = [scale, case.setting, str(case.buffer or ""), variant(case)]
    parts += ["controlled"] if case.column == "controlled" else []
    parts += [f"p{case.poison:g}"] if case.poison else []
    return "-".join([*(part for part in parts if part), f"seed{case.seed}"])


def variant(case: Case) -> str:
    """The method and what was added to it, as cells are named.

    >>> variant(Case("cifar100", 500, "er-ace", "lider", estimator="batch"))
    'er-ace+lider-batch'
    >>> variant(Case("cifar100", 500, "er-ace", "lider", alpha=1.25, beta=0.1))
    'er-ace+lider-a1.25-b0.1'
    """
    own = {"": case.estimator, "a": case.alpha, "b": case.beta}
    words = [f"{name}{_plain(value)}" for name, value in own.items() if value is not None]
    return "-".join([case.method + (f"+{case.addition}" if case.addition else ""), *words])


def _plain(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def read_record(text: str | bytes, place: str) -> LedgerRecord:
    """place: what to call it if something is wrong with it."""
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        raise UserError(f"{place} is no record: not JSON") from None
    if not isinstance(tree, dict) or "format" not in tree:
        raise UserError(f"{place} is no record: it has no format")
    if tree["format"] != FORMAT:
        raise UserError(
            f"{place} is a record of format {tree['format']!r}, and this version reads {FORMAT}"
        )
    try:
        return LedgerRecord.model_validate(tree)
    except ValidationError as error:
        raise UserError(f"{place} is no record: {one_sentence(error, LedgerRecord)}") from None


def read_records(folder: Path | None = None) -> list[LedgerRecord]:
    """All in a folder; by default those that come with the package."""
    if folder is not None and not folder.is_dir():
        raise UserError(f"{folder} is not a folder of records")
    home = files(__package__) / "records" if folder is None else folder
    if not home.is_dir():  # nothing was measured yet
        return []
    found = sorted((file for file in home.iterdir() if file.name.endswith(".json")), key=_name)
    records = [read_record(file.read_bytes(), file.name) for file in found]
    for file, record in zip(found, records, strict=True):
        if file.name != f"{record.name}.json":
            raise UserError(f"{file.name} holds the record {record.name}: rename it")
    return records


def write_records(records: Iterable[LedgerRecord], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for record in records:
        data = record.text().encode()
        write_atomically(folder / f"{record.name}.json", data)


def merged(old: Sequence[LedgerRecord], new: Sequence[LedgerRecord]) -> list[LedgerRecord]:
    """New records take the place of old ones of the same name."""
    found = {record.name: record for record in (*old, *new)}
    return [found[name] for name in sorted(found)]


def _name(file: Any) -> str:
    return str(file.name)


def _short(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
