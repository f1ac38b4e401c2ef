"""Fields outside the experiment: marked once, on the field."""

from typing import Any

import pytest

from liderlab.config.identity import experiment_fields, identity, may_differ
from liderlab.config.merging import make_config, stored_config
from liderlab.config.migrations import migrate
from liderlab.config.schema import Scope
from liderlab.paper.ledger.record import read_records
from liderlab.paper.studies.case_runs import run_name

MARKED: dict[Scope, set[str]] = {
    "study": {
        *("imports", "devices", "strategy", "threads", "log_every", "checkpoint_every"),
        "on_nonfinite",
    },
    "resume": {"imports", "checkpoint_every", "on_nonfinite", "tracker", "devices", "strategy"},
    "processes": {"imports", "threads"},
}
OTHERWISE: dict[str, Any] = {
    "preset": None,
    "imports": ["/code/mine.py"],
    "seed": 5,
    "device": "cuda",
    "devices": 2,
    "strategy": "ddp-syncbn",
    "threads": 7,
    "deterministic": False,
    "tracker": ["wandb"],
    "log_every": 3,
    "checkpoint_every": "7",
    "keep_tasks": True,
    "on_nonfinite": "skip",
    "scale.changes": None,
    "benchmark.device": "cuda",
    "memory.storage": "disk",
    "memory.device": "cpu",
}


def test_the_fields_of_every_scope() -> None:
    assert {scope: may_differ(scope) for scope in MARKED} == MARKED
    assert may_differ("experiment") == OTHERWISE.keys()


@pytest.mark.parametrize("field", OTHERWISE)
def test_repetitions_of_an_experiment_may_differ(field: str) -> None:
    config = make_config({"preset": "cifar100-joint", "scale": "smoke", "threads": 1}).model_dump()
    section, _, key = field.partition(".")
    changed = {**config[section], key: OTHERWISE[field]} if key else OTHERWISE[field]
    other = {**config, "schema": 1, section: changed}
    assert other[section] != config[section] or field == "scale.changes"
    assert experiment_fields(other) == experiment_fields(config)


@pytest.mark.parametrize(
    "layer",
    [
        {"training": {"lr": 0.5}},
        {"training": {"optimizer": "adam"}},
        {"training": {"clip": {"norm": 1}}},
        {"training": {"schedule": "cosine"}},
        {"training": {"optimizer_per_task": False}},
        {"precision": "bfloat16"},
        {"evaluate": "last"},
        {"memory": {"size": 7}},
        {"scale": "smoke"},
        {"regularizers": {"oewc": {}}},
        {"regularizers": {"lider": {"target_lr": 0.5}}},
    ],
)
def test_other_fields_make_another_experiment(layer: dict[str, Any]) -> None:
    one, other = make_config({"seed": 0}), make_config(layer)
    assert experiment_fields(one.model_dump()) != experiment_fields(other.model_dump())
    assert run_name(one) != run_name(other)


def test_a_study_knows_its_runs_by_name() -> None:
    layers = {"preset": "cifar100-500-er-ace-lider", "scale": "cpu"}
    config = make_config(layers)
    names = {run_name(config.model_copy(update={f: OTHERWISE[f]})) for f in MARKED["study"]}
    assert names == {"split-cifar100-er-ace-lider-b500-seed0-a44ed0b5"}
    assert "schema" not in identity(make_config(layers), "study")


def test_records_of_schema_1_and_runs_of_today_are_one_experiment() -> None:
    config = read_records()[0].config
    assert "schema" not in config
    assert "devices" not in config
    now = stored_config(config).model_dump(mode="json")
    assert experiment_fields(now) == experiment_fields(config) == experiment_fields(migrate(config))


def test_later_options_at_their_defaults_do_not_split_an_experiment() -> None:
    """A run of GDumb from before them and one of today are repetitions of one experiment."""
    older = {"method": {"name": "gdumb", "fit_epochs": 250}, "regularizers": {"lider": {}}}
    later = {"momentum": 0.9, "optimizer_per": "fit", "collect": "once"}
    today = {
        "method": {**older["method"], **later},
        "regularizers": {"lider": {"draw": "reuse", "order": "c-0"}},
    }
    assert experiment_fields(today) == experiment_fields(older)
    other = {**today, "method": {**today["method"], "collect": "every-epoch"}}
    assert experiment_fields(other) != experiment_fields(older)
