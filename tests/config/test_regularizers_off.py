"""`null` removes a regulariser of a preset, a file or a benchmark."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from liderlab.config.merging import make_config
from liderlab.config.yaml_values import parse_assignment, read_yaml
from liderlab.errors import UserError
from liderlab.runs.build import completed
from liderlab.streams import BENCHMARKS

OFF = parse_assignment("regularizers.lider=null")
PRESET = {"preset": "cifar100-500-der++-lider"}
SMALL = ["--benchmark", "synthetic", "--width", "8", "--epochs", "1", "--buffer", "20"]


def test_null_removes_a_presets_regularizer() -> None:
    assert "lider" in make_config(PRESET).regularizers
    assert make_config(PRESET, OFF).regularizers == {}
    assert make_config({**PRESET, "regularizers": {"lider": None, "oewc": {}}}).regularizers == {
        "oewc": {}
    }


def test_it_stays_removed_when_the_configuration_is_written_and_read_again() -> None:
    config = completed(make_config(PRESET, OFF))
    assert config.regularizers == {}
    again = make_config(yaml.safe_load(config.as_yaml()))
    assert again == config
    assert completed(again) == config


def test_a_later_layer_puts_it_back() -> None:
    off, on = {"lider": None}, {"lider": {"on": "stream"}}
    config = make_config({"regularizers": off}, {"regularizers": on})
    assert config.regularizers == {"lider": {"on": "stream"}}


def test_a_benchmarks_own_regularizer_goes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = BENCHMARKS["synthetic"]
    defaults = {**entry.facts["defaults"], "regularizers": {"lider": {}}}
    monkeypatch.setitem(entry.facts, "defaults", defaults)
    assert make_config({"benchmark": "synthetic"}).regularizers == {"lider": {}}
    config = completed(make_config({"benchmark": "synthetic"}, OFF))
    assert config.regularizers == {}


def test_a_misspelt_name_removes_nothing() -> None:
    with pytest.raises(UserError, match="did you mean 'lider'"):
        make_config(PRESET, parse_assignment("regularizers.lidr=null"))


def test_from_file_and_command_line(lider: Any, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("regularizers: {lider: {alpha: 0.2}, oewc: {}}")
    command = ["run", "--config", "c.yaml", *SMALL, "--set", "regularizers.lider=null"]
    code, _, err = lider(*command, "--out", "x")
    assert code == 0, err
    assert list(read_yaml(tmp_path / "x/config.yaml")["regularizers"]) == ["oewc"]
    (tmp_path / "d.yaml").write_text("regularizers: {oewc: null}")
    code, _, err = lider("run", "--config", "d.yaml", *SMALL, "--lider", "--out", "y")
    assert code == 0, err
    assert list(read_yaml(tmp_path / "y/config.yaml")["regularizers"]) == ["lider"]


def test_a_complete_configuration_takes_no_preset() -> None:
    whole = completed(make_config({"benchmark": "synthetic"})).model_dump()
    with pytest.raises(UserError, match="preset cifar100-joint has none to add"):
        make_config(whole, {"preset": "cifar100-joint"})
