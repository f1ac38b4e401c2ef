"""MLflow."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...config.diff import flat


class MLflow:
    """One MLflow run per run folder, at MLFLOW_TRACKING_URI, in the experiment
    MLFLOW_EXPERIMENT_NAME (default: liderlab)."""

    def __init__(self, folder: Path, config: Mapping[str, Any], step: int) -> None:
        import os

        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # read when mlflow is imported
        from mlflow.tracking import MlflowClient

        self._client, file = MlflowClient(), folder / "mlflow.id"
        if step and file.exists():
            self._id = file.read_text()
            self._client.update_run(self._id, status="RUNNING")
            return
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "liderlab")
        experiment = self._client.get_experiment_by_name(name)
        number = experiment.experiment_id if experiment else self._client.create_experiment(name)
        self._id = self._client.create_run(number, run_name=folder.absolute().name).info.run_id
        file.write_text(self._id)
        for key, value in flat(config).items():
            self._client.log_param(self._id, key, value)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        import time

        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        metrics = [Metric(name, value, now, step) for name, value in values.items()]
        self._client.log_batch(self._id, metrics)

    def close(self, finished: bool) -> None:
        self._client.set_terminated(self._id, "FINISHED" if finished else "KILLED")
