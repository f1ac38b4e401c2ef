from pathlib import Path

import pytest

from liderlab.config.merging import make_config, merge
from liderlab.config.yaml_values import parse_assignment, read_yaml
from liderlab.errors import UserError
from liderlab.runs.build import completed


def test_layers_win_in_order_and_benchmark_defaults_fill_the_rest() -> None:
    config = make_config(
        {"training": {"epochs": 7, "lr": 0.5}, "memory": {"size": 30}}, {"training": {"lr": 0.2}}
    )
    assert (config.training.epochs, config.training.lr, config.memory.size) == (7, 0.2, 30)
    assert config.training.batch_size == 16  # split-digits' own
    assert config.backbone.name == "convnet-small"


def test_another_choice_does_not_inherit_options() -> None:
    below = {"backbone": {"name": "convnet-small", "width": 8}}
    assert merge(below, {"backbone": "resnet18"}) == {"backbone": {"name": "resnet18"}}
    assert merge(below, {"backbone": {"width": 4}})["backbone"] == {
        "name": "convnet-small",
        "width": 4,
    }
    assert merge({"method": "er"}, {"method": {"name": "er", "a": 1}})["method"]["a"] == 1


def test_two_folders_for_one_benchmark_are_refused(tmp_path: Path) -> None:
    first = {"benchmark": f"folder:{tmp_path}"}
    with pytest.raises(UserError, match=r"benchmark\.path=/b are two folders: name one"):
        make_config(first, {"benchmark": {"path": "/b"}})
    same = make_config(first, {"benchmark": {"path": str(tmp_path)}})
    assert same.benchmark.options["path"] == str(tmp_path)


def test_completing_writes_out_every_option_and_is_idempotent() -> None:
    config = completed(make_config({"method": "der++", "regularizers": {"lider": {"beta": 1}}}))
    tree = config.model_dump()
    assert tree["method"] == {"name": "der++", "alpha": 0.1, "beta": 0.5}
    assert tree["regularizers"]["lider"]["beta"] == 1.0
    assert tree["regularizers"]["lider"]["alpha"] == 0.1
    assert tree["backbone"] == {"name": "convnet-small", "freeze": [], "lora": None, "width": 32}
    assert tree["benchmark"]["tasks"] == 5
    assert tree["memory"]["policy"] == "reservoir"
    assert tree["training"]["replay_size"] == 16
    assert completed(config) == config


def test_yaml_round_trip(tmp_path: Path) -> None:
    config = completed(make_config({"regularizers": {"lider": {"on": "stream"}}}))
    file = tmp_path / "config.yaml"
    file.write_text(config.as_yaml())
    assert make_config(read_yaml(file)) == config


def test_yaml_words_stay_words(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("regularizers:\n  lider:\n    on: stream\n    alpha: 1e-2\n")
    assert read_yaml(file)["regularizers"]["lider"]["on"] == "stream"
    options = completed(make_config(read_yaml(file))).regularizers["lider"]
    assert (options["on"], options["alpha"]) == ("stream", 0.01)


def test_assignments() -> None:
    assert parse_assignment("a.b=1e-3") == {"a": {"b": 1e-3}}
    assert parse_assignment("a=true") == {"a": True}
    assert parse_assignment("a=on") == {"a": "on"}
    for bad in ("a", "=1", "a..b=1", "a=[1"):
        with pytest.raises(UserError):
            parse_assignment(bad)


@pytest.mark.parametrize(
    ("tree", "says"),
    [
        ({"method": "er_ace"}, "did you mean 'er-ace'"),
        ({"benchmark": "split-digit"}, "did you mean 'split-digits'"),
        ({"benchmark": 3}, "unknown benchmark '3'"),
        ({"backbone": "resnet-18"}, "did you mean 'resnet18'"),
        ({"regularizers": {"lidr": {}}}, "did you mean 'lider'"),
        ({"trainign": {}}, "did you mean 'training'"),
        ({"training": {"epocs": 1}}, "unknown field of training 'epocs': did you mean 'epochs'"),
        ({"training": {"lr": 0}}, "training.lr: input should be greater than 0, but got 0"),
        ({"training": {"lr": float("nan")}}, "training.lr"),
        ({"memory": {"size": -1}}, "memory.size"),
        ({"seed": -1}, "seed"),
        ({"seed": "x"}, "seed"),
        ({"regularizers": 3}, "regularizers"),
    ],
)
def test_mistakes_are_one_sentence(tree: dict[str, object], says: str) -> None:
    with pytest.raises(UserError) as caught:
        make_config(tree)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("tree", "says"),
    [
        ({"method": {"name": "er", "alpha": 1}}, "er takes no options, but got 'alpha'"),
        ({"method": {"name": "der++", "alpah": 1}}, "did you mean 'alpha'"),
        ({"method": {"name": "der++", "alpha": "x"}}, "der++: alpha"),
        ({"regularizers": {"lider": {"estimator": "spatil"}}}, "'spatial', 'batch' or 'jacobian'"),
        ({"memory": {"policy": "resrvoir"}}, "did you mean 'reservoir'"),
        ({"memory": {"policy": "herding"}}, "er-ace cannot use the memory policy 'herding'"),
        ({"method": "icarl", "memory": {"policy": "reservoir"}}, "its own is 'herding'"),
        ({"method": "gdumb", "regularizers": {"oewc": {}}}, "does not train task by task"),
        ({"method": "gdumb", "regularizers": {"lider": {"on": "stream"}}}, "no samples on"),
        ({"method": "joint", "regularizers": {"ssgd": {}}}, "does not train task by task"),
        ({"memory": {"size": 0}}, "er-ace rehearses and needs a memory"),
        ({"method": "finetune", "regularizers": {"lider": {}}}, "--lider-on stream"),
        ({"method": "finetune", "regularizers": {"lider": {"on": "both"}}}, "--lider-on stream"),
        (
            {"method": "gdumb", "regularizers": {"lider": {"on": "both"}}},
            "leave out --lider-on both",
        ),
        (
            {"method": "gdumb", "regularizers": {"lider": {"calibrate": "first-task"}}},
            "no network after the first task",
        ),
    ],
)
def test_mistakes_in_options_are_one_sentence(tree: dict[str, object], says: str) -> None:
    with pytest.raises(UserError) as caught:
        completed(make_config(tree))
    assert says in str(caught.value)


def test_lider_on_the_stream_needs_no_memory() -> None:
    tree = {"method": "finetune", "regularizers": {"lider": {"on": "stream"}}}
    assert completed(make_config(tree)).regularizers["lider"]["on"] == "stream"


@pytest.mark.parametrize("text", ["a: [1\nb: 2", "- 1", "3", "1: 2", "\x00"])
def test_broken_yaml(tmp_path: Path, text: str) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(text)
    with pytest.raises(UserError):
        read_yaml(file)


def test_empty_yaml_is_no_values(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("# nothing\n")
    assert read_yaml(tmp_path / "c.yaml") == {}
