"""Forms of LiDER: sets of options by name, resolved into the options themselves."""

import inspect
from pathlib import Path
from typing import Any

import pytest
import yaml

from liderlab import LiDER
from liderlab.config.lider_forms import FORMS, RELEASED, TUNED_ALPHA, TUNED_BETA
from liderlab.config.merging import make_config
from liderlab.config.presets import presets
from liderlab.errors import UserError
from liderlab.paper.studies.case_runs import run_name
from liderlab.paper.studies.cases import Case, Request, config_of
from liderlab.runs.build import completed

PRESET = {"preset": "cifar100-500-er-ace-lider", "threads": 1}


def of_lider(**options: Any) -> dict[str, Any]:
    return {"regularizers": {"lider": options}}


def options_of(*layers: dict[str, Any]) -> dict[str, Any]:
    return make_config(*layers).regularizers["lider"]


def test_forms_set_the_same_options() -> None:
    weights = {"alpha", "beta"}
    assert {name: form.keys() - weights for name, form in FORMS.items()} == {
        name: FORMS["paper"].keys() for name in ("paper", "released", "tuned")
    }
    assert FORMS["paper"].keys() & weights == set()  # a preset's weights stay
    assert (FORMS["tuned"]["alpha"], FORMS["tuned"]["beta"]) == (TUNED_ALPHA, TUNED_BETA)


def test_the_form_paper_is_the_default() -> None:
    defaults = inspect.signature(LiDER.__init__).parameters
    assert FORMS["paper"] == {name: defaults[name].default for name in FORMS["paper"]}


def test_a_form_becomes_explicit_options() -> None:
    config = completed(make_config(PRESET, of_lider(form="released")))
    found = config.regularizers["lider"]
    assert "form" not in found
    assert {name: found[name] for name in RELEASED} == RELEASED
    assert (found["alpha"], found["beta"]) == (0.1, 0.3)  # the preset's
    assert config.training.drop_last
    assert make_config(yaml.safe_load(config.as_yaml())) == config


def test_options_beside_or_after_a_form_win() -> None:
    assert options_of(PRESET, of_lider(form="released", draw="reuse"))["draw"] == "reuse"
    assert options_of(PRESET, of_lider(form="released"), of_lider(draw="reuse"))["draw"] == "reuse"
    assert options_of(PRESET, of_lider(draw="reuse"), of_lider(form="released"))["draw"] == "fresh"
    kept = make_config(of_lider(form="released") | {"training": {"drop_last": False}})
    assert not kept.training.drop_last


def test_another_form_leaves_nothing_of_an_earlier_one() -> None:
    for earlier in FORMS:
        for form in FORMS:
            found = options_of(of_lider(form=earlier), of_lider(form=form, alpha=0.1, beta=0.1))
            assert found == FORMS[form] | {"alpha": 0.1, "beta": 0.1}


def test_a_complete_configuration_takes_a_form() -> None:
    whole = completed(make_config(PRESET)).model_dump()
    config = make_config(whole, of_lider(form="released"))
    assert config.training.drop_last
    assert config.regularizers["lider"].items() >= RELEASED.items()


def test_the_order_of_regularizers_stays() -> None:
    config = make_config({"regularizers": {"oewc": {}, "lider": {"form": "tuned"}}})
    assert list(config.regularizers) == ["oewc", "lider"]


@pytest.mark.parametrize(
    "layers",
    [
        [{"method": "gdumb"} | of_lider(form="released")],
        [of_lider(form="released"), {"method": "gdumb"}],
        [{"preset": "cifar100-500-gdumb-lider"}, of_lider(form="released")],
    ],
)
def test_the_form_released_knows_the_method(layers: list[dict[str, Any]]) -> None:
    config = make_config(*layers)
    released = {"cutmix_probability": 1.0, "optimizer_per": "epoch", "collect": "every-epoch"}
    assert config.method.options.items() >= released.items()
    assert config.memory.policy == "reservoir"
    icarl = options_of({"method": "icarl"}, of_lider(form="released"))
    assert (icarl["on"], icarl["draw"]) == ("both", "reuse")


@pytest.mark.parametrize("form", ["relased", None, 3, ["paper"]])
def test_an_unknown_form_is_one_sentence(form: Any) -> None:
    if form is None:  # left open
        assert options_of(of_lider(form=None)) == {}
        return
    with pytest.raises(UserError, match=r"unknown form of LiDER .*paper, released, tuned"):
        make_config(of_lider(form=form))


def test_presets_pin_their_form() -> None:
    for name, preset in presets().items():
        if preset.lider:
            form = "released" if name.endswith("-verified") else "paper"
            assert preset.config["regularizers"]["lider"]["form"] == form, name


@pytest.mark.parametrize(
    ("method", "lr", "zero", "c"),
    [("er-ace", 0.1, 0.1, 0.3), ("der++", 0.03, 0.3, 0.5), ("icarl", 1.0, 0.1, 0.1)],
)
def test_verified_values(method: str, lr: float, zero: float, c: float) -> None:
    config = completed(make_config({"preset": f"cifar100-500-{method}-lider-verified"}))
    found = config.regularizers["lider"]
    assert found["weights"] == "swapped"  # α weighs the 0-term
    assert (config.training.lr, found["alpha"], found["beta"]) == (lr, zero, c)
    assert (config.training.batch_size, config.training.drop_last) == (64, True)


def test_verified_gdumb() -> None:
    config = completed(make_config({"preset": "cifar100-500-gdumb-lider-verified"}))
    found = config.regularizers["lider"]
    assert (found["alpha"], found["beta"], found["draw"]) == (0.01, 0.01, "fresh")
    assert (config.method.options["momentum"], config.memory.policy) == (0.0, "reservoir")


def test_runs_of_earlier_presets_keep_their_names() -> None:
    case = Case("cifar100", 500, "er-ace", "lider")
    name = run_name(config_of(case, Request(scale="cpu"), ("cifar100",)))
    assert name == "split-cifar100-er-ace-lider-b500-seed0-a44ed0b5"


def test_from_the_command_line(lider: Any, tmp_path: Path) -> None:
    small = "run --benchmark synthetic --width 8 --epochs 1 --buffer 20 --method icarl"
    code, _, err = lider(*small.split(), "--lider-form", "released", "--out", "x")
    assert code == 0, err
    config = yaml.safe_load((tmp_path / "x/config.yaml").read_text())
    assert config["regularizers"]["lider"]["on"] == "both"
    assert config["training"]["drop_last"] is True
    code, _, err = lider("run", "--lider-form", "papr", "--out", "y")
    assert (code, err.count("\n")) == (2, 1)
    assert "did you mean 'paper'" in err
