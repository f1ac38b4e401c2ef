"""Names that installed packages register by entry points."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from liderlab.errors import UserError
from liderlab.methods.base import Method
from liderlab.registry import ClassRegistry, Entry, Registry

MODULE = """
from liderlab.methods.er import ER
from liderlab.registry import Entry
from liderlab.streams.datasets.synthetic import synthetic


class Theirs(ER):
    pass


class NoMethod:
    pass


defaults = {"backbone": {"name": "convnet-small", "width": 8}, "training": {"epochs": 1}}
stream = Entry(synthetic, "their patterns", {"tasks": 3, "defaults": defaults})
"""
POINTS = """
[liderlab.methods]
theirs = theirs:Theirs
er = theirs:Theirs
broken = theirs_broken:Broken
missing = theirs:Missing
no-method = theirs:NoMethod
[liderlab.benchmarks]
their-stream = theirs:stream
"""


def install(folder: Path, package: str, points: str) -> None:
    """What pip leaves of a distribution, as far as entry points need it."""
    info = folder / f"{package}-1.5.dist-info"
    info.mkdir()
    about = f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.5\nSummary: things of {package}\n"
    (info / "METADATA").write_text(about)
    (info / "entry_points.txt").write_text(points)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on sys.path with the distribution `theirs`."""
    install(tmp_path, "theirs", POINTS)
    (tmp_path / "theirs.py").write_text(MODULE)
    (tmp_path / "theirs_broken.py").write_text("import nothing_of_that_name")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "theirs", raising=False)
    return tmp_path


def methods() -> ClassRegistry[Method]:
    return ClassRegistry("method", "liderlab.methods", [("er", "er:ER", "the lab's own")])


def test_names_are_known_without_an_import(site: Path) -> None:
    registry = methods()
    assert {"er", "theirs", "broken"} <= set(registry)
    assert registry["er"].origin is None
    assert registry["theirs"].origin == "theirs 1.5"
    assert registry["theirs"].summary == "things of theirs"
    assert "theirs" not in sys.modules
    assert registry.class_of("theirs").__name__ == "Theirs"
    assert registry.facts("theirs")["rehearsal"]


def test_an_entry_object_brings_its_facts(site: Path) -> None:
    entry = Registry("benchmark", {}, "liderlab.benchmarks").entry("their-stream")
    assert (entry.summary, entry.facts["tasks"]) == ("their patterns", 3)
    assert entry.origin == "theirs 1.5"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("broken", "method 'broken' of theirs 1.5 cannot be imported: ModuleNotFoundError: No mod"),
        ("missing", "method 'missing' of theirs 1.5 cannot be imported: AttributeError"),
        ("no-method", "method 'no-method' is no subclass of liderlab.Method"),
    ],
)
def test_a_broken_one_is_refused_when_it_is_used(site: Path, name: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        methods().class_of(name)


def test_a_name_of_two_packages_is_refused_when_it_is_used(site: Path) -> None:
    install(site, "others", "[liderlab.methods]\ntheirs = others:Theirs\n")
    with pytest.raises(UserError, match=r"'theirs' is registered by .* and .*: uninstall one"):
        methods().load("theirs")


def test_damaged_metadata_breaks_nothing(site: Path) -> None:
    (site / "theirs-1.5.dist-info/METADATA").unlink()
    (site / "theirs-1.5.dist-info/entry_points.txt").write_bytes(b"[liderlab.methods]\n= \xff")
    assert "er" in methods()


def test_a_registry_without_a_group_reads_no_entry_points(site: Path) -> None:
    assert list(Registry("tool", {"max": Entry(max, "")})) == ["max"]


def test_commands_know_them(site: Path) -> None:
    def lider(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "liderlab", *arguments]
        path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": path, "COLUMNS": "80"}
        return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=site)

    listed = lider("list", "--json")
    rows = {row["name"]: row for row in json.loads(listed.stdout)["methods"]}
    assert (rows["theirs"]["origin"], rows["er"]["origin"]) == ("theirs 1.5", None)
    table = lider("list", "methods").stdout
    assert "theirs 1.5" in table
    assert max(map(len, table.splitlines())) <= 80
    done = lider("run", "--method", "theirs", "--benchmark", "their-stream", "--out", "x")
    assert done.returncode == 0, done.stderr
    refused = lider("run", "--method", "broken", "--out", "y")
    assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)
    assert not (site / "y").exists()
