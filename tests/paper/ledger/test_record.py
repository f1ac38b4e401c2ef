"""A record is small, reads back, and anything else is refused in one sentence."""

import json
from pathlib import Path

import pytest

from liderlab.errors import UserError
from liderlab.paper.ledger.record import merged, read_record, read_records, write_records
from liderlab.paper.studies.cases import Case

CASE = Case("cifar100", 500, "er-ace", "lider", "controlled", seed=1)


def test_a_written_record_reads_back(record, tmp_path: Path) -> None:
    one = record(CASE, 20.0)
    write_records([one], tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == [f"{one.name}.json"]
    assert read_records(tmp_path) == [one]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": 2}, "format 2, and this version reads 1"),
        ({"colour": "red"}, "colour"),
        ({"steps": "many"}, "steps"),
        ({"case": {"setting": "cifar100", "flavour": 1}}, "a case has no flavour"),
        (
            {"case": {"setting": "cifar100", "buffer": 5, "method": "er", "addition": "x"}},
            "addition",
        ),
        ({"matrix": None}, "matrix"),
    ],
)
def test_a_wrong_field_is_refused_in_one_sentence(record, change, says) -> None:
    tree = json.loads(record(CASE, 20.0).text()) | change
    with pytest.raises(UserError) as caught:
        read_record(json.dumps(tree), "x.json")
    assert says in str(caught.value)
    assert "x.json" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "3"])
def test_other_files_are_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(UserError, match="is not a record"):
        read_record(text, "x.json")


def test_a_file_must_have_the_name_of_its_record(record, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text(record(CASE, 20.0).text())
    with pytest.raises(UserError, match=r"other\.json holds the record"):
        read_records(tmp_path)
    with pytest.raises(UserError, match="not a folder of records"):
        read_records(tmp_path / "none")


def test_new_records_take_the_place_of_old_ones(record) -> None:
    old, other = record(CASE, 20.0), record(Case("cifar100", 500, "er-ace"), 10.0)
    new = record(CASE, 30.0)
    assert merged([old, other], [new]) == sorted([new, other], key=lambda one: one.name)
