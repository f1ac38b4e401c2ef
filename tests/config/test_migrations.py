"""A complete configuration stays as it is: of every schema, and with a field missing."""

from pathlib import Path
from typing import Any

import pytest

from liderlab.config.diff import flat
from liderlab.config.identity import _without_new
from liderlab.config.merging import make_config, stored_config
from liderlab.config.migrations import SCHEMA, SCHEMA_1, migrate
from liderlab.config.schema import RunConfig
from liderlab.config.yaml_values import read_yaml
from liderlab.errors import UserError
from liderlab.runs.build import completed
from liderlab.runs.execute import run
from liderlab.runs.folder import RunFolder

WITH_LIDER = {"preset": "cifar100-500-er-ace-lider", "threads": 1}
DATA = Path(__file__).parent / "data"
FILES = sorted(DATA.glob("schema-*.yaml"))
REQUIRED = {"benchmark", "method", "backbone"}
LATE = ("devices", "strategy", "keep_tasks", "tracker", "evaluate", "compile", "precision")


def without_lider() -> dict[str, Any]:
    """A complete configuration that started from a preset with LiDER and removed it."""
    return completed(make_config(WITH_LIDER, {"regularizers": {"lider": None}})).model_dump()


def without(tree: dict[str, Any], *fields: str) -> dict[str, Any]:
    return {key: value for key, value in tree.items() if key not in fields}


@pytest.mark.parametrize("field", sorted(RunConfig.model_fields.keys() - REQUIRED))
def test_a_missing_field_takes_its_default(field: str) -> None:
    whole = without_lider()
    config = make_config(without(whole, field))
    assert config.regularizers == {}
    assert getattr(config, field) == RunConfig.model_fields[field].default
    assert without(config.model_dump(), field) == without(whole, field)


def test_a_missing_section_does_not_take_the_benchmarks_values() -> None:
    assert make_config({"benchmark": "split-digits"}).memory.size == 100
    assert make_config(without(without_lider(), "memory")).memory.size == 200


def test_there_is_a_file_of_every_schema() -> None:
    assert [file.stem for file in FILES] == [f"schema-{n + 1}" for n in range(SCHEMA)]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_files_of_every_schema_give_the_same_run(file: Path) -> None:
    """Each is `cifar100-500-er-ace-lider` at scale cpu with oEWC in place of LiDER."""
    tree = read_yaml(file)
    assert tree.get("schema", 1) == int(file.stem[-1])
    layers = {"preset": "cifar100-500-er-ace-lider", "scale": "cpu", "threads": 1}
    today = completed(make_config(layers, {"regularizers": {"lider": None, "oewc": {}}}))
    assert make_config(tree) == stored_config(tree) == completed(make_config(tree)) == today
    assert today.model_dump() == migrate(tree)
    on_top = make_config(tree, {"seed": 3, "regularizers": {"oewc": None}})
    assert (on_top.seed, on_top.regularizers, on_top.training) == (3, {}, today.training)


def test_new_fields_are_what_older_runs_did() -> None:
    whole = completed(make_config(WITH_LIDER))
    older = _without_new(whole.model_dump())
    assert flat(whole.model_dump()).keys() - flat(older).keys() >= {"regularizers.lider.target_lr"}
    assert completed(make_config(older | {"schema": 2})) == whole


@pytest.mark.parametrize("removed", [LATE, LATE[:2], ("threads",), ("deterministic", "tracker")])
def test_files_without_a_number_may_lack_fields(removed: tuple[str, ...]) -> None:
    tree = read_yaml(FILES[0])
    assert tree.keys() == SCHEMA_1
    assert list(make_config(without(tree, *removed)).regularizers) == ["oewc"]


def test_a_hand_written_file_is_a_layer() -> None:
    fields = ("preset", "scale", "method", "memory", "seed", "device", "threads", "tracker")
    layer = {key: read_yaml(FILES[0])[key] for key in fields}
    assert "lider" in make_config(layer).regularizers


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"schema": SCHEMA + 1}, rf"newer version .* schema {SCHEMA + 1}, .* up to {SCHEMA}"),
        ({"schema": 0}, f"schema: expected a whole number from 1 to {SCHEMA}, but got 0"),
        ({"schema": "2"}, "schema: expected a whole number"),
        ({"lerning": 1}, "unknown field 'lerning'"),
    ],
)
def test_other_numbers_and_fields_are_refused(change: dict[str, Any], says: str) -> None:
    tree = without_lider() | change
    for read in (make_config, stored_config):
        with pytest.raises(UserError, match=says) as error:
            read(tree)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("layers", [[{"schema": SCHEMA}], [WITH_LIDER, {"schema": 1, "seed": 3}]])
def test_a_few_fields_with_a_number_are_refused(layers: list[dict[str, Any]]) -> None:
    with pytest.raises(UserError, match="is complete, but this one has no benchmark"):
        make_config(*layers)


def test_presets_add_nothing_to_a_complete_configuration() -> None:
    whole, preset = without_lider() | {"preset": None}, {"preset": "cifar100-joint"}
    for layers in ([whole, preset], [preset, whole]):
        with pytest.raises(UserError, match="preset cifar100-joint has none to add"):
            make_config(*layers)


def test_a_complete_configuration_replaces_the_layers_below() -> None:
    config = make_config({"regularizers": {"olap": {}}, "compile": "eager"}, without_lider())
    assert (config.regularizers, config.compile) == ({}, None)


def test_the_number_is_written_first() -> None:
    config = make_config({"benchmark": "synthetic"})
    assert config.as_yaml().startswith(f"schema: {SCHEMA}\n")
    assert RunConfig.model_validate(config.model_dump()) == config


def test_a_run_folder_of_schema_1_goes_on(tmp_path: Path) -> None:
    small = {"benchmark": "synthetic", "backbone": {"name": "mlp"}, "threads": 1}
    first = run(make_config(small, {"training": {"epochs": 1}}), tmp_path)
    (tmp_path / "result.json").unlink()
    file = tmp_path / "config.yaml"
    file.write_text(file.read_text().replace(f"schema: {SCHEMA}\n", "").replace("devices: 1\n", ""))
    config = RunFolder(tmp_path).config()
    again = run(config, tmp_path, existing="resume")
    assert again["config"] == first["config"] == config.model_dump(mode="json")
    assert again["class_incremental"] == first["class_incremental"]
