"""Commands of Mammoth, or of the released LiDER code, translated into `lider run`.

Names differ, and so do the roles of coefficients: Mammoth's `alpha_lip_lambda` weighs the 0-term,
which is β in Eq. 9 and here.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import UserError, unknown

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
    "cutmix_alpha": "method.cutmix_alpha",
    "e_lambda": "regularizers.oewc.weight",
    "alpha_lip_lambda": "regularizers.lider.beta",
    "buffer_lip_lambda": "regularizers.lider.beta",
    "beta_lip_lambda": "regularizers.lider.alpha",
    "budget_lip_lambda": "regularizers.lider.alpha",
}

HOUSEKEEPING = {  # Mammoth's files, logs and messages: they leave the result as it is
    *("base_path", "checkpoint_path", "results_path", "notes", "non_verbose", "disable_log"),
    *("num_workers", "enable_other_metrics", "ignore_other_metrics", "savecheck", "ckpt_name"),
    *("save_after_interrupt", "save_checkpoint_mode", "tensorboard", "job_number", "device"),
    *("wandb_name", "wandb_entity", "wandb_project", "eval_epochs", "drop_last"),
}

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
    "regularizers.lider.draw": "--lider-draw",
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
    """The same run in our fields, with Mammoth's defaults for options that are left out."""
    given = _options(arguments)
    for needed in ("model", "dataset"):
        if not given.get(needed):
            raise UserError(f"a Mammoth command has --{needed} NAME, but this one has not")
    model = given.pop("model")[0].replace("-", "_")
    dataset = given.pop("dataset")[0].replace("_", "-")
    if dataset not in DATASETS:
        raise unknown("dataset", dataset, DATASETS)
    row = zip(COLUMNS, DATASETS[dataset], strict=True)
    values = {field: value for field, value in row if value is not None}
    remarks: list[str] = []
    values |= _method(model, given, remarks)
    fields = FIELDS | ({"gamma": "regularizers.oewc.gamma"} if model == "ewc_on" else {})
    for name, words in given.items():
        if field := fields.get(name):
            if not any(words):
                raise UserError(f"--{name} has no value: write --{name} VALUE, or leave it out")
            listed = field == "training.milestones"
            values[field] = f"[{', '.join(words)}]" if listed else words[0]
        elif name not in HOUSEKEEPING:
            remarks.append(f"--{name} has no counterpart here and is left out")
    return Translation(values, remarks)


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


def _method(model: str, given: dict[str, list[str]], remarks: list[str]) -> dict[str, str]:
    plain = model
    for ending in WITH_LIDER:
        plain = plain.removesuffix(ending)
    if plain not in MODELS:
        raise unknown("model", model, [*MODELS, *(f"{name}_lider" for name in MODELS)])
    values = {"method.name": MODELS[plain]}
    if given.pop("joint", ["0"]) == ["1"]:
        values["method.name"] = "joint"
    if plain != model:
        remarks.append("Mammoth's alpha_lip_lambda weighs the 0-term: that is β in Eq. 9 and here")
        remarks.append("--lider-draw fresh is what Mammoth does; without it a step is much faster")
        values |= {f"regularizers.lider.{weight}": "0" for weight in ("alpha", "beta")}
        values["regularizers.lider.draw"] = "fresh"
    return values
