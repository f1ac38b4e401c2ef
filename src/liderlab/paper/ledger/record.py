"""The record of a finished run, small enough to be committed. No torch needed."""

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
DIGITS = 4  # of a percentage: more than the number of test images can resolve
Tree = dict[str, Any]
Matrix = list[list[float | None]]
DEFAULTS = {field.name: field.default for field in fields(Case)}


def rounded(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)


def _check_names(value: Any) -> Any:
    if isinstance(value, dict) and (extra := value.keys() - DEFAULTS.keys()):
        raise ValueError(f"a case has no {', '.join(sorted(extra))}")
    return value


def _without_defaults(case: Case) -> Tree:
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
    """λ_k and c_k by stage, each the mean of a stretch of steps that ends at `step`; borders: the
    last steps of the tasks."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    step: list[int]
    constants: dict[str, list[float | None]]
    targets: dict[str, list[float | None]]
    borders: list[int]


class LedgerRecord(BaseModel):
    """One run.

    run: the name of its folder. memory_accuracy: on the memory after the last task, mean over the
    tasks in it; gap: memory_accuracy − FAA. matrix: class-incremental accuracy on every task
    (column) after every task (row). seconds_cpu: None if the run did not measure it. commit: of
    this project, if known. network: SHA-256 of the final weights. analyses: the results of `lider
    analyze` for the run, by analysis. command: repeats the run.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    format: int = FORMAT
    run: str
    case: Annotated[Case, BeforeValidator(_check_names), PlainSerializer(_without_defaults)]
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
        return record_name(self.case, self.scale)

    def metric(self, name: str) -> float | None:
        """faa or ff, class-incremental."""
        value: float | None = getattr(self.class_incremental, name)
        return value

    def text(self) -> str:
        """The record's JSON, one line per field."""
        options: Any = {"ensure_ascii": False, "allow_nan": False, "separators": (",", ":")}
        tree = self.model_dump(mode="json").items()
        lines = [f" {json.dumps(key)}: {json.dumps(value, **options)}" for key, value in tree]
        return "{\n" + ",\n".join(lines) + "\n}\n"


def record_name(case: Case, scale: str) -> str:
    """A readable name, different for different runs of the ledger.

    >>> record_name(Case("cifar100", 500, "er-ace", "lider", "controlled", seed=2), "cpu")
    'cpu-cifar100-500-er-ace+lider-controlled-seed2'
    """
    parts = [scale, case.setting, str(case.buffer or ""), variant(case)]
    parts += ["controlled"] if case.column == "controlled" else []
    parts += [f"p{case.poison:g}"] if case.poison else []
    return "-".join([*(part for part in parts if part), f"seed{case.seed}"])


def variant(case: Case) -> str:
    """The method and its addition, as cells are named.

    >>> variant(Case("cifar100", 500, "er-ace", "lider", estimator="batch"))
    'er-ace+lider-batch'
    >>> variant(Case("cifar100", 500, "er-ace", "lider", alpha=1.25, beta=0.1))
    'er-ace+lider-a1.25-b0.1'
    """
    words = [case.method + (f"+{case.addition}" if case.addition else "")]
    words += [case.estimator] if case.estimator else []
    weights = {"a": case.alpha, "b": case.beta}
    words += [f"{name}{value:g}" for name, value in weights.items() if value is not None]
    return "-".join(words)


def read_record(text: str | bytes, source: str) -> LedgerRecord:
    """Parse a record; source: its name in error messages."""
    try:
        tree = json.loads(text)
    except ValueError:
        raise UserError(f"{source} is not a record: not JSON") from None
    if not isinstance(tree, dict) or "format" not in tree:
        raise UserError(f"{source} is not a record: it has no format")
    if tree["format"] != FORMAT:
        raise UserError(
            f"{source} is a record of format {tree['format']!r}, and this version reads {FORMAT}"
        )
    try:
        return LedgerRecord.model_validate(tree)
    except ValidationError as error:
        raise UserError(f"{source} is not a record: {one_sentence(error, LedgerRecord)}") from None


def read_records(folder: Path | None = None) -> list[LedgerRecord]:
    """All records in a folder; by default those that come with the package."""
    if folder is not None and not folder.is_dir():
        raise UserError(f"{folder} is not a folder of records")
    home = files(__package__) / "records" if folder is None else folder
    if not home.is_dir():
        return []
    found = {f.name: f.read_bytes() for f in home.iterdir() if f.name.endswith(".json")}
    records = [read_record(found[name], name) for name in sorted(found)]
    for name, record in zip(sorted(found), records, strict=True):
        if name != f"{record.name}.json":
            raise UserError(f"{name} holds the record {record.name}: rename it")
    return records


def write_records(records: Iterable[LedgerRecord], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for record in records:
        write_atomically(folder / f"{record.name}.json", record.text().encode())


def merged(old: Sequence[LedgerRecord], new: Sequence[LedgerRecord]) -> list[LedgerRecord]:
    """Old and new records together, sorted; a new record replaces an old one of the same name."""
    found = {record.name: record for record in (*old, *new)}
    return [found[name] for name in sorted(found)]
