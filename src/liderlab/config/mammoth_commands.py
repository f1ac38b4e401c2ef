"""Commands of Mammoth, or of the released LiDER code, translated into `lider run`.

Names and defaults differ, and the two differ from each other: the released code, whose models end
in `_lipschitz`, has other batch sizes and always drops a short last batch.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import UserError, unknown
from .presets import presets

MODELS = {
    "sgd": "finetune",
    "joint": "joint",
    "er": "er",
    "er_ace": "er-ace",
    "der": "der",
    "derpp": "der++",
    "xder_rpc": "x-der-rpc",
    "icarl": "icarl",
    "gdumb": "gdumb",
    "ewc_on": "finetune",
}
WITH_LIDER = ("_lider", "_lipschitz")  # Mammoth's ending, and that of the released code

DATASETS = {  # benchmark and backbone, then Mammoth's defaults: epochs, batch size, milestones
    "seq-mnist": ("split-mnist", "mlp", "1", "64", None),
    "seq-cifar10": ("split-cifar10", "resnet18", "50", "32", None),
    "seq-cifar100": ("split-cifar100", "resnet18", "50", "32", "[35, 45]"),
    "seq-tinyimg": ("split-tinyimagenet", "resnet18", "50", "32", None),
    "seq-miniimg": ("split-miniimagenet", "efficientnet-b2", None, None, None),
    "seq-cub200": ("split-cub200", "resnet50", None, None, None),
}
COLUMNS = (
    *("benchmark.name", "backbone.name"),
    *("training.epochs", "training.batch_size", "training.milestones"),
)
RELEASED_DATASETS = {  # the same columns but for the first two
    "seq-cifar100": ("50", "64", "[35, 45]"),
    "seq-miniimg": ("80", "128", "[35, 60, 75]"),
    "seq-cub200": ("50", "32", None),
}
RELEASED_ONLY = {"buffer_lip_lambda", "budget_lip_lambda", "num_passes", "datasetS", "load_cp"}
"""Options that the released code has and Mammoth has not."""

DATASET_CONFIGS = {  # of seq-cifar100
    "lider": {"training.batch_size": "64", "training.drop_last": "true"},
    "xder": {"training.gamma": "0.2"},
    "noscheduler": {"training.milestones": "[]"},
    "5tasks": {"benchmark.tasks": "5"},
    "20tasks": {"benchmark.tasks": "20"},
}
BACKBONES = {"mnistmlp": "mlp", "resnet18": "resnet18", "resnet50": "resnet50"}
OPTIMIZERS = ("sgd", "adam", "adamw")

GDUMB = {  # Mammoth's defaults; the form released sets what the released code does
    "method.fit_epochs": "256",
    "method.cutmix_probability": "1",
    "method.momentum": "0",
    "method.weight_decay": "0",
    "method.optimizer_per": "fit",
    "method.collect": "once",
    "memory.policy": "reservoir",
}
GDUMB_FIELDS = {"optim_wd": "method.weight_decay", "optim_mom": "method.momentum"}

FIELDS = {
    "lr": "training.lr",
    "n_epochs": "training.epochs",
    "batch_size": "training.batch_size",
    "minibatch_size": "training.replay_size",
    "lr_milestones": "training.milestones",
    "sched_multistep_lr_gamma": "training.gamma",
    "optim_wd": "training.weight_decay",
    "optim_mom": "training.momentum",
    "buffer_size": "memory.size",
    "seed": "seed",
    "load_cp": "pretrained",
    "loadcheck": "pretrained",
    "alpha": "method.alpha",
    "beta": "method.beta",
    "gamma": "method.gamma",
    "constr_eta": "method.eta",
    "constr_margin": "method.margin",
    "opt_wd": "method.l2",
    "wd_reg": "method.l2",
    "maxlr": "method.lr_max",
    "minlr": "method.lr_min",
    "fitting_epochs": "method.fit_epochs",
    "num_passes": "method.fit_epochs",
    "wd": "method.weight_decay",
    "cutmix_alpha": "method.cutmix_alpha",
    "e_lambda": "regularizers.oewc.weight",
    "alpha_lip_lambda": "regularizers.lider.alpha",
    "buffer_lip_lambda": "regularizers.lider.alpha",
    "beta_lip_lambda": "regularizers.lider.beta",
    "budget_lip_lambda": "regularizers.lider.beta",
}

HOUSEKEEPING = {  # Mammoth's files, logs and messages: they leave the result as it is
    *("base_path", "checkpoint_path", "results_path", "notes", "non_verbose", "disable_log"),
    *("num_workers", "enable_other_metrics", "ignore_other_metrics", "ckpt_name"),
    *("save_after_interrupt", "save_checkpoint_mode", "tensorboard", "job_number", "device"),
    *("wandb_name", "wandb_entity", "wandb_project", "eval_epochs", "use_custom_classifier"),
}
OFF = ("0", "no", "false", "False", "None")
"""Values with which an option changes nothing."""

FLAGS = {  # fields that have an option of their own; the others need --set
    "benchmark.name": "--benchmark",
    "backbone.name": "--backbone",
    "method.name": "--method",
    "memory.size": "--buffer",
    "training.lr": "--lr",
    "training.epochs": "--epochs",
    "training.batch_size": "--batch-size",
    "regularizers.lider.alpha": "--lider-alpha",
    "regularizers.lider.beta": "--lider-beta",
    "regularizers.lider.form": "--lider-form",
    "pretrained": "--pretrained",
    "seed": "--seed",
}


@dataclass(frozen=True)
class Translation:
    """values: our fields, as `--set` takes them. remarks: a sentence about each difference."""

    values: dict[str, str]
    remarks: list[str]

    @property
    def command(self) -> str:
        """
        >>> print(translate(["--model=sgd", "--dataset=seq-miniimg", "--optim_mom=0.9"]).command)
        lider run --benchmark split-miniimagenet --backbone efficientnet-b2 --method finetune
            --set training.momentum=0.9
        """
        words = ["lider", "run"]
        for field, value in self.values.items():
            words += [FLAGS[field], value] if field in FLAGS else ["--set", f"{field}={value}"]
        return shlex.join(words)


def translate(arguments: Sequence[str]) -> Translation:
    """The same run in our fields, with their defaults for options that are left out."""
    given = _options(arguments)
    for needed in ("model", "dataset"):
        if not given.get(needed):
            raise UserError(f"a Mammoth command has --{needed} NAME, but this one has not")
    model = given.pop("model")[0].replace("-", "_")
    dataset = given.pop("dataset")[0].replace("_", "-")
    if dataset not in DATASETS:
        raise unknown("dataset", dataset, DATASETS)
    released = model.endswith("_lipschitz") or bool(RELEASED_ONLY & given.keys())
    remarks: list[str] = []
    values = _data(dataset, released, given, remarks)
    values |= _method(model, released, given, remarks)
    if "regularizers.lider.form" in values:  # which would drop a short last batch
        values.setdefault("training.drop_last", "false")
    fields = FIELDS | ({"gamma": "regularizers.oewc.gamma"} if model == "ewc_on" else {})
    fields |= GDUMB_FIELDS if model.startswith("gdumb") else {}
    for name, words in given.items():
        if found := _converted(name, words, remarks):
            values |= found
        elif field := fields.get(name):
            if not any(words):
                raise UserError(f"--{name} has no value: write --{name} VALUE, or leave it out")
            values[field] = words[0]
        elif name not in (*HOUSEKEEPING, *CONVERTED) and words[:1] not in [[off] for off in OFF]:
            remarks.append(f"--{name} has no counterpart here and is left out")
    return Translation(values, remarks)


def _data(
    dataset: str, released: bool, given: dict[str, list[str]], remarks: list[str]
) -> dict[str, str]:
    """The benchmark with its backbone and schedule."""
    row = DATASETS[dataset]
    if released:
        row = (*row[:2], *RELEASED_DATASETS.get(dataset, row[2:]))
    values = {field: value for field, value in zip(COLUMNS, row, strict=True) if value is not None}
    values |= {"training.drop_last": "true"} if released else {}
    values |= {"training.gamma": "0.2"} if released and dataset == "seq-miniimg" else {}
    chosen = given.pop("dataset_config", [""])[0]
    if chosen and dataset == "seq-cifar100" and chosen in DATASET_CONFIGS:
        values |= DATASET_CONFIGS[chosen]
    elif chosen not in ("", "default"):
        remarks.append(f"--dataset_config {chosen} is not known here: give its values one by one")
    return values


CONVERTED = {
    *("lr_milestones", "drop_last", "optim_nesterov", "permute_classes", "validation", "optimizer"),
    *("backbone", "savecheck", "loadcheck"),
}


def _converted(name: str, words: list[str], remarks: list[str]) -> dict[str, str]:
    """Our fields for an option whose value changes; {} if it leaves them as they are."""
    value = words[0] if words else ""
    on = value not in OFF
    if name == "lr_milestones" and any(words):
        return {"training.milestones": f"[{', '.join(words)}]"}
    if name == "drop_last":
        return {"training.drop_last": str(on).lower()}
    if name == "optim_nesterov" and on:
        return {"training.optimizer.nesterov": "true"}
    if name == "permute_classes" and on:
        return {"benchmark.class_order": "shuffled"}
    if name == "validation" and on:  # a percentage; the released code has a switch, for a tenth
        return {"benchmark.validation": _share(value or "10")}
    if name == "optimizer" and value in OPTIMIZERS:
        return {"training.optimizer.name": value} if value != "sgd" else {}
    if name == "backbone" and value in BACKBONES:
        return {"backbone.name": BACKBONES[value]}
    if name in ("optimizer", "backbone"):
        remarks.append(f"--{name} {value} has no counterpart here and is left out")
    if name == "savecheck":
        remarks.append("--savecheck is left out: every run keeps checkpoints for lider resume")
    if name == "loadcheck":
        remarks.append("--loadcheck gives the network's weights alone: lider resume continues runs")
        return {"pretrained": value} if value else {}
    return {}


def _share(percentage: str) -> str:
    """A percentage as a share; below 1 it is one already, as in Mammoth.

    >>> _share("10"), _share("0.2")
    ('0.1', '0.2')
    """
    try:
        number = float(percentage)
    except ValueError:
        raise UserError(f"--validation takes a percentage, not {percentage!r}") from None
    return f"{number if number < 1 else number / 100:g}"


def _options(arguments: Sequence[str]) -> dict[str, list[str]]:
    """--name value …, --name=value or --name; the words before them start Mammoth."""
    options: dict[str, list[str]] = {}
    words: list[str] = []
    for word in arguments:
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            words = options[name.replace("-", "_")] = [value] if equals else []
        else:
            words.append(word)
    return options


def _method(
    model: str, released: bool, given: dict[str, list[str]], remarks: list[str]
) -> dict[str, str]:
    plain = model
    for ending in WITH_LIDER:
        plain = plain.removesuffix(ending)
    if plain not in MODELS:
        raise unknown("model", model, [*MODELS, *(f"{name}_lider" for name in MODELS)])
    values = {"method.name": MODELS[plain]}
    values |= GDUMB if plain == "gdumb" and not released else {}
    if given.pop("joint", ["0"]) == ["1"]:
        values["method.name"] = "joint"
    own_head = given.get("use_custom_classifier", ["1"])[0] not in OFF
    if model == "er_ace" and own_head:
        remarks.append("Mammoth's er_ace has a cosine classifier, ours a linear one")
    if plain != model:
        remarks.append(
            "--lider-form released is their LiDER: α weighs the 0-term, targets stay fixed, and "
            "each term has a draw and a pass of its own; --lider-form paper is Eq. 9"
        )
        values |= {f"regularizers.lider.{weight}": "0" for weight in ("alpha", "beta")}
        values["regularizers.lider.form"] = "released"
    if given.pop("model_config", ["default"])[0] == "best":
        remarks.append(_best(MODELS[plain] + ("-lider" if plain != model else "")))
    return values


def _best(method: str) -> str:
    name = f"cifar100-500-{method}-verified"
    if name in presets():
        return f"--model_config best: for CIFAR-100 and 500 samples its values are in preset {name}"
    return "--model_config best is not known here: give its values one by one"
