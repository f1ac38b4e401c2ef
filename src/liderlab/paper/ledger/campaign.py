"""The runs that the ledger measures, and their order. No torch needed.

All configurations with seed 0 come first, then seed 1, and so on: an interrupted campaign leaves a
complete table of fewer seeds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...errors import unknown
from ...runs.planned_run import PlannedRun
from ..studies.case_runs import plan_run, run_name
from ..studies.cases import Case, Request, config_of, preset_of

SETTING, BUFFER = "cifar100", 500
METHODS = ("er-ace", "der++", "x-der-rpc", "icarl", "gdumb")
BOUNDS = ("finetune", "joint")
SETTINGS = (SETTING, "cifar100-online")
ANALYSES = ("guessing-game", "decision-surface", "lipschitz-vs-buffer")
"""Analyses of the first pair of runs: ER-ACE alone and with LiDER."""
GROUPS = {
    "methods": "five methods alone and with LiDER, finetune, joint; same lr (controlled)",
    "ablations": "ER-ACE + LiDER: fixed targets, batch estimator, on the stream",
    "single-epoch": "ER-ACE alone and with LiDER (tuned, controlled), one epoch, paper's scale",
    "stronger": "ER-ACE + LiDER: 12.5 times the weights, as the paper has 12.5 times the epochs",
}
SEEDS = {"methods": 3, "ablations": 3, "single-epoch": 1, "stronger": 3}
SCALES = {"methods": "cpu", "ablations": "cpu", "single-epoch": "paper", "stronger": "cpu"}
STRONGER = 12.5
"""The paper's 50 epochs over the 4 of scale cpu: at the same learning rate, the penalty's gradient
sums to as much over a task as in the paper's number of steps."""


@dataclass(frozen=True)
class CampaignRun:
    """One run of the campaign: a case at a scale."""

    group: str
    case: Case
    scale: str

    @property
    def name(self) -> str:
        """The run's name, the same as in `lider study`."""
        return run_name(config_of(self.case, self.request, SETTINGS))

    @property
    def request(self) -> Request:
        """One thread, since several would add floating-point numbers in another order."""
        return Request(self.scale, threads=1)

    def plan(self, out: Path) -> PlannedRun:
        return plan_run(config_of(self.case, self.request, SETTINGS), out)


def campaign(
    groups: Sequence[str] = tuple(GROUPS), seeds: int | None = None, scale: str | None = None
) -> list[CampaignRun]:
    """The runs in their order. seeds, scale: None takes each group's own.

    >>> [item.case.label for item in campaign(["single-epoch"])]
    ['ER-ACE', 'ER-ACE + LiDER', 'ER-ACE + LiDER (controlled)']
    >>> len(campaign()), [item.case.seed for item in campaign()][12:20]
    (51, [0, 0, 0, 0, 0, 0, 0, 1])
    """
    for group in groups:
        if group not in GROUPS:
            raise unknown("group", group, GROUPS)
    most = max((seeds or SEEDS[group] for group in groups), default=0)
    return [
        CampaignRun(group, _with_networks(replace(case, seed=seed)), scale or SCALES[group])
        for seed in range(most)
        for group in GROUPS
        if group in groups and seed < (seeds or SEEDS[group])
        for case in cases_of(group)
    ]


def cases_of(group: str) -> Iterator[Case]:
    """One seed of a group."""
    if group == "methods":
        for method in METHODS:
            yield Case(SETTING, BUFFER, method)
            yield controlled(Case(SETTING, BUFFER, method, "lider"))
        for method in BOUNDS:
            yield Case(SETTING, None, method)
    elif group == "ablations":
        yield controlled(Case(SETTING, BUFFER, "er-ace", "lider-fixed"))
        yield controlled(Case(SETTING, BUFFER, "er-ace", "lider", estimator="batch"))
        yield controlled(Case(SETTING, BUFFER, "er-ace", "lider-stream"))
    elif group == "single-epoch":
        yield Case("cifar100-online", BUFFER, "er-ace")
        yield Case("cifar100-online", BUFFER, "er-ace", "lider")
        yield controlled(Case("cifar100-online", BUFFER, "er-ace", "lider"))
    else:
        case = controlled(Case(SETTING, BUFFER, "er-ace", "lider"))
        weights = preset_of(case).config["regularizers"]["lider"]
        yield replace(case, **{name: STRONGER * weights[name] for name in ("alpha", "beta")})


def controlled(case: Case) -> Case:
    """The case in the controlled column, if its row differs from the tuned one."""
    other = replace(case, column="controlled")
    return other if preset_of(other).name.endswith("-controlled") else case


def _with_networks(case: Case) -> Case:
    """The analysed pair keeps the network of every task, for its decision surface."""
    return replace(case, keep_tasks=is_analysed(case))


def is_analysed(case: Case) -> bool:
    """Whether the case is one of the pair that is analysed."""
    pair = (case.setting, case.method) == (SETTING, "er-ace") and case == case.as_usual
    return pair and case.addition in ("", "lider") and case.seed == 0


def by_name(runs: Iterable[CampaignRun]) -> dict[str, CampaignRun]:
    """The runs by name; each under two names, with and without its kept networks."""
    found: dict[str, CampaignRun] = {}
    for run in runs:
        for kept in (False, True):
            found.setdefault(replace(run, case=replace(run.case, keep_tasks=kept)).name, run)
    return found
