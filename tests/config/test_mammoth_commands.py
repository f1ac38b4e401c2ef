"""Mammoth's commands mean the same run here; its weights load."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import torch

from liderlab.backbones.parameter_names import in_our_names
from liderlab.backbones.resnet import resnet18
from liderlab.config.mammoth_commands import MODELS, translate
from liderlab.config.merging import make_config, merge
from liderlab.config.yaml_values import parse_assignment
from liderlab.errors import UserError


def config_of(command: str):
    tree: dict = {}
    for field, value in translate(shlex.split(command)).values.items():
        tree = merge(tree, parse_assignment(f"{field}={value}"))
    return make_config(tree)


def test_roles_of_coefficients() -> None:
    config = config_of(
        "python utils/main.py --model derpp-lider --dataset seq-cifar100 --lr 0.1 --alpha 0.3 "
        "--beta=0.8 --buffer_size 500 --alpha_lip_lambda 0.05 --beta_lip_lambda 0.2"
    )
    assert config.method.name == "der++"
    assert config.method.options == {"alpha": 0.3, "beta": 0.8}
    lider = config.regularizers["lider"]
    assert (lider["weights"], lider["alpha"], lider["beta"]) == ("swapped", 0.05, 0.2)
    assert (lider["draw"], lider["learn_targets"]) == ("fresh", False)
    assert (config.training.batch_size, config.training.drop_last) == (32, False)
    assert config.memory.size == 500
    assert config.training.milestones == [35, 45]  # Mammoth's own for this data set
    assert config.training.epochs == 50


def test_a_command_of_the_released_code() -> None:
    config = config_of(
        "--dataset=seq-miniimg --model=er_ace_lipschitz --n_epochs=80 --buffer_size=2000 --lr=0.1 "
        "--buffer_lip_lambda=0.3 --budget_lip_lambda=0.1 --load_cp=tiny.pth --non_verbose"
    )
    assert config.benchmark.name == "split-miniimagenet"
    assert config.backbone.name == "efficientnet-b2"
    lider = config.regularizers["lider"]
    assert (lider["weights"], lider["alpha"], lider["beta"]) == ("swapped", 0.3, 0.1)
    assert (lider["learn_targets"], config.training.drop_last) == (False, True)
    assert (config.training.batch_size, config.training.gamma) == (128, 0.2)
    assert config.pretrained == str(Path("tiny.pth").absolute())


def test_other_models_and_options() -> None:
    config = config_of(
        "--model ewc_on --dataset seq-mnist --lr 0.03 --e_lambda 10 --gamma 0.9 --seed 3"
    )
    assert config.method.name == "finetune"
    assert config.regularizers["oewc"] == {"weight": 10, "gamma": 0.9}
    assert config.seed == 3
    milestones = config_of(
        "--model er --dataset seq-cifar10 --lr 0.1 --buffer_size 200 --lr_milestones 20 40"
    )
    assert milestones.training.milestones == [20, 40]
    assert config_of("--model er --dataset seq-mnist --lr 0.1 --joint 1").method.name == "joint"


@pytest.mark.parametrize("model", MODELS)
def test_every_command_can_be_typed(model: str) -> None:
    translation = translate(["--model", model, "--dataset", "seq-cifar10", "--lr", "0.1"])
    assert translation.command.startswith("lider run --benchmark split-cifar10 --backbone resnet18")
    assert f"--method {MODELS[model]}" in translation.command


def test_options_without_a_counterpart_are_named() -> None:
    command = "--model er --dataset seq-mnist --lr 0.1 --eval_future 1 --debug_mode 0 --notes x"
    remarks = translate(command.split()).remarks
    assert remarks == ["--eval_future has no counterpart here and is left out"]


def test_released_commands_have_the_released_defaults() -> None:
    command = "--model {} --dataset seq-cifar100 --lr 0.1 --buffer_size 500"
    config = config_of(command.format("er_ace_lipschitz"))
    assert (config.training.batch_size, config.training.drop_last) == (64, True)
    assert config_of(command.format("er_ace")).training.batch_size == 32
    assert config_of(command.format("er_ace") + " --datasetS tinyimgR").training.batch_size == 64


def test_a_data_set_configuration() -> None:
    command = "--model er_ace_lider --dataset seq-cifar100 --dataset_config {} --lr 0.1"
    config = config_of(command.format("lider"))
    assert (config.training.batch_size, config.training.drop_last) == (64, True)
    assert config_of(command.format("20tasks")).benchmark.tasks == 20
    remarks = translate(command.format("icarl").split()).remarks
    assert "--dataset_config icarl is not known here: give its values one by one" in remarks


def test_options_whose_values_change() -> None:
    config = config_of(
        "--model er --dataset seq-cifar10 --lr 0.1 --drop_last 1 --optimizer adam --validation 10 "
        "--backbone resnet50 --permute_classes 1"
    )
    assert config.training.drop_last
    assert config.training.optimizer.name == "adam"
    assert (config.benchmark.validation, config.benchmark.class_order) == (0.1, "shuffled")
    assert config.backbone.name == "resnet50"
    switch = config_of("--model er --dataset seq-cifar10 --lr 0.1 --validation --optim_nesterov 1")
    assert switch.benchmark.validation == 0.1
    assert switch.training.optimizer.options["nesterov"] is True
    plain = config_of("--model er --dataset seq-cifar10 --lr 0.1 --optimizer sgd --drop_last 0")
    assert (plain.training.optimizer.name, plain.training.drop_last) == ("sgd", False)


def test_gdumb_of_both_codes() -> None:
    command = "--model {} --dataset seq-cifar100 --buffer_size 500 "
    released = config_of(command.format("gdumb_lipschitz") + "--num_passes 100 --wd 1e-5").method
    assert released.options.items() >= {"fit_epochs": 100, "optimizer_per": "epoch"}.items()
    assert released.options["weight_decay"] == 1e-5
    mammoth = config_of(command.format("gdumb_lider") + "--optim_wd 1e-6").method.options
    assert mammoth.items() >= {"fit_epochs": 256, "momentum": 0, "optimizer_per": "fit"}.items()
    assert (mammoth["weight_decay"], mammoth["collect"]) == (1e-6, "once")


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("--model er_ace", "Mammoth's er_ace has a cosine classifier, ours a linear one"),
        ("--model er --savecheck last", "every run keeps checkpoints for lider resume"),
        ("--model er --loadcheck x.pt", "gives the network's weights alone"),
        ("--model er --optimizer lion", "--optimizer lion has no counterpart here"),
        ("--model er --backbone vit", "--backbone vit has no counterpart here"),
        ("--model er_ace_lider --model_config best", "preset cifar100-500-er-ace-lider-verified"),
        ("--model er --model_config best", "is not known here"),
    ],
)
def test_differences_are_said(command: str, says: str) -> None:
    remarks = translate([*command.split(), "--dataset", "seq-cifar100", "--lr", "0.1"]).remarks
    assert any(says in remark for remark in remarks), remarks


def test_a_linear_head_of_er_ace_is_no_difference() -> None:
    command = "--model er_ace --dataset seq-cifar100 --lr 0.1 --use_custom_classifier 0"
    assert translate(command.split()).remarks == []


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("--model er", "--dataset"),
        ("--dataset seq-mnist", "--model"),
        ("--model l2p --dataset seq-mnist", "unknown model 'l2p'"),
        ("--model er --dataset seq-svhn", "unknown dataset 'seq-svhn'"),
        ("--model er --dataset seq-mnist --lr --buffer_size 500", "--lr has no value"),
        ("--model er --dataset seq-mnist --lr= --buffer_size 500", "--lr has no value"),
        ("--model er --dataset seq-mnist --validation ten", "takes a percentage, not 'ten'"),
    ],
)
def test_mistakes_are_refused(command: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        translate(command.split())


def mammoth_names(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Ours by Mammoth's names."""
    theirs = {name.replace(".downsample.", ".shortcut."): value for name, value in state.items()}
    return {name.replace("fc.", "classifier."): value for name, value in theirs.items()}


@pytest.mark.parametrize("prefix", ["", "net.", "module."])
def test_weights(prefix: str, tmp_path: Path) -> None:
    network = resnet18(classes=10, image_shape=(3, 32, 32), width=8)
    theirs = {prefix + n: v + 1 for n, v in mammoth_names(network.state_dict()).items()}
    if prefix == "net.":  # a whole model: its other parts are not the network's
        theirs |= {"old_net.conv1.weight": torch.zeros(1), "lip_coeffs": torch.zeros(4)}
    theirs = {name.removeprefix("module."): value for name, value in theirs.items()}
    ours = in_our_names(theirs)
    assert ours.keys() == network.state_dict().keys()
    for name, value in network.state_dict().items():
        assert torch.equal(ours[name], value + 1)
    assert in_our_names(network.state_dict()).keys() == network.state_dict().keys()
