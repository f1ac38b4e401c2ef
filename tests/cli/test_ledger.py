"""`lider ledger`, as a user meets it."""

import json
from pathlib import Path

import pytest

from liderlab.errors import Stopped

CELL = "single-epoch/cifar100-online/500/er-ace+lider/faa"


def edit(file: Path, **metrics: float) -> None:
    """Change metrics of a record."""
    tree = json.loads(file.read_text())
    tree["class_incremental"] |= metrics
    file.write_text(json.dumps(tree))


def test_measure_collect_show_check(lider, tmp_path: Path) -> None:
    """From nothing to a ledger of one's own, on the embedded digits."""
    asked = ["ledger", "measure", "--scale", "smoke", "--group", "single-epoch", "--out", "m"]
    code, out, err = lider(*asked, "--dry-run")
    assert (code, len(out.splitlines())) == (0, 2), err
    assert not (tmp_path / "m").exists()
    code, out, err = lider(*asked)
    assert code == 0, err
    assert "lider ledger collect m" in out
    code, out, err = lider(*asked)
    assert (code, "2 of them finished earlier" in err) == (0, True)

    begun = next((tmp_path / "m/runs").glob("*-er-ace-b*"))
    result = (begun / "result.json").read_bytes()
    (begun / "result.json").unlink()
    code, out, err = lider("ledger", "collect", "m", "--out", "c")
    assert code == 0, err
    assert f"left out {begun.name}: it has not finished" in err
    assert "1 runs taken, 1 left out" in out
    (begun / "result.json").write_bytes(result)
    code, out, err = lider("ledger", "collect", "m", "--out", "c")
    assert "2 runs taken, 0 left out; 2 records" in out
    assert "split-digits" in (tmp_path / "c/ledger.md").read_text()

    mine = ["--records", "c/records"]
    code, out, err = lider("ledger", *mine)
    assert code == 0, err
    assert max(map(len, out.splitlines())) <= 80
    assert CELL in out
    code, out, _ = lider(
        "ledger", "--table", "single-epoch", "--status", "smaller", *mine, "--json"
    )
    rows = {row["cell"]: row for row in json.loads(out)["cells"]}
    assert len(rows) == 4
    assert rows[CELL]["paper"] == 18.98

    code, out, err = lider("ledger", "check", "--cell", CELL, *mine, "--out", "again")
    assert code == 0, err
    assert "equal: FAA, FF, accuracy matrix and weights" in out
    record = tmp_path / f"c/records/{rows[CELL]['records'][0]}.json"
    edit(record, faa=1.0)
    code, out, err = lider("ledger", "check", "--cell", CELL, *mine, "--out", "again", "--json")
    assert code == 1
    assert "does not agree" in err.splitlines()[-1]
    assert not json.loads(out)["agrees"]


def test_the_ledger_of_the_package(lider) -> None:
    code, out, err = lider("ledger")
    assert code == 0, err
    assert max(map(len, out.splitlines())) <= 80
    assert "regularizers-ff" in out
    code, out, _ = lider("ledger", "--json")
    assert len(json.loads(out)["cells"]) == 436
    code, out, _ = lider("ledger", "cells", "cub200", "er-ace+lider")
    assert "faa/cub200/400/er-ace+lider" in out.splitlines()
    assert all("cub200" in line for line in out.splitlines())
    code, out, _ = lider("ledger", "--setting", "cub200", "--table", "faa", "--status", "not")
    assert "78.54" in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("ledger --table fa", "did you mean 'faa'"),
        ("ledger --setting cifar1000", "did you mean 'cifar100'"),
        ("ledger --status done", "Allowed: paper, smaller, not"),
        ("ledger --records nowhere", "not a folder of records"),
        ("ledger check", "--cell"),
        ("ledger check --cell faa/cifar100/500/er-ace+lidar", "did you mean 'faa/cifar100/500/"),
        ("ledger check --cell faa/cub200/400/icarl", "lider run --preset cub200-400-icarl"),
        ("ledger measure --group all", "unknown group"),
        ("ledger measure --scale huge", "unknown scale"),
        ("ledger collect nowhere --out c", "nowhere is not a folder"),
        ("ledger collect . --out c", "holds no runs"),
        ("ledger frobnicate", "frobnicate"),
        ("ledger --json cells er-ace", "options come after the command: lider ledger cells"),
        ("ledger --table nonsense cells er", "options come after the command"),
    ],
)
def test_mistakes_are_one_sentence(lider, tmp_path: Path, arguments: str, says: str) -> None:
    code, _, err = lider(*arguments.split())
    assert code == 2
    assert says in err
    assert len(err.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("more", "says"), [((), "nothing was kept; with --out"), (("--out", "x"), "the same command")]
)
def test_a_stopped_check_says_what_is_kept(lider, monkeypatch, more, says: str) -> None:
    def stopped(*_: object) -> None:
        raise Stopped(2, "somewhere")

    monkeypatch.setattr("liderlab.paper.ledger.reproduction_check.repeat_run", stopped)
    code, _, err = lider("ledger", "check", "--cell", "faa/cifar100/500/gdumb", *more)
    assert code == 130
    assert says in err.splitlines()[-1]


def test_an_installed_package_needs_out(
    lider, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("liderlab.paper.ledger.ledger_paths.PACKAGE", tmp_path / "a/b/c/d/ledger")
    code, _, err = lider("ledger", "collect")
    assert code == 2
    assert "--out" in err
