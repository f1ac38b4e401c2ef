"""YAML 1.2: words, numbers, and values that are refused."""

import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import yaml

from liderlab.config.yaml_values import YamlWriter, parse_assignment, read_yaml
from liderlab.errors import UserError

WORDS = {"on": "on", "2024-01-01": "2024-01-01", "2001-99-99": "2001-99-99", "1e": "1e"}
NUMBERS = {"1e-3": 1e-3, "-2E5": -2e5, ".5e2": 50.0, "1.e+1": 10.0, "1.5e-3": 1.5e-3, "3": 3}


@pytest.mark.parametrize(("text", "value"), [*WORDS.items(), *NUMBERS.items()])
def test_words_and_numbers_are_the_same_in_files_and_options(
    tmp_path: Path, text: str, value: Any
) -> None:
    (tmp_path / "c.yaml").write_text(f"a: [{text}]")
    for read in (read_yaml(tmp_path / "c.yaml")["a"][0], parse_assignment(f"a={text}")["a"]):
        assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize("value", [*WORDS.values(), *NUMBERS, *NUMBERS.values()])
def test_written_values_are_read_again(tmp_path: Path, value: Any) -> None:
    (tmp_path / "c.yaml").write_text(yaml.dump({"a": value}, Dumper=YamlWriter))
    assert read_yaml(tmp_path / "c.yaml") == {"a": value}


@pytest.mark.parametrize(
    "text", ["!!binary aGk=", "!!timestamp 2024-01-01", "!!set {b}", "!!int abc", "&a {b: *a}"]
)
def test_values_that_json_cannot_hold_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "c.yaml").write_text(f"a: {text}")
    with pytest.raises(UserError, match=r"c\.yaml is not valid YAML: it holds a value that is no"):
        read_yaml(tmp_path / "c.yaml")
    with pytest.raises(UserError, match="cannot read the value"):
        parse_assignment(f"a={text}")


def test_a_mistake_names_its_place(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("a: 1\nb: [2")
    with pytest.raises(UserError, match=r"c\.yaml is not valid YAML: line 2, column \d+ "):
        read_yaml(tmp_path / "c.yaml")
    (tmp_path / "c.yaml").write_bytes(b"\xff")
    with pytest.raises(UserError, match=r"c\.yaml is not valid YAML: 'utf-8' codec"):
        read_yaml(tmp_path / "c.yaml")


def test_a_value_may_stand_in_two_places(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("a: &a {b: 1}\nc: [*a, *a]")
    assert read_yaml(tmp_path / "c.yaml") == {"a": {"b": 1}, "c": [{"b": 1}, {"b": 1}]}


@pytest.mark.parametrize("form", ["[{0}]", "{{<<: [{0}]}}"], ids=["lists", "merged sections"])
def test_aliases_of_aliases_take_no_memory(tmp_path: Path, form: str) -> None:
    """Nine levels of nine aliases stand for 387 million values."""
    lines = ["a0: &a0 {x: 1}"]
    for level in range(1, 10):
        lines.append(f"a{level}: &a{level} " + form.format(", ".join([f"*a{level - 1}"] * 9)))
    (tmp_path / "c.yaml").write_text("\n".join(lines))
    tracemalloc.start()
    with pytest.raises(UserError, match=r"line \d+, column \d+ more than 100,000 values"):
        read_yaml(tmp_path / "c.yaml")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6


def test_a_long_file_is_not_read_to_its_end() -> None:
    with pytest.raises(UserError, match="/dev/zero has more than 1,048,576 bytes"):
        read_yaml(Path("/dev/zero"))
