"""Which runs the ledger measures: the same ones as the studies', useful from the first on."""

from dataclasses import replace
from pathlib import Path

import pytest

from liderlab.config.merging import make_config
from liderlab.config.yaml_values import parse_assignment
from liderlab.errors import UserError
from liderlab.paper.ledger.campaign import (
    GROUPS,
    SEEDS,
    CampaignRun,
    by_name,
    campaign,
    is_analysed,
)
from liderlab.paper.ledger.repeat_command import repeat_command
from liderlab.paper.studies import find_study
from liderlab.paper.studies.case_runs import plan_runs
from liderlab.paper.studies.cases import Case, Request, config_of


def test_all_of_one_seed_comes_before_the_next() -> None:
    items = campaign()
    seeds = [item.case.seed for item in items]
    assert seeds == sorted(seeds)
    first = [item for item in items if item.case.seed == 0]
    assert {item.group for item in first} == set(GROUPS)
    assert len({item.name for item in items}) == len(items)  # nothing runs twice
    for group, number in SEEDS.items():
        assert {i.case.seed for i in items if i.group == group} == set(range(number))


def test_the_campaign_covers_methods_ablations_and_one_epoch() -> None:
    methods = {(i.case.method, i.case.addition) for i in campaign(["methods"])}
    pairs = [
        (m, a) for m in ("er-ace", "der++", "x-der-rpc", "icarl", "gdumb") for a in ("", "lider")
    ]
    assert methods == {("finetune", ""), ("joint", ""), *pairs}
    changed = {
        (i.case.addition, i.case.estimator)
        for i in campaign(["ablations"])
        if i.case.method == "er-ace"
    }
    assert changed == {("lider-fixed", None), ("lider-stream", None), ("lider", "batch")}
    online = campaign(["single-epoch"])
    assert [(i.case.setting, i.scale) for i in online] == [("cifar100-online", "paper")] * 3
    stronger = {(i.case.alpha, i.case.beta) for i in campaign(["stronger"])}
    assert stronger == {(12.5 * 0.1, 12.5 * 0.3)}
    assert sum(is_analysed(item.case) for item in campaign()) == 2  # what the analyses look at


def test_only_the_penalty_differs_in_the_controlled_column() -> None:
    for item in campaign(["methods"], seeds=1):
        if item.case.addition:
            alone = replace(item.case, addition="", column="tuned", keep_tasks=False)
            plain, treated = (
                config_of(case, item.request, ()).model_dump()
                for case in (alone, replace(item.case, keep_tasks=False))
            )
            assert treated["regularizers"].keys() == {"lider"}
            for part in ("training", "method", "backbone", "memory", "benchmark"):
                assert plain[part] == treated[part], item.case.label


def test_runs_are_shared_with_the_studies() -> None:
    """`lider study main --scale cpu` in the same folder finds them, and they are found again."""
    study = {plan.name for _, plan in plan_runs(find_study("main"), Request("cpu"), Path("x"))}
    ours = by_name(campaign(["methods"], seeds=1))
    assert len(study & ours.keys()) == 12
    kept = next(item for item in campaign() if item.case.keep_tasks)
    other = replace(kept, case=replace(kept.case, keep_tasks=False))
    assert ours[kept.name] == ours[other.name]


def test_the_case_sets_the_estimator() -> None:
    case = Case("cifar100", 500, "er-ace", "lider", estimator="batch")
    config = config_of(case, Request("cpu"), ())
    assert config.regularizers["lider"]["estimator"] == "batch"
    assert case.label == "ER-ACE + LiDER (batch estimator)"


def test_an_unknown_group_is_one_sentence() -> None:
    with pytest.raises(UserError, match="did you mean 'ablations'"):
        campaign(["ablation"])


@pytest.mark.parametrize(
    "case",
    [
        *(item.case for item in campaign(seeds=1)),
        Case("cifar100", 500, "der++", "lider", poison=0.1, seed=3),
        Case("cub200", 400, "er-ace", "oewc"),
        Case("miniimagenet", 2000, "der++", "ssgd"),
    ],
    ids=lambda case: case.label,
)
def test_the_command_repeats_the_run(case: Case) -> None:
    """The command, typed, gives the same configuration."""
    words = repeat_command(case, "cpu").split()
    assert words[:2] == ["lider", "run"]
    options = list(zip(words[2::2], words[3::2], strict=True))
    start = {name: value for name, value in options if name in ("--preset", "--scale")}
    tree = {name[2:]: value for name, value in start.items()}
    numbers = {name[2:]: int(value) for name, value in options if name in ("--seed", "--threads")}
    added = {value: {} for name, value in options if name == "--regularizer"}
    assigned = [parse_assignment(value) for name, value in options if name == "--set"]
    layers = [tree | numbers, *([{"regularizers": added}] if added else []), *assigned]
    assert make_config(*layers) == config_of(case, CampaignRun("", case, "cpu").request, ())
