"""One of the two real processes of test_ranks, which runs the cases of these names.

    python ranks.py RANK FOLDER CASE ...

The same function, called in the test's own process with a team of one, gives what they are compared
with. Both processes meet in a file of the folder: no port is taken.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from liderlab.backbones import BACKBONES
from liderlab.backbones.convnet import ConvNet
from liderlab.backbones.network import Network
from liderlab.backbones.vit import ViT
from liderlab.config.compatibility import why_not
from liderlab.distributed.batchnorm import share_batch_norm
from liderlab.distributed.team import OutOfStep, Team
from liderlab.methods import METHODS
from liderlab.registry import Entry
from liderlab.streams.augmentation import Augment
from liderlab.streams.subsets import hold_back
from liderlab.training.anytime import Anytime
from liderlab.training.budget import Budget
from liderlab.training.early_stopping import EarlyStopping
from liderlab.training.events import StepDone
from liderlab.training.loop import Loop
from liderlab.training.optimizers import make_clip
from liderlab.training.step import Step
from liderlab.types import Batch, Recipe, Terms

CONFTEST = Path(__file__).parents[1] / "conftest.py"


def _conftest() -> Any:
    spec = importlib.util.spec_from_file_location("liderlab_tests_conftest", CONFTEST)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Double(Augment):
    """Input in float64, so that ranks and one process differ by rounding alone."""

    def normalise(self, raw: Tensor) -> Tensor:
        return super().normalise(raw.double())


class Plain(nn.Module):
    """`convnet-small` without BatchNorm."""

    def __init__(self, classes: int, image_shape: tuple[int, int, int], *, width: int = 8) -> None:
        super().__init__()
        self.net = ConvNet(classes, image_shape, width=width)
        for name in self.net.taps:
            self.net.get_submodule(name)[1] = nn.Identity()  # type: ignore[operator]
        self.taps = {name: f"net.{path}" for name, path in self.net.taps.items()}

    def features(self, x: Tensor) -> Tensor:
        return self.net.features(x)

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


class Pooled(nn.Module):
    """A last layer with a BatchNorm of 1x1 maps, which refuses a single row."""

    def __init__(self, classes: int, image_shape: tuple[int, int, int], *, width: int = 8) -> None:
        super().__init__()
        self.conv = nn.Conv2d(image_shape[0], width, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm1d(width)
        self.fc = nn.Linear(width, classes)
        self.taps = {"conv": "conv", "norm": "norm"}

    def features(self, x: Tensor) -> Tensor:
        return self.norm(self.conv(x).relu().mean((2, 3)))

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.features(x))


def small_vit(classes: int, image_shape: tuple[int, int, int], *, width: int = 8) -> ViT:
    return ViT(classes, image_shape, width=width, depth=2, patch=4)


OWN = {
    "plain": Entry(Plain, "without BatchNorm"),
    "pooled": Entry(Pooled, "1x1 maps"),
    "small-vit": Entry(small_vit, "tokens"),
}

RECIPE = Recipe(lr=0.05, momentum=0.5, weight_decay=1e-4, batch_size=8, replay_size=8)
UNEVEN = replace(RECIPE, batch_size=7, replay_size=5)  # 24 rows: 7, 7, 7, 3
TINY = replace(RECIPE, batch_size=3, replay_size=3)  # the second rank has nothing to do
OPTIONS: dict[str, dict[str, Any]] = {"gdumb": {"fit_epochs": 3, "cutmix_probability": 0.6}}
# tol=0: a power iteration ends when the rows at hand are exact enough, and ranks have others
SPATIAL: dict[str, Any] = {"tol": 0.0}
BATCH: dict[str, Any] = {"estimator": "batch", "tol": 0.0}


def cases() -> dict[str, dict[str, Any]]:
    """Every method alone and with LiDER's two forms; then the cases that concern ranks alone."""
    found: dict[str, dict[str, Any]] = {}
    for method in METHODS:
        on = {} if METHODS.class_of(method).rehearsal else {"on": "stream"}
        found[f"{method} alone"] = {"method": method}
        if why_not(method, "lider", on):
            continue
        form = BATCH if method in ("finetune", "der++", "icarl") else SPATIAL
        found[f"{method} lider"] = {"method": method, "regularizers": {"lider": form | on}}
    more: dict[str, dict[str, Any]] = {
        "curvature": {"method": "er", "regularizers": {"oewc": {}, "olap": {}}},
        "data-free": {"method": "er", "regularizers": {"spectral": {}}},
        "worst weights": {"method": "der++", "regularizers": {"star": {}}, "recipe": UNEVEN},
        "idle worst weights": {"method": "er", "regularizers": {"star": {}}, "recipe": TINY},
        "graph": {
            "method": "icarl",
            "regularizers": {"casper": {"neighbors": 3}},
            "recipe": UNEVEN,
        },
        "idle graph": {
            "method": "er",
            "regularizers": {"casper": {"neighbors": 1, "classes": 1}},
            "recipe": TINY,
        },
        "moved": {"method": "icarl", "regularizers": {"mrfa": {"strength": 0.1}}, "recipe": UNEVEN},
        "idle moved": {"method": "er", "regularizers": {"mrfa": {"strength": 0.1}}, "recipe": TINY},
        "projected": {"method": "der++", "regularizers": {"bfp": {}}, "recipe": UNEVEN},
        "idle projected": {"method": "er", "regularizers": {"bfp": {}}, "recipe": TINY},
        "worst point": {
            "method": "er-ace",
            "regularizers": {"lider": SPATIAL, "sam": {"rho": 0.1}},
            "recipe": UNEVEN,
        },
        "idle worst point": {"method": "a-gem", "regularizers": {"sam": {}}, "recipe": TINY},
        "flat": {"method": "er", "regularizers": {"c-flat": {}}, "recipe": UNEVEN},
        "idle flat": {"method": "er", "regularizers": {"c-flat": {}}, "recipe": TINY},
        "a head per task": {"method": "er", "heads": "task", "recipe": TINY},
        "idle means": {"method": "ncm", "recipe": TINY},
        "slower": {"method": "er", "regularizers": {"ssgd": {"dropout": 0.0}}},
        "fresh": {"method": "er", "regularizers": {"lider": SPATIAL | {"draw": "fresh"}}},
        "control": {
            "method": "er",
            "regularizers": {"lider": SPATIAL | {"draw": "fresh", "control": True, "order": "0-c"}},
        },
        "both": {
            "method": "icarl",
            "regularizers": {"lider": SPATIAL | {"on": "both"}},
            "recipe": replace(UNEVEN, drop_last=True),
        },
        "calibrated late": {
            "method": "er-ace",
            "regularizers": {"lider": SPATIAL | {"calibrate": "first-task"}},
        },
        "calibrated on all, augmented": {
            "method": "gdumb",
            "options": {"fit_epochs": 3, "optimizer_per": "epoch", "collect": "every-epoch"},
            "regularizers": {
                "lider": SPATIAL
                | {
                    "draw": "fresh",
                    "calibration_rows": None,
                    "calibration_augmented": True,
                    "calibration_data": "task",
                }
            },
        },
        "past": {"method": "der++", "regularizers": {"lider": SPATIAL | {"rows": "past"}}},
        "past of a mixed batch": {
            "method": "icarl",
            "regularizers": {"lider": SPATIAL | {"rows": "past"}},
        },
        "jacobian": {
            "method": "er",
            "regularizers": {"lider": SPATIAL | {"estimator": "jacobian"}},
        },
        "once": {"method": "er", "offer": "once"},
        "measured during tasks": {"method": "er-ace", "measure_every": 2},
        "updates": {"method": "er-ace", "recipe": replace(UNEVEN, updates=2)},
        "steps": {"method": "der++", "budget": Budget("steps", 13)},
        "passes": {"method": "gmed", "budget": Budget("passes", 200), "recipe": UNEVEN},
        "patience": {"method": "er", "epochs": 4, "patience": 1},
        "on disk": {"method": "er", "memory": {"storage": "disk"}},
        "uneven": {"method": "er-ace", "regularizers": {"lider": SPATIAL}, "recipe": UNEVEN},
        "uneven batch form": {
            "method": "x-der-rpc",
            "regularizers": {"lider": BATCH},
            "recipe": UNEVEN,
        },
        "clipped by norm": {
            "method": "er",
            "regularizers": {"lider": SPATIAL},
            "recipe": replace(UNEVEN, clip=make_clip(0.5, None)),
        },
        "clipped by value": {"method": "er", "recipe": replace(RECIPE, clip=make_clip(None, 0.01))},
        "idle": {"method": "der++", "regularizers": {"lider": SPATIAL}, "recipe": TINY},
        "idle batch form": {
            "method": "gmed",
            "regularizers": {"lider": BATCH},
            "recipe": TINY,
        },
        "idle fresh": {
            "method": "er",
            "regularizers": {"lider": SPATIAL | {"draw": "fresh"}},
            "recipe": TINY,
        },
        "idle icarl": {"method": "icarl", "recipe": TINY},
    }
    more |= {
        "unequal tasks": {"method": "x-der-rpc", "stream": "unequal"},
        "domains": {"method": "der++", "stream": "domains"},
        "noisy": {"method": "icarl", "stream": "noisy", "recipe": UNEVEN},
        "blurry": {"method": "er-ace", "stream": "blurry", "recipe": UNEVEN},
        "task-free": {"method": "er-ace", "stream": "blurry", "task_free": True, "recipe": UNEVEN},
        "idle task-free": {
            "method": "er-ace",
            "stream": "plain",
            "task_free": True,
            "recipe": TINY,
        },
    }
    norm = {"backbone": "convnet-small", "shared_norm": True}
    shared: dict[str, dict[str, Any]] = {
        f"shared BatchNorm {method}": {"method": method, "regularizers": {"lider": SPATIAL}, **norm}
        for method in ("er", "der++", "x-der-rpc", "gmed")
    }
    shared["shared BatchNorm star"] = {"method": "er", "regularizers": {"star": {}}, **norm}
    shared["shared BatchNorm idle"] = {"method": "er", "recipe": TINY, **norm}
    shared["shared BatchNorm pooled"] = {"method": "er", **norm, "backbone": "pooled"}
    transformers: dict[str, dict[str, Any]] = {
        f"transformer {name}": {"method": "er-ace", "regularizers": regularizers, "recipe": recipe}
        | {"backbone": "small-vit"}
        for name, regularizers, recipe in [
            ("alone", {}, UNEVEN),
            ("lider", {"lider": SPATIAL}, UNEVEN),
            ("batch form", {"lider": BATCH}, RECIPE),
            ("idle lider", {"lider": SPATIAL}, TINY),
            ("star", {"star": {}}, UNEVEN),
            ("oewc", {"oewc": {}}, RECIPE),
        ]
    }
    own: dict[str, dict[str, Any]] = {
        "own BatchNorm": {
            "method": "der++",
            "regularizers": {"lider": SPATIAL},
            "backbone": "convnet-small",
        },
        "own BatchNorm pooled": {"method": "er", "recipe": UNEVEN, "backbone": "pooled"},
        "own BatchNorm idle": {"method": "er", "recipe": TINY, "backbone": "pooled"},
        "dropout": {"method": "er", "regularizers": {"ssgd": {}}},
    }
    return found | more | shared | transformers | own


