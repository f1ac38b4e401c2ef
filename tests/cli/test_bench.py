"""`lider bench`, as a user meets it."""

import json
from pathlib import Path

import pytest

from liderlab.bench import measures

QUICK = ["bench", "--quick", "--threads", "1"]


@pytest.fixture
def measured(monkeypatch) -> list[str]:
    """The names of the measures that ran."""
    calls, original = [], measures.measure

    def measure(name: str, **options):
        calls.append(name)
        return original(name, **options)

    monkeypatch.setattr(measures, "measure", measure)
    return calls


def test_table_and_json(lider) -> None:
    code, out, err = lider(*QUICK, "herding")
    assert code == 0, err
    assert "herding / products" in out
    assert "torch" in out
    assert max(map(len, out.splitlines()[:3])) <= 80
    code, out, _ = lider(*QUICK, "herding", "--json", "--clock", "cpu")
    report = json.loads(out)
    assert report["machine"]["clock"] == "cpu"
    assert list(report["measures"]) == ["herding"]


def test_measures_in_the_file_are_kept(lider, tmp_path: Path, measured) -> None:
    assert lider(*QUICK, "herding", "--out", "sub/x.json")[0] == 0
    first = json.loads((tmp_path / "sub/x.json").read_text())
    code, out, _ = lider(*QUICK, "herding", "curvature", "--out", "sub/x.json")
    assert code == 0
    assert "herding / products" in out
    assert measured == ["herding", "curvature"]
    both = json.loads((tmp_path / "sub/x.json").read_text())
    assert both["measures"]["herding"] == first["measures"]["herding"]
    assert lider(*QUICK, "herding", "--out", "sub/x.json", "--force")[0] == 0
    assert measured == ["herding", "curvature", "herding"]


def test_an_interrupted_bench_keeps_finished_measures(lider, tmp_path: Path, monkeypatch) -> None:
    original = measures.measure

    def measure(name: str, **options):
        if name == "curvature":
            raise KeyboardInterrupt
        return original(name, **options)

    monkeypatch.setattr(measures, "measure", measure)
    assert lider(*QUICK, "herding", "curvature", "--out", "x.json")[0] == 130
    assert list(json.loads((tmp_path / "x.json").read_text())["measures"]) == ["herding"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["bench", "herdng"], "did you mean 'herding'"),
        (["bench", "herding", "--clock", "sun"], "wall"),
        ([*QUICK, "herding", "--out", "bad.json"], "not a report of lider bench"),
        ([*QUICK, "herding", "--out", "list.json"], "not a report of lider bench"),
        ([*QUICK, "herding", "--out", "other.json"], "other conditions"),
        ([*QUICK, "herding", "--out", "empty.json"], "not a report of lider bench"),
        ([*QUICK, "herding", "--out", "bad.json/x.json"], "cannot write"),
    ],
)
def test_mistakes_are_one_sentence(lider, tmp_path: Path, arguments, says, measured) -> None:
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "other.json").write_text('{"machine": {}, "measures": {}}')
    where = {**measures.machine(1), "clock": "wall", "quick": True}
    empty = {"machine": where, "measures": {"herding": {}}}
    (tmp_path / "empty.json").write_text(json.dumps(empty))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    code, _, err = lider(*arguments)
    assert code == 2
    assert says in err
    assert err.startswith("lider:")
    assert err.count("\n") == 1
    assert measured == []
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}
