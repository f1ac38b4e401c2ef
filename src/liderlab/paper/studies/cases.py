"""A case is one run of a study in the paper's words; here it becomes a configuration.

At `--scale smoke`, or with a `--benchmark` that the paper does not use, every setting's place is
taken by a stand-in: that benchmark with a network, schedule and learning rate of its own, a tenth
of the buffer, and the method's and the penalty's weights as in the paper. What was replaced is
written into the run's configuration. No torch needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ...config.merging import make_config
from ...config.presets import Preset, presets
from ...config.scale import SCALES
from ...config.schema import RunConfig
from ...errors import UserError, unknown
from ...streams import BENCHMARKS

Tree = dict[str, Any]
STAND_IN = "split-digits"
SMALLEST_BUFFER = 10
SMOKE: Tree = {
    "benchmark": {"name": STAND_IN, "train_per_class": 60},
    "backbone": {"name": "convnet-small", "width": 16},
    "training": {"epochs": 3, "milestones": [], "lr": 0.3},
}
"""What smoke makes of the stand-in: enough to learn, to forget and to overfit a memory in a second
or two. It was chosen for that, so its numbers prove the machinery and nothing about the methods."""
FIT_EPOCHS = 30  # of GDumb on a stand-in: its memory is a tenth

Addition = Literal["", "lider", "lider-stream", "lider-fixed", "ssgd", "oewc", "olap"]
LABELS = {
    "": "",
    "lider": " + LiDER",
    "lider-stream": " + LiDER (current task)",
    "lider-fixed": " + LiDER (fixed targets)",
    "ssgd": " + sSGD",
    "oewc": " + oEWC",
    "olap": " + oLAP",
}
METHOD_NAMES = {
    "joint": "Joint",
    "finetune": "Finetune",
    "icarl": "iCaRL",
    "der++": "DER++",
    "x-der-rpc": "X-DER-RPC",
    "gdumb": "GDumb",
    "er-ace": "ER-ACE",
    "gmed": "GMED",
}


@dataclass(frozen=True)
class Request:
    """What was asked for. benchmark: only the settings on it, or a stand-in for all of them."""

    scale: str = "smoke"
    seeds: int = 1
    benchmark: str | None = None
    device: str = "cpu"
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.scale not in SCALES:
            raise unknown("scale", self.scale, SCALES)
        if self.seeds < 1:
            raise UserError(f"a study needs at least one seed, not {self.seeds}")
        if self.benchmark is not None and not self.benchmark.startswith("folder:"):
            BENCHMARKS.entry(self.benchmark)

    @property
    def smoke(self) -> bool:
        return self.scale == "smoke"


@dataclass(frozen=True)
class Case:
    """One run: a setting and a buffer of the paper, a method, what is added to it, a seed.

    column: "tuned", every value as the paper prints it for the row; "controlled", the row of the
    method alone with the penalty switched on. alpha, beta, estimator (of λ), backbone, width: None
    as in the preset. keep_tasks: keep the network after every task, for those who follow it.
    """

    setting: str
    buffer: int | None
    method: str
    addition: Addition = ""
    column: Literal["tuned", "controlled"] = "tuned"
    poison: float = 0.0
    alpha: float | None = None
    beta: float | None = None
    estimator: Literal["spatial", "batch", "jacobian"] | None = None
    backbone: str | None = None
    width: int | None = None
    keep_tasks: bool = False
    seed: int = 0

    @property
    def label(self) -> str:
        """
        >>> Case("cifar100", 500, "er-ace", "lider", "controlled").label
        'ER-ACE + LiDER (controlled)'
        """
        method = METHOD_NAMES.get(self.method, self.method) + LABELS[self.addition]
        estimator = f" ({self.estimator} estimator)" if self.estimator else ""
        weights = {"α": self.alpha, "β": self.beta}
        own = ", ".join(f"{name} {value:g}" for name, value in weights.items() if value is not None)
        column = " (controlled)" if self.column == "controlled" else ""
        return method + estimator + (f" ({own})" if own else "") + column

    @property
    def as_usual(self) -> Case:
        """With the estimator and the weights of its preset."""
        return replace(self, estimator=None, alpha=None, beta=None)

    @property
    def unseeded(self) -> Case:
        """What it is apart from its seed: equal ones belong to one cell."""
        return replace(self, seed=0)


def over_seeds(cases: Iterable[Case], request: Request) -> list[Case]:
    return [replace(case, seed=seed) for case in cases for seed in range(request.seeds)]


def combinations(
    settings: Sequence[str],
    methods: Sequence[str],
    additions: Sequence[Addition],
    request: Request,
    sizes: Sequence[int] | None = None,
) -> list[Case]:
    """Every cell of a table, over the seeds. sizes: of the buffer; by default those that the
    setting has presets for, of which the first is enough at smoke scale."""
    found = [
        Case(setting, buffer, method, addition)
        for setting in chosen_settings(settings, request)
        for buffer in sizes or buffers(setting)[: 1 if request.smoke else None]
        for method in methods
        for addition in additions
    ]
    return over_seeds(found, request)


def chosen_settings(settings: Sequence[str], request: Request) -> list[str]:
    """Those that the request is about; where a stand-in takes their place, the first is enough."""
    if stand_in(settings, request):
        return [settings[0]]
    if request.benchmark is None:
        return list(settings)
    return [s for s in settings if _of_setting(s)["benchmark"]["name"] == request.benchmark]


def stand_in(settings: Iterable[str], request: Request) -> str | None:
    """The benchmark that takes the place of the paper's, if one does."""
    own = {_of_setting(setting)["benchmark"]["name"] for setting in settings}
    if request.benchmark is not None and request.benchmark not in own:
        return request.benchmark
    return (request.benchmark or STAND_IN) if request.smoke else None