def make(team: Team, case: Mapping[str, Any]) -> Loop:
    conftest = _conftest()
    case = {"backbone": "plain", "recipe": RECIPE, "epochs": 1, "size": 12, **case}
    prepare = None
    if case.pop("shared_norm", False) and team.size > 1:

        def prepare(network: Network) -> None:
            share_batch_norm(network, team)

    options = case.pop("options", OPTIONS.get(case["method"], {}))
    double = Double([0.5] * 3, [0.25] * 3, padding=1, flip=True)
    stream = conftest.make_stream(double, case.pop("stream", "plain"))
    if patience := case.pop("patience", None):
        stream = hold_back(stream, 0.25)
        case["stopping"] = EarlyStopping(patience, stream)
    if every := case.pop("measure_every", None):
        case["anytime"] = Anytime(stream, every, 7)
    BACKBONES.update(OWN)  # for a moment: other tests go through all backbones
    try:
        loop: Loop = conftest.make_loop(
            stream=stream, options=options, team=team, prepare=prepare, **case
        )
    finally:
        for name in OWN:
            del BACKBONES[name]
    loop.network.double()
    loop.method.double()
    for regularizer in loop.regularizers:
        regularizer.double()
    return loop


def outcome(loop: Loop) -> dict[str, Any]:
    """Everything that a run leaves behind, and every loss term on the way."""
    terms = [
        {name: float(value) for name, value in event.terms.items()}
        for event in loop
        if isinstance(event, StepDone)
    ]
    state = loop.state_dict()
    rows = torch.arange(len(loop.memory))
    stored = {name: loop.memory.read(name, rows) for name in loop.memory.data}
    readings = [r.readings() for r in loop.regularizers]
    return {**state, "memory": stored, "terms": terms, "readings": readings}


