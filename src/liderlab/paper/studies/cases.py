"""Cases: single runs of the paper, in its own words, and the configuration of each. No torch.

At `--scale smoke`, or with a `--benchmark` that the paper does not use, a stand-in replaces every
setting: that benchmark with its own network, schedule and learning rate, a tenth of the buffer, and
the paper's weights of method and penalty. The run's configuration records the replacement.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ...config.merging import make_config, merge
from ...config.presets import Preset, presets
from ...config.scale import SCALES, shortened
from ...config.schema import RunConfig
from ...config.yaml_values import parse_assignment
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
"""The stand-in at smoke scale: enough to learn, forget and overfit a memory in a second or two. It
was chosen for that, so its numbers prove that the code runs and nothing about the methods."""
FIT_EPOCHS = 30  # of GDumb on a stand-in, whose memory is a tenth

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
    "er": "ER",
    "der": "DER",
    "icarl": "iCaRL",
    "der++": "DER++",
    "x-der-rpc": "X-DER-RPC",
    "gdumb": "GDumb",
    "er-ace": "ER-ACE",
    "gmed": "GMED",
}


BUDGETS = ("equal-steps", "equal-passes", "equal-seconds")
OPEN_SECTIONS = ("benchmark", "backbone", "memory", "training")
"""Of a run's configuration: a study leaves these to its user. The others are its subject."""


@dataclass(frozen=True)
class Request:
    """Options of a study. benchmark: only the settings on it, or a stand-in for all of them.

    lr, epochs, changes ("training.momentum=0.9"): of all runs, instead of the paper's. methods,
    regularizers ("lider+star": both), tries, budget: of the matrix; () takes its own.
    """

    scale: str = "smoke"
    seeds: int = 1
    benchmark: str | None = None
    device: str = "cpu"
    threads: int | None = None
    lr: float | None = None
    epochs: int | None = None
    changes: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    regularizers: tuple[str, ...] = ()
    tries: int = 3
    budget: str = "equal-steps"

    def __post_init__(self) -> None:
        if self.scale not in SCALES:
            raise unknown("scale", self.scale, SCALES)
        if self.seeds < 1:
            raise UserError(f"a study needs at least one seed, not {self.seeds}")
        if self.budget not in BUDGETS:
            raise unknown("budget", self.budget, BUDGETS)
        if self.benchmark is not None and not self.benchmark.startswith("folder:"):
            BENCHMARKS.entry(self.benchmark)
        self.changed()

    def changed(self) -> Tree:
        """The fields that `changes` sets, as a layer of the configuration.

        >>> Request(changes=("benchmark.train_per_class=50", "memory.size=20")).changed()
        {'benchmark': {'train_per_class': 50}, 'memory': {'size': 20}}
        """
        layer: Tree = {}
        for text in self.changes:
            own = parse_assignment(text)
            ((section, value),) = own.items()
            named = section == "benchmark" and (not isinstance(value, dict) or "name" in value)
            if section not in OPEN_SECTIONS or named:
                raise UserError(
                    f"a study chooses {section}{'.name' if named else ''} itself: --set takes "
                    f"fields of {', '.join(OPEN_SECTIONS)}"
                    + (", and --benchmark another benchmark" if named else "")
                )
            layer = merge(layer, own)
        return layer

    @property
    def smoke(self) -> bool:
        return self.scale == "smoke"


@dataclass(frozen=True)
class Case:
    """One run: a setting and a buffer of the paper, a method, an addition to it, a seed.

    column: "tuned" takes every value that the paper prints for the row; "controlled" takes those of
    the method alone and switches the penalty on. form, alpha, beta, targets, roles (of α and β),
    estimator (of λ), backbone, width: None keeps the preset's. control: LiDER's passes without its
    terms. keep_tasks: keep the network after every task.
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
    form: str | None = None
    targets: Literal["learned", "fixed"] | None = None
    roles: Literal["paper", "swapped"] | None = None
    control: bool = False
    backbone: str | None = None
    width: int | None = None
    keep_tasks: bool = False
    seed: int = 0

    @property
    def label(self) -> str:
        """
        >>> Case("cifar100", 500, "er-ace", "lider", "controlled").label
        'ER-ACE + LiDER (controlled)'
        >>> Case("cifar100", 500, "er-ace", "lider", form="released", targets="fixed").label
        'ER-ACE + LiDER (released, fixed targets)'
        """
        method = METHOD_NAMES.get(self.method, self.method) + LABELS[self.addition]
        estimator = f" ({self.estimator} estimator)" if self.estimator else ""
        weights = {"α": self.alpha, "β": self.beta}
        own = ", ".join(f"{name} {value:g}" for name, value in weights.items() if value is not None)
        column = " (controlled)" if self.column == "controlled" else ""
        return method + self._kind + estimator + (f" ({own})" if own else "") + column

    @property
    def _kind(self) -> str:
        """The kind of LiDER, if it is not the preset's."""
        targets = f"{self.targets} targets" if self.targets else None
        roles = f"{self.roles} roles" if self.roles else None
        words = [self.form, targets, roles, "control" if self.control else None]
        return f" ({', '.join(word for word in words if word)})" if any(words) else ""

    @property
    def as_usual(self) -> Case:
        """The same case with its preset's LiDER."""
        plain = replace(self, alpha=None, beta=None, estimator=None, form=None)
        return replace(plain, targets=None, roles=None, control=False)

    @property
    def unseeded(self) -> Case:
        """The same case with seed 0: equal for all seeds of one cell."""
        return replace(self, seed=0)


