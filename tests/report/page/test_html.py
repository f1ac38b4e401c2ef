"""The data in the page, and its safety as far as the text shows it."""

import json
import os
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pytest

from liderlab.config.merging import make_config
from liderlab.errors import UserError
from liderlab.functional.statistics import mean_interval, paired_difference
from liderlab.report.glossary import METRICS, TERMS
from liderlab.report.page.html import write_report
from liderlab.report.page.overview_data import overview
from liderlab.report.page.run_data import run_data
from liderlab.report.run_records import RunRecord, read_all
from liderlab.runs.execute import run

NASTY = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>&\"'"


class Blocks(HTMLParser):
    """The JSON blocks of a page, as a browser finds them, and the names of all tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.blocks: dict[str, Any] = {}
        self._name: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        facts = dict(attrs)
        self._name = facts.get("id") if facts.get("type") == "application/json" else None

    def handle_data(self, data: str) -> None:
        if self._name:
            self.blocks[self._name] = json.loads(data)
            self._name = None


@pytest.fixture(scope="module")
def page(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("page") / "deep/report.html"
    write_report(read_all([runs])[0], out)
    return out.read_text()


def test_rows_hold_means_deviations_and_the_gain_of_lider(runs: Path, page: str) -> None:
    data = Blocks(page).blocks["overview"]
    rows = {row["label"]: row for row in data["groups"]}
    faa = {
        name: RunRecord.read(runs / name).metric("class_incremental", "faa")
        for name in ("er-ace-0", "er-ace-1", "er-ace-lider-0", "er-ace-lider-1")
    }
    plain = [faa["er-ace-0"], faa["er-ace-1"]]
    value = rows["er-ace"]["values"]["class_incremental"]["faa"]
    half = mean_interval(plain).half
    expected_value = {"mean": fmean(plain), "std": stdev(plain), "n": 2, "half": half}
    assert value == pytest.approx(expected_value)
    expected = paired_difference(
        {0: faa["er-ace-lider-0"], 1: faa["er-ace-lider-1"]}, dict(enumerate(plain))
    )
    gain = rows["er-ace + LiDER"]["gains"][0]["values"]["class_incremental"]
    points = [[n, faa[f"er-ace-lider-{n}"] - faa[f"er-ace-{n}"]] for n in (0, 1)]
    assert gain.pop("points") == pytest.approx(np.array(points), rel=1e-3)
    assert gain == vars(expected)
    assert rows["er-ace"]["gains"] == []
    assert rows["joint"]["values"]["class_incremental"]["ff"] is None


def test_a_run_block_holds_the_data_of_its_page(runs: Path, page: str) -> None:
    blocks = Blocks(page).blocks
    number = [r["name"] for r in blocks["overview"]["runs"]].index("er-ace-lider-0")
    run, record = blocks[f"run-{number}"], RunRecord.read(runs / "er-ace-lider-0")
    assert run["matrix"]["class_incremental"][2] == pytest.approx(
        record.matrix("class_incremental")[2], abs=0.01
    )
    assert set(run["terms"]) == {"stream", "replay", "lider/c_lip", "lider/0_lip"}
    stages = {name.split("/")[2] for name in run["readings"]}
    assert {f"lider/{symbol}/{stage}" for symbol in "λc" for stage in stages} == set(
        run["readings"]
    )
    assert len(run["memory"]["label"]) == 20
    assert run["ends"] == [line["step"] for line in record.lines if line["kind"] == "task"]
    assert run["command"].startswith("lider run --config ")
    assert run["yaml"] == (runs / "er-ace-lider-0/config.yaml").read_text()
    assert run["versions"]["torch"]
    assert run["onMemory"]
    varying = blocks["overview"]["varying"]
    assert {"seed", "method.name", "regularizers.lider.alpha", "memory.poison"} <= set(varying)
    assert "training.lr" not in varying


def test_marks_of_poisoned_and_edited_samples(page: str) -> None:
    blocks = Blocks(page).blocks
    by_name = {run["name"]: blocks[f"run-{n}"] for n, run in enumerate(blocks["overview"]["runs"])}
    assert 0 < sum(by_name["poisoned"]["memory"]["poisoned"]) < 20
    assert max(by_name["gmed"]["memory"]["edits"]) > 0
    assert "poisoned" not in by_name["gmed"]["memory"]
    assert by_name["joint"]["memory"] is None


def test_a_memory_on_disk_is_shown_too(tmp_path: Path) -> None:
    small = {"benchmark": "synthetic", "backbone": {"width": 8}, "training": {"epochs": 1}}
    views = []
    for storage in ("ram", "disk"):
        run(make_config(small, {"memory": {"size": 20, "storage": storage}}), tmp_path / storage)
        views.append(run_data(RunRecord.read(tmp_path / storage), 1, memory=True)["memory"])
    assert views[0] == views[1]
    assert len(views[1]["label"]) == 20


def test_the_page_refers_to_no_other_file_or_address(page: str) -> None:
    assert set(re.findall(r"(?:src|href)=\"([^\"]*)\"", page)) == {"data:,", "#main"}
    urls = set(re.findall(r"https?://[^\"'\s)]*", re.sub(r"<script type.*?</script>", "", page)))
    assert urls == {"http://www.w3.org/2000/svg"}  # a name, not an address
    assert "default-src 'none'" in page
    assert "unsafe" not in page


def test_names_with_html_in_them_stay_text(runs: Path, tmp_path: Path, page: str) -> None:
    record = RunRecord.read(runs / "er-ace-0")
    result = json.loads(json.dumps(record.result))
    result["classes"] = [NASTY] * 6
    nasty = RunRecord(record.path, NASTY, record.state, record.config, result)
    write_report([nasty], tmp_path / "x.html", title=NASTY)
    text = (tmp_path / "x.html").read_text()
    parsed = Blocks(text)
    assert parsed.blocks["overview"]["runs"][0]["name"] == NASTY
    assert parsed.blocks["run-0"]["classes"][0] == NASTY
    extra = len(Blocks(page).blocks) - len(parsed.blocks)
    assert parsed.tags.count("script") == Blocks(page).tags.count("script") - extra
    assert "img" not in parsed.tags


def test_the_papers_numbers_stand_beside_ours(runs: Path) -> None:
    paper = {("synthetic", 20, "er-ace", True): {"faa": 12.5, "ff": 3.0}}
    rows = overview(read_all([runs])[0], "x", paper)["groups"]
    assert [row["paper"] for row in rows if row["paper"]] == [{"faa": 12.5, "ff": 3.0}]


def test_every_term_in_the_script_has_a_definition(page: str) -> None:
    words = re.findall(r"\bterm\(\"[^\"]*\"(?:, \"([^\"]*)\")?\)", page)
    plain = re.findall(r"\bterm\(\"([^\"]*)\"\)", page) + re.findall(
        r"explain\(\"([^\"]*)\"\)", page
    )
    used = {word for word in [*words, *plain] if word}
    assert len(used) > 8
    assert used <= {*TERMS, *METRICS}


def test_a_damaged_checkpoint_only_removes_the_images(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "er-ace-0", tmp_path / "x")
    for file in (tmp_path / "x/checkpoints").iterdir():
        file.write_bytes(b"broken")
    write_report([RunRecord.read(tmp_path / "x")], tmp_path / "x.html")
    assert Blocks((tmp_path / "x.html").read_text()).blocks["run-0"]["memory"] is None


def test_an_unwritable_path_is_refused(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot write"):
        write_report([RunRecord.read(runs / "joint")], tmp_path / "file/x.html")


def test_non_finite_numbers_become_gaps(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "er-ace-0", tmp_path / "x")
    line = {
        "kind": "step",
        "step": 99,
        "task": 2,
        "terms": {"stream": float("nan")},
        "readings": {},
    }
    with (tmp_path / "x/metrics.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")
    write_report([RunRecord.read(tmp_path / "x")], tmp_path / "x.html", memory=False)
    run = Blocks((tmp_path / "x.html").read_text()).blocks["run-0"]
    assert run["terms"]["stream"]["y"][-1] is None
    assert run["memory"] is None


def test_a_folder_name_may_be_invalid_unicode(runs: Path, tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    try:
        shutil.copytree(runs / "er-ace-0", tmp_path / name)
    except OSError:
        pytest.skip("this file system takes names of text alone")
    record = RunRecord.read(tmp_path / name, name)
    assert write_report([record], tmp_path / "x.html", memory=False) == []
    page = Blocks((tmp_path / "x.html").read_text(encoding="utf-8"))
    assert page.blocks["overview"]["runs"][0]["name"] == name


def test_a_run_evaluated_during_tasks_has_its_curves(tmp_path: Path) -> None:
    small = {"benchmark": "synthetic", "backbone": {"width": 8}, "evaluate": "every:5"}
    result = run(make_config(small), tmp_path)
    data = run_data(RunRecord.read(tmp_path), 1, memory=False)
    for setting in ("class_incremental", "task_incremental"):
        found = data["anytime"][setting]
        assert found["values"] == {m: result[setting][m] for m in ("min_acc", "wc_acc", "aaa")}
        steps = [[5, 6, 10, 12, 15, 18], [10, 12, 15, 18], [15, 18]]
        assert [curve["x"] for curve in found["curves"]] == steps
        ends = [curve["y"][-1] for curve in found["curves"]]  # 16 test images of a task: all
        assert ends == pytest.approx(result[setting]["accuracy_matrix"][-1], abs=0.05)


def test_other_runs_have_no_such_curves(runs: Path) -> None:
    assert run_data(read_all([runs])[0][0], 1, memory=False)["anytime"] is None
