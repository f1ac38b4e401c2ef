"""Pre-training: a joint run on a whole benchmark, whose backbone other runs start from."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from ..backbones.lora import merged_weights
from ..backbones.pretrained import read_weights
from ..backbones.third_party import ThirdParty
from ..config.diff import flat
from ..config.identity import may_differ
from ..config.merging import make_config
from ..config.schema import RunConfig
from ..config.weight_names import IMAGENET
from ..config.yaml_values import Tree
from ..errors import UserError
from ..files import atomic_file, write_errors
from .build import build_network, completed
from .folder import RunFolder

RECIPE: Tree = {
    "benchmark": {"name": "split-tinyimagenet", "tasks": 1, "size": 32},
    "method": {"name": "joint"},
    "backbone": {"name": "resnet18"},
    "training": {
        "epochs": 50,
        "lr": 0.1,
        "milestones": [20, 30, 40, 45],
        "gamma": 0.5,
        "momentum": 0.0,
        "weight_decay": 0.0,
        "batch_size": 64,
    },
}
"""The paper's recipe (supplementary material), with the batch size, momentum and weight decay of
its CIFAR-100 runs, which it does not print for pre-training."""


def pretraining(*layers: Tree) -> RunConfig:
    """The configuration of a pre-training run: the paper's recipe, changed by `layers`.

    >>> pretraining({"benchmark": "synthetic", "training": {"epochs": 2}}).training.gamma
    0.5
    """
    for layer in layers:
        benchmark = layer.get("benchmark")
        if isinstance(benchmark, Mapping) and benchmark.get("tasks", 1) not in (None, 1):
            raise UserError(f"pre-training is one task, not {benchmark['tasks']}")
    config = make_config(RECIPE, *layers, {"benchmark": {"tasks": 1}})
    if config.method.name != "joint":
        raise UserError(f"pre-training is a joint run, not a run of {config.method.name}")
    return config


NOT_IN_NAME = {*may_differ("experiment")} - {"seed"} | {"memory", "scale", "regularizers"}
"""Fields that do not change the weights, or that the name mentions separately."""


def default_name(config: RunConfig) -> str:
    """The name for the weights of a pre-training run.

    The plain name, which presets ask for, means the paper's recipe at full width; the name of
    another recipe states every difference from it.

    >>> default_name(pretraining({"benchmark": "synthetic"}))
    'synthetic-resnet18'
    >>> default_name(pretraining({"benchmark": "synthetic", "seed": 1, "scale": "smoke"}))
    'synthetic-resnet18-seed1-smoke'
    """
    options = config.benchmark.options
    parts = [f"{config.benchmark.name.removeprefix('split-')}{options.get('size', '')}"]
    parts += [Path(options["path"]).name] if "path" in options else []
    parts += [config.backbone.name, *config.regularizers]
    kept = {key: options[key] for key in ("size", "root", "path") if key in options}
    plain = pretraining(
        {"benchmark": {"name": config.benchmark.name, **kept}, "seed": 0},
        {"backbone": {"name": config.backbone.name}},
    )
    full = config.model_copy(update={"scale": None})
    paper, own = (flat(completed(c).model_dump(exclude=NOT_IN_NAME)) for c in (plain, full))
    for key in sorted(paper.keys() | own.keys()):
        if paper.get(key) != own.get(key):
            parts.append(f"{key.rpartition('.')[2]}{own.get(key)}")
    if config.scale is not None and config.scale.name != "paper":
        parts.append(config.scale.name)
    return re.sub(r"[^\w.+-]+", "-", "-".join(parts)).strip("-")


def same_images(config: RunConfig) -> list[str]:
    """The options of `lider run` for the images of a pre-training run, in tasks.

    >>> same_images(pretraining({"benchmark": {"name": "folder:/photos", "size": 32}}))
    ['--benchmark', 'folder:/photos', '--tasks', '2', '--set', 'benchmark.size=32']
    """
    options = dict(config.benchmark.options)
    path = options.pop("path", None)
    name = [config.benchmark.name] if path is None else [f"folder:{path}", "--tasks", "2"]
    imports = [word for file in config.imports for word in ("--import", file)]
    values = [f"benchmark.{key}={json.dumps(value)}" for key, value in options.items()]
    return [*imports, "--benchmark", *name, *(word for v in values for word in ("--set", v))]


def check_target(out: str, path: Path, run: Path, *, replace: bool, resume: bool) -> None:
    """Refuse, before training, a file for the weights or a run folder that cannot be written.

    out: the name or file that the user gave; path: the file for the weights.
    """
    if out == IMAGENET:
        raise UserError(f"{IMAGENET} means the published weights: choose another name with --out")
    parent = next(folder for folder in path.absolute().parents if folder.exists())
    if path.is_dir() or not parent.is_dir() or not os.access(parent, os.W_OK):
        raise UserError(f"cannot write {path}: choose another --out")
    folder = RunFolder(run)
    if path.exists() and not replace and not (resume and folder.finished):
        raise UserError(
            f"{path} exists: choose another name for the new weights with --out, or replace it "
            "with --force"
        )
    if folder.finished and not replace and not resume:
        raise UserError(
            f"{run} holds a finished run: choose another folder with --run, --resume to write its "
            "weights again, or --force to train anew"
        )
    if folder.occupied and not folder.begun and not replace:
        raise UserError(f"{run} exists and is not empty: choose another folder with --run")


def export_weights(run: str | Path, path: Path, *, replace: bool = False) -> dict[str, Any]:
    """Write the backbone of a finished run as a file for `--pretrained`; return its description.

    replace: overwrite a file that holds other weights.
    """
    folder = RunFolder.open(run)
    config, result = folder.config(), folder.result()
    folder.check_same(config)
    channels, height, width = result["image_shape"]
    with folder.consistent():
        _, network = build_network(config, len(result["classes"]), (channels, height, width))
        network.load_state_dict(folder.state()["network"])
    backbone = network.backbone
    body = backbone.network if isinstance(backbone, ThirdParty) else backbone
    about = {
        "backbone": config.backbone.model_dump(mode="json"),
        "benchmark": config.benchmark.model_dump(mode="json"),
        "classes": len(result["classes"]),
        "accuracy": result["class_incremental"]["faa"],
        "normalisation": result["normalisation"],
        "scale": result.get("scale"),
    }
    weights = merged_weights(body.state_dict())
    if path.exists() and not replace:
        old = read_weights(path)
        if old.keys() == weights.keys() and all(torch.equal(old[k], weights[k]) for k in old):
            return about
        raise UserError(
            f"{path} holds other weights: keep those of {run} under another name with "
            f"--resume --run {run} --out NAME"
        )
    content = {"state_dict": weights, "about": json.dumps(about)}
    with write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as file:
            torch.save(content, file)
    return about
