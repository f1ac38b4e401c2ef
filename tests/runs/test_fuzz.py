"""Any input gives a configuration or one sentence, never a traceback or a hang."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from liderlab.cli import main
from liderlab.config.merging import make_config
from liderlab.config.schema import RunConfig
from liderlab.config.yaml_values import parse_assignment, read_yaml
from liderlab.errors import UserError
from liderlab.methods import METHODS
from liderlab.regularizers import REGULARIZERS
from liderlab.runs.build import completed
from liderlab.runs.folder import RunFolder

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
MANY = settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 10**20),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from([*METHODS, *REGULARIZERS, "resnet18", "split-digits", "natural", "cpu", "5m"]),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
sections = st.dictionaries(
    st.one_of(
        st.sampled_from(["name", "size", "lr", "epochs", "alpha", "tasks", "width", "milestones"]),
        st.text(max_size=5),
    ),
    values,
    max_size=3,
)
trees = st.dictionaries(
    st.sampled_from([*RunConfig.model_fields, "trainign"]), sections | values, max_size=4
)


def configure(tree: Any) -> None:
    try:
        config = completed(make_config(tree))
    except UserError as error:
        assert "\n" not in str(error)
    else:
        assert completed(make_config(yaml.safe_load(config.as_yaml()))) == config


def read_text(folder: Path, text: bytes) -> None:
    (folder / "c.yaml").write_bytes(text)
    try:
        make_config(read_yaml(folder / "c.yaml"))
    except UserError as error:
        assert str(error)


def read_run(folder: Path, data: bytes) -> None:
    (folder / "config.yaml").write_text("seed: 0")
    for name, read in (("result.json", RunFolder.result), ("metrics.jsonl", RunFolder.metrics)):
        (folder / name).write_bytes(data)
        try:
            read(RunFolder(folder))
        except UserError as error:
            assert "damaged" in str(error)


def call(folder: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr("liderlab.runs.execute.build", stop_here)
    monkeypatch.setattr(sys, "argv", ["lider", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code in (0, 2)
    assert list(folder.glob("runs/*")) == []


def stop_here(config: RunConfig, *rest: object) -> None:
    raise UserError("this would have run")


json_like = st.one_of(
    st.binary(max_size=60),
    values.map(lambda value: json.dumps(value).encode() + b"\n"),
)
yaml_like = st.one_of(
    st.binary(max_size=60),
    st.text(max_size=60).map(str.encode),
    trees.map(lambda tree: yaml.safe_dump(tree, allow_unicode=True).encode()),
)
words = st.one_of(
    st.sampled_from(
        [
            "run",
            "list",
            "show",
            "--method",
            "er",
            "--buffer",
            "--lider",
            "--set",
            "training.lr=1",
            "memory.size=-1",
            "--json",
            "3",
            "--out",
            "x",
            "--config",
            "--epochs",
            "-1",
            "--class-order",
            "1,2",
            "--tasks",
            "--regularizer",
            "oewc",
            "a.b=c",
            "=",
        ]
    ),
    st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=6),
)
command_lines = st.lists(words, min_size=1, max_size=6).filter(lambda line: "demo" not in line)


@QUICK
@given(trees)
@example({"seed": 1.5})
@example({"benchmark": []})
@example({"backbone": {"name": "convnet-small", "width": -1}})
def test_any_tree(tree: Any) -> None:
    configure(tree)


@QUICK
@given(st.text(max_size=20))
def test_any_assignment(text: str) -> None:
    try:
        assert isinstance(parse_assignment(text), dict)
    except UserError as error:
        assert str(error)


@QUICK
@given(data=yaml_like)
def test_any_yaml(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    read_text(tmp_path_factory.getbasetemp(), data)


@QUICK
@given(data=json_like)
def test_any_run_folder(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    read_run(tmp_path_factory.getbasetemp(), data)


@QUICK
@given(arguments=command_lines)
def test_any_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    call(tmp_path, arguments, monkeypatch)


@pytest.mark.slow
@MANY
@given(trees, yaml_like, json_like, command_lines)
def test_many_trees_files_and_command_lines(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    tree: Any,
    text: bytes,
    data: bytes,
    arguments: list[str],
) -> None:
    """600 of each of the four: 2,400 cases."""
    folder = tmp_path_factory.getbasetemp() / "fuzz"
    folder.mkdir(exist_ok=True)
    configure(tree)
    read_text(folder, text)
    read_run(folder, data)
    call(folder, arguments, monkeypatch)