def buffers(setting: str) -> list[int]:
    """The buffer sizes that there are presets for."""
    sizes = {p.buffer for p in presets().values() if p.setting == setting and p.buffer}
    return sorted(sizes)


def preset_of(case: Case) -> Preset:
    """The row of the paper's tables that the case starts from: of the nearest buffer, if need be.

    >>> preset_of(Case("cifar100", 200, "er-ace", "ssgd")).name
    'cifar100-500-er-ace'
    """
    with_lider = case.addition.startswith("lider")
    rows = [
        p
        for p in presets().values()
        if (p.setting, p.method, p.lider) == (case.setting, case.method, with_lider)
    ]
    if not rows:
        raise UserError(f"there is no preset for {case.label} in {case.setting}")
    nearest = min(rows, key=lambda p: abs(math.log((p.buffer or 1) / (case.buffer or 1)))).buffer
    rows = [p for p in rows if p.buffer == nearest]
    controlled = [p for p in rows if p.name.endswith("-controlled")]
    if case.column == "controlled" and controlled:
        return controlled[0]
    return next(p for p in rows if not p.name.endswith("-controlled"))


def config_of(case: Case, request: Request, settings: Sequence[str]) -> RunConfig:
    """The run's configuration. settings: all of the study's, to see whether one stands in."""
    row = preset_of(case)
    instead = stand_in(settings, request)
    if instead is None:
        start: Tree = {"preset": row.name, "scale": request.scale}
        size = case.buffer
    else:
        start = _standing_in(row.config, instead, request)
        size = case.buffer and max(SMALLEST_BUFFER, case.buffer // 10)
    return make_config(start, _changes(case, size), _machine(case, request))


def _changes(case: Case, size: int | None) -> Tree:
    """What the case changes in its preset."""
    changes: Tree = {}
    if size is not None:
        changes["memory"] = {"size": size, **({"poison": case.poison} if case.poison else {})}
    if case.addition in ("ssgd", "oewc", "olap"):
        changes["regularizers"] = {case.addition: {}}
    lider: Tree = {}
    if case.addition == "lider-stream":
        lider["on"] = "stream"
    if case.addition == "lider-fixed":
        lider["learn_targets"] = False
    if case.alpha is not None:
        lider["alpha"] = case.alpha
    if case.beta is not None:
        lider["beta"] = case.beta
    if case.estimator is not None:
        lider["estimator"] = case.estimator
    if lider:
        changes["regularizers"] = {"lider": lider}
    if case.backbone is not None:
        width = {} if case.width is None else {"width": case.width}
        changes["backbone"] = {"name": case.backbone, **width}
    if case.keep_tasks:
        changes["keep_tasks"] = True
    return changes


def _machine(case: Case, request: Request) -> Tree:
    threads = {} if request.threads is None else {"threads": request.threads}
    return {"seed": case.seed, "device": request.device, **threads}


def _standing_in(config: Tree, benchmark: str, request: Request) -> Tree:
    """The same experiment on another benchmark, and a record of what it was."""
    tree: Tree = {
        "benchmark": {"name": benchmark},
        "method": dict(config["method"]),
        "regularizers": config["regularizers"],
        "scale": request.scale,
    }
    if "fit_epochs" in config["method"]:
        tree["method"]["fit_epochs"] = FIT_EPOCHS
    if request.smoke and benchmark == STAND_IN:
        change = {"from": config["benchmark"]["name"], "to": benchmark}
        tree |= SMOKE | {"scale": {"name": "smoke", "changes": {"benchmark.name": change}}}
    if config["training"]["epochs"] == 1:
        tree["training"] = {**tree.get("training", {}), "epochs": 1, "milestones": []}
    return tree


def _of_setting(setting: str) -> Tree:
    return next(p.config for p in presets().values() if p.setting == setting)
