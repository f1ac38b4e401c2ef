"""TensorBoard, Weights & Biases and MLflow behind one small interface.

They receive the numbers of metrics.jsonl, under the same names in each; the run's folder stays the
reference. A resumed run continues its TensorBoard folder, W&B run or MLflow run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from ...errors import UserError
from ...registry import Entry, Registry
from ...streams import CLASSES
from ..result_schema import settings_of

log = logging.getLogger("liderlab")

_HERE = "liderlab.runs.trackers"

TRACKERS = Registry(
    "tracker",
    {
        "tensorboard": Entry(f"{_HERE}.tensorboard:TensorBoard", "event files in the run's folder"),
        "wandb": Entry(f"{_HERE}.wandb:WandB", "Weights & Biases; WANDB_MODE=offline needs no net"),
        "mlflow": Entry(f"{_HERE}.mlflow:MLflow", "MLflow, at MLFLOW_TRACKING_URI"),
    },
)


class Tracker(Protocol):
    """Created with (folder, config, step): the run's folder, its configuration, steps so far."""

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Log numbers that were measured at a step."""
        ...

    def close(self, finished: bool) -> None:
        """Close the run: finished, or to be resumed."""
        ...


def check_installed(names: Sequence[str]) -> None:
    """Refuse a tracker that is unknown or not installed, before anything else happens."""
    for name in names:
        TRACKERS.entry(name)
        if find_spec(name) is None:
            raise UserError(f"{name} is not installed: pip install 'liderlab[{name}]'")


class Trackers:
    """The trackers of a run; a context that closes them.

    Training goes on without a tracker that fails; the next `lider resume` starts it again.
    """

    def __init__(
        self,
        names: Sequence[str],
        folder: Path,
        config: Mapping[str, Any],
        step: int,
        setting: str = CLASSES,
    ) -> None:
        """setting: of the run's stream; it names the accuracies."""
        self._settings = settings_of({"setting": setting})
        self._trackers: dict[str, Tracker] = {}
        self._finished = False
        for name in names:
            try:
                self._trackers[name] = TRACKERS.load(name)(folder, config, step)
            except Exception as error:  # no login, no server, …
                self.__exit__()
                raise UserError(f"cannot start {name}: {_reason(error)}") from None

    def __enter__(self) -> Trackers:
        return self

    def __exit__(self, *_: object) -> None:
        self._each(lambda tracker: tracker.close(self._finished))

    def log(self, line: Mapping[str, Any]) -> None:
        """Log a line of metrics.jsonl."""
        if self._trackers:
            values = flat(line, self._settings)
            self._each(lambda tracker: tracker.log(int(line["step"]), values))

    def finish(self, step: int, result: Mapping[str, Any]) -> None:
        """Log the final metrics of a finished run."""
        values = {
            f"final/{setting}/{name}": float(value)
            for field, setting in self._settings.items()
            for name, value in result[field].items()
            if isinstance(value, float)
        }
        self._each(lambda tracker: tracker.log(step, values))
        self._finished = True

    def _each(self, action: Callable[[Tracker], None]) -> None:
        for name, tracker in list(self._trackers.items()):
            try:
                action(tracker)
            except Exception as error:  # no server any more, a full disk, …
                del self._trackers[name]
                log.warning("%s failed, and the run goes on without it: %s", name, _reason(error))


def _reason(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def flat(line: Mapping[str, Any], settings: Mapping[str, str]) -> dict[str, float]:
    """The numbers of a line of metrics.jsonl, by the names that every tracker shows.

    settings: the names of its accuracies, by field.

    >>> flat({"kind": "step", "terms": {"ce": 1.5}, "readings": {"lider/λ/layer1": 2.0}}, {})
    {'loss/ce': 1.5, 'lider/lambda/layer1': 2.0}
    >>> named = {"class_incremental": "class-incremental"}
    >>> flat({"kind": "task", "task": 0, "class_incremental": [0.5, None]}, named)
    {'class-incremental/task 1': 0.5, 'class-incremental/mean': 0.5}
    >>> flat({"kind": "anytime", "task": 0, "class_incremental": [0.5]}, named)
    {'anytime/class-incremental/task 1': 0.5, 'anytime/class-incremental/mean': 0.5}
    """
    if line["kind"] == "step":
        terms = {f"loss/{name}": value for name, value in line["terms"].items()}
        numbers = (terms | line["readings"]).items()
        return {_ascii(name): value for name, value in numbers if value is not None}
    values: dict[str, float] = {}
    if line.get("anytime"):
        values |= flat({"kind": "anytime", **line["anytime"]}, settings)
    for field, setting in settings.items():
        seen = line.get(field, [])[: line["task"] + 1]
        name = f"anytime/{setting}" if line["kind"] == "anytime" else setting
        values |= {f"{name}/task {i}": v for i, v in enumerate(seen, 1) if v is not None}
        if seen and None not in seen:
            values[f"{name}/mean"] = sum(seen) / len(seen)
    return values


def _ascii(name: str) -> str:
    """The name without Greek letters and +, which some trackers refuse."""
    return name.replace("λ", "lambda").replace("+", "p")
