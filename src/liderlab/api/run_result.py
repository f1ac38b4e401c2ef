"""The result of a run, as `liderlab.run` returns it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..report.formatting import number
from ..report.glossary import METRICS
from ..report.html_table import html_table
from ..report.run_records import RunRecord
from ..runs.folder import RunFolder
from ..runs.result_schema import settings_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..runs.load import TrainedNetwork


class RunResult(dict[str, Any]):
    """The content of result.json, with its most used values as properties.

    folder: the run folder. Metrics without a setting are class-incremental (or
    domain-incremental, if that is the run's setting), in percent.
    """

    def __init__(self, result: Mapping[str, Any], folder: str | Path) -> None:
        super().__init__(result)
        self.folder = Path(folder)

    @classmethod
    def read(cls, folder: str | Path) -> RunResult:
        """The result of a finished run, from its folder."""
        return cls(RunFolder.open(folder).result(), folder)

    @property
    def label(self) -> str:
        """The method and its regularisers: er-ace + LiDER."""
        return self._record.label

    @property
    def seed(self) -> int:
        return self._record.seed

    @property
    def faa(self) -> float:
        """Final average accuracy."""
        return float(self["class_incremental"]["faa"])

    @property
    def ff(self) -> float | None:
        """Final forgetting; None if the run was evaluated after the last task only."""
        return self._record.metric("class_incremental", "ff")

    @property
    def matrix(self) -> np.ndarray:
        """Accuracy (tasks, tasks): row t, column i is task i after training task t.

        NaN where it was not measured.
        """
        return np.array(self["class_incremental"]["accuracy_matrix"], dtype=float)

    def load(self, device: str = "cpu", *, after_task: int | None = None) -> TrainedNetwork:
        """The trained network: see `liderlab.load`."""
        from ..runs.load import load

        return load(self.folder, device, after_task=after_task)

    def plot(self) -> Figure:
        """The accuracy matrices of both settings, as in accuracy.png."""
        from ..runs.accuracy_figure import accuracy_figure

        return accuracy_figure(self)

    @property
    def _record(self) -> RunRecord:
        return RunRecord(self.folder, str(self.folder), "finished", self["config"], dict(self))

    def __repr__(self) -> str:
        record = self._record
        return (
            f"<{record.label} on {record.benchmark}, seed {record.seed}: "
            f"{record.setting} FAA {number(self.faa)} %, in {self.folder}>"
        )

    def _repr_html_(self) -> str:
        record = self._record
        title = f"{record.label} on {record.benchmark}, seed {record.seed}: {self.folder}"
        columns = ["percent", *(f"{metric.label} {metric.arrow}" for metric in METRICS.values())]
        rows = [
            [label, *(number(record.metric(setting, metric)) for metric in METRICS)]
            for setting, label in settings_of(self).items()
        ]
        return html_table(title, columns, rows)