def apart(team: Team) -> dict[str, str]:
    """The message for ranks that differ, by the part that differs."""
    told = {}
    for what in ("memory", "network", "decision"):
        loop = make(team, {"method": "er"})
        with contextlib.suppress(StopIteration):
            events = iter(loop)
            next(events)
            if team.rank == 1 and what == "memory":
                loop.memory.data["y"][0] += 1
            if team.rank == 1 and what == "network":
                next(loop.network.parameters()).data.mul_(1 + 1e-12)
            if what == "decision":
                spoil(loop, team)
            try:
                while True:
                    next(events)
            except OutOfStep as error:
                told[what] = str(error)
    return told


def spoil(loop: Loop, team: Team) -> None:
    """A method that stores rows on rank 0 alone."""
    losses = loop.method.losses

    def own_way(batch: Batch, step: Step) -> Terms:
        terms = losses(batch, step)
        if team.rank == 1:
            step._deferred.drop()
        return terms

    loop.method.losses = own_way  # type: ignore[method-assign]


def main(rank: int, folder: Path, names: Sequence[str]) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    team = Team(rank, 2)
    (folder / f"{rank}.json").write_text(json.dumps(apart(team)))
    known = cases()
    torch.save({name: outcome(make(team, known[name])) for name in names}, folder / f"{rank}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
