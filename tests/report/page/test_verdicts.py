"""The sentences and stars of the report, against numbers worked out by hand."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from liderlab.config.merging import make_config
from liderlab.regularizers import REGULARIZERS
from liderlab.report.page.overview_data import overview
from liderlab.report.page.verdicts import best_of_settings
from liderlab.report.run_records import RunRecord
from liderlab.report.seed_groups import group_by_seed

ACCURACY = {"ff": None, "bwt": None, "fwt": None, "aia": None, "accuracy_matrix": [[50.0]]}


def runs(method: str, *faa: float, also: Sequence[str] = (), first: int = 0) -> list[RunRecord]:
    """A record per seed with these accuracies."""
    records = []
    for seed, value in enumerate(faa, first):
        choice: dict[str, Any] = {"method": method, "seed": seed}
        choice["benchmark"] = {"name": "synthetic", "tasks": 3}
        choice["regularizers"] = {name: {} for name in also}
        config = make_config(choice).model_dump(mode="json")
        both = ("class_incremental", "task_incremental")
        result = {setting: {**ACCURACY, "faa": value} for setting in both}
        records.append(RunRecord(Path(), f"{method}-{seed}", "finished", config, result))
    return records


def sentences(row: Mapping[str, Any]) -> list[str]:
    return [gain["sentences"]["class_incremental"] for gain in row["gains"]]


@pytest.mark.parametrize(
    ("plain", "treated", "sentence"),
    [
        # differences 1, 3, 2: 2 ± 4.303 · 1 / √3
        ((70, 70, 70), (71, 73, 72), "adds 2.0 ± 2.5 points to er-ace on synthetic: not "),
        # differences 2, 2.1, 1.9: 2 ± 4.303 · 0.1 / √3
        ((70, 71, 72), (72, 73.1, 73.9), "adds 2.0 ± 0.2 points to er-ace on synthetic: disting"),
        ((72, 73.1, 73.9), (70, 71, 72), "takes 2.0 ± 0.2 points from er-ace on synthetic: dis"),
        ((70, 71), (70, 71 + 1e-13), "changes nothing for er-ace on synthetic: the same final av"),
        ((70,), (71.5,), "adds 1.5 points to er-ace on synthetic: one seed cannot tell"),
    ],
)
def test_the_headline_says_whether_the_gain_is_distinguishable(
    plain: tuple[float, ...], treated: tuple[float, ...], sentence: str
) -> None:
    rows = overview([*runs("er-ace", *plain), *runs("er-ace", *treated, also=["lider"])], "x", {})
    assert sentences(rows["groups"][1])[0].startswith(f"LiDER {sentence}")
    assert sentences(rows["groups"][0]) == []


@pytest.mark.parametrize("name", REGULARIZERS)
def test_every_regulariser_has_its_sentence(name: str) -> None:
    rows = overview([*runs("er", 70, 71), *runs("er", 72, 73, also=[name])], "x", {})["groups"]
    assert len(sentences(rows[1])) == 1
    assert sentences(rows[1])[0].lower().startswith(f"{name} adds 2.0 ± 0.0 points to er on synth")


def test_combinations_are_compared_with_their_parts() -> None:
    plain, lider = runs("er", 70, 71), runs("er", 72, 73, also=["lider"])
    both = runs("er", 75, 77, also=["lider", "sam"])
    (alone,) = sentences(overview([*plain, *both], "x", {})["groups"][1])
    assert alone.startswith("LiDER and SAM add 5.5 ± 6.4 points to er on synthetic: not ")
    rows = overview([*plain, *lider, *both], "x", {})["groups"]
    assert [text.split(" points")[0] for text in sentences(rows[2])] == ["SAM adds 3.5 ± 6.4"]
    sam = runs("er", 70, 70, also=["sam"])
    rows = overview([*plain, *lider, *sam, *both], "x", {})["groups"]
    assert [text.split(" on ")[0] for text in sentences(rows[3])] == [
        "SAM adds 3.5 ± 6.4 points to er + LiDER",
        "LiDER adds 6.0 ± 12.7 points to er + SAM",
    ]


def test_runs_without_a_common_seed_have_no_interval() -> None:
    records = [*runs("er", 70, 71), *runs("er", 72, 73, also=["lider"], first=5)]
    (found,) = sentences(overview(records, "x", {})["groups"][1])
    assert found.endswith("the runs have no common seed, so there is no interval.")


def best(*rows: list[RunRecord]) -> list[list[str]]:
    groups = group_by_seed([record for row in rows for record in row])
    return [found["class_incremental"] for found in best_of_settings(groups)[0]]


def test_a_star_needs_a_difference_from_every_rival() -> None:
    clear = runs("er", 80, 81, 82)
    assert best(clear, runs("der", 70, 71.1, 71.9), runs("gmed", 60, 61.1, 62)) == [["faa"], [], []]
    assert best(clear, runs("der", 70, 90, 75), runs("gmed", 60, 61.1, 62)) == [[], [], []]
    assert best(runs("er", 80), runs("der", 70)) == [[], []]  # one seed tells nothing
    upper = runs("joint", 98, 98.1, 98.3)
    assert best(clear, runs("der", 70, 71.1, 71.9), upper) == [["faa"], [], []]


def test_the_leader_names_the_rivals_it_cannot_be_told_from() -> None:
    near, far = runs("der", 79, 83, 80), runs("gmed", 60, 61.1, 62)
    groups = group_by_seed([*runs("er", 80, 81, 82), *near, *far])
    leads = best_of_settings(groups)[1]
    assert leads[0]["class_incremental"] == (
        "er has the highest final average accuracy of its setting, 81.0 %: "
        "not distinguishable from der."
    )
    assert leads[1:] == [{}, {}]