def chosen_settings(settings: Sequence[str], request: Request) -> list[str]:
    """The settings that the request is about: the first alone if a stand-in replaces them."""
    if stand_in(settings, request):
        return list(settings[:1])
    if request.benchmark is None:
        return list(settings)
    return [s for s in settings if _of_setting(s)["benchmark"]["name"] == request.benchmark]


def on_papers_data(row: Mapping[str, Any]) -> bool:
    """Whether a row's runs had the data of the paper's setting: only then do figures draw its
    numbers.

    >>> on_papers_data({"setting": "cifar100", "benchmark": "split-digits"})
    False
    """
    own: str = _of_setting(row["setting"])["benchmark"]["name"]
    return own == row["benchmark"]


def stand_in(settings: Iterable[str], request: Request) -> str | None:
    """The benchmark that replaces those of the paper, if one does."""
    own = {_of_setting(setting)["benchmark"]["name"] for setting in settings}
    if request.benchmark is not None and request.benchmark not in own:
        return request.benchmark
    return (request.benchmark or STAND_IN) if request.smoke else None


def preset_buffers(setting: str) -> list[int]:
    """The buffer sizes of the setting's presets."""
    return sorted({p.buffer for p in presets().values() if p.setting == setting and p.buffer})


def preset_of(case: Case) -> Preset:
    """The preset that the case starts from: of the nearest buffer, if its own has no preset.

    >>> preset_of(Case("cifar100", 200, "er-ace", "ssgd")).name
    'cifar100-500-er-ace'
    """
    with_lider = case.addition.startswith("lider")
    rows = [
        p
        for p in presets().values()
        if (p.setting, p.method, p.lider) == (case.setting, case.method, with_lider)
        and not p.name.endswith("-verified")
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
    """The run's configuration. settings: all of the study's, which decide on a stand-in."""
    row = preset_of(case)
    instead = stand_in(settings, request)
    if instead is None:
        start: Tree = {"preset": row.name, "scale": request.scale}
        size = case.buffer
    else:
        start = _standing_in(row.config, instead, request)
        size = case.buffer and max(SMALLEST_BUFFER, case.buffer // 10)
    threads = {} if request.threads is None else {"threads": request.threads}
    machine = {"seed": case.seed, "device": request.device, **threads}
    rate: Tree = {} if request.lr is None else {"training": {"lr": request.lr}}
    layers = (start, _changes(case, size), rate, request.changed(), machine)
    return with_epochs(make_config(*layers), request.epochs)


def with_epochs(config: RunConfig, epochs: int | None) -> RunConfig:
    """The same run with so many epochs (None: its own), its milestones at the same shares.

    The scale still counts: it may allow fewer.
    """
    if epochs is None or epochs == config.training.epochs:
        return config
    tree = config.model_dump()
    return make_config(tree, {"training": shortened(tree["training"], epochs)})


def _changes(case: Case, size: int | None) -> Tree:
    """The values of the case that differ from its preset."""
    changes: Tree = {"keep_tasks": True} if case.keep_tasks else {}
    if size is not None:
        changes["memory"] = {"size": size, **({"poison": case.poison} if case.poison else {})}
    given = {
        "form": case.form,
        "alpha": case.alpha,
        "beta": case.beta,
        "weights": case.roles,
        "learn_targets": None if case.targets is None else case.targets == "learned",
        "estimator": case.estimator,
        "control": case.control or None,
    }
    lider: Tree = {name: value for name, value in given.items() if value is not None}
    if case.addition == "lider-stream":
        lider["on"] = "stream"
    if case.addition == "lider-fixed":
        lider["learn_targets"] = False
    if lider:
        changes["regularizers"] = {"lider": lider}
    elif case.addition in ("ssgd", "oewc", "olap"):
        changes["regularizers"] = {case.addition: {}}
    if case.backbone is not None:
        width = {} if case.width is None else {"width": case.width}
        changes["backbone"] = {"name": case.backbone, **width}
    return changes


def _standing_in(config: Tree, benchmark: str, request: Request) -> Tree:
    """The same experiment on another benchmark, with a record of the change."""
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
