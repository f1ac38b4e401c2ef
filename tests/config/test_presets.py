"""Every number of the paper's hyperparameter tables, compared with the preset that carries it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from liderlab.config.merging import make_config
from liderlab.config.presets import preset, presets
from liderlab.errors import UserError
from liderlab.runs.build import completed

TABLE = Path(__file__).parent / "data" / "paper_hyperparameters.txt"
SETTINGS = {
    "CIFAR-100 w/o pre-tr.": "cifar100",
    "CIFAR-100 w/ pre-tr.": "cifar100-pretrained",
    "miniImageNet": "miniimagenet",
    "CUB-200": "cub200",
}
PLACES = {
    "lr": "training.lr",
    "alpha_LiDER": "regularizers.lider.alpha",
    "beta_LiDER": "regularizers.lider.beta",
    "alpha_DER++": "method.alpha",
    "beta_DER++": "method.beta",
    "epochs_fitting": "method.fit_epochs",
    "alpha_cutmix": "method.cutmix_alpha",
    "lr_min": "method.lr_min",
    "lr_max": "method.lr_max",
}


def paper_rows() -> Iterator[tuple[str, dict[str, float]]]:
    """(name of the preset, the numbers printed for it)"""
    setting, buffer = "", ""
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            setting, buffer = SETTINGS[line.strip("[]")], ""
        elif line.startswith("Buffer "):
            buffer = line.split()[1]
        elif line and not line.startswith("#"):
            label, _, numbers = line.partition(": ")
            method = label.lower().replace(" + ", "-")
            name = "-".join(part for part in (setting, buffer, method) if part)
            yield name, {k: float(v) for k, v in (item.split() for item in numbers.split(", "))}


ROWS = dict(paper_rows())


def lookup(config: Any, path: str) -> Any:
    for key in path.split("."):
        config = config[key]
    return config


def test_the_table_holds_every_row_and_number() -> None:
    # 4 settings x (joint, finetune, 2 buffers x 4 methods x with and without LiDER)
    assert len(ROWS) == 4 * (2 + 2 * 4 * 2)
    # and numbers: 1 each for the two, 2, 4, 3, 5, 5, 7, 1 and 3 for the others
    assert sum(len(numbers) for numbers in ROWS.values()) == 4 * (2 + 2 * 30)


@pytest.mark.parametrize("name", ROWS)
def test_every_printed_number(name: str) -> None:
    config = preset(name).config
    weight_decay = "method.l2" if "icarl" in name else "method.weight_decay"
    for key, printed in ROWS[name].items():
        place = PLACES.get(key, weight_decay)
        assert lookup(config, place) == pytest.approx(printed, rel=1e-12), place
    assert ("lider" in config["regularizers"]) == name.endswith("-lider")
    options = {*config["method"]} - {"name"}  # and nothing that is not printed
    assert {f"method.{o}" for o in options} <= {*PLACES.values(), weight_decay}
    assert len(options) == sum(PLACES.get(k, weight_decay).startswith("method") for k in ROWS[name])


def test_the_printed_presets_are_the_papers_rows() -> None:
    assert {name for name, p in presets().items() if p.printed} == ROWS.keys()


@pytest.mark.parametrize(
    ("setting", "benchmark", "tasks", "backbone", "pretrained", "training"),
    [
        ("cifar100", "split-cifar100", 10, "resnet18", None, (50, 64, [35, 45], 0.1)),
        (
            "cifar100-pretrained",
            "split-cifar100",
            10,
            "resnet18",
            "tinyimagenet32-resnet18",
            (50, 64, [35, 45], 0.1),
        ),
        (
            "miniimagenet",
            "split-miniimagenet",
            20,
            "efficientnet-b2",
            None,
            (80, 128, [35, 60, 75], 0.2),
        ),
        ("cub200", "split-cub200", 10, "resnet50", "imagenet", (50, 16, [], 0.1)),
    ],
)
def test_schedules(
    setting: str,
    benchmark: str,
    tasks: int,
    backbone: str,
    pretrained: str | None,
    training: tuple[int, int, list[int], float],
) -> None:
    """The supplementary material's section on settings."""
    mine = [p for p in presets().values() if p.setting == setting]
    buffers = {"miniimagenet": {2000, 5000}, "cub200": {400, 1000}}.get(setting, {500, 2000})
    assert {p.buffer for p in mine} == {None, *buffers}
    methods = {"joint", "finetune", "icarl", "der++", "gdumb", "er-ace", "x-der-rpc"}
    assert {p.method for p in mine} == methods
    for p in mine:
        given = p.config["training"]
        assert (p.config["benchmark"]["name"], p.config["benchmark"]["tasks"]) == (benchmark, tasks)
        assert (p.config["backbone"]["name"], p.config["pretrained"]) == (backbone, pretrained)
        values = (given["epochs"], given["batch_size"], given["milestones"], given["gamma"])
        assert values == training


@pytest.mark.parametrize(
    ("setting", "tasks", "buffers"),
    [("cifar100-online-b10", 10, {500, 2000}), ("cifar10-online-b10", 5, {500})],
)
def test_online_presets_pass_once_in_batches_of_ten(
    setting: str, tasks: int, buffers: set[int]
) -> None:
    mine = [p for p in presets().values() if p.setting == setting]
    assert {p.buffer for p in mine} == buffers
    assert {p.method for p in mine} == {"er", "er-ace", "der++"}
    for p in mine:
        config = completed(make_config({"preset": p.name}))
        training = config.training
        assert (training.epochs, training.batch_size, training.replay_size) == (1, 10, 10)
        assert (config.benchmark.name, config.benchmark.tasks) == (f"split-{setting[:-11]}", tasks)
        assert not p.printed
    completed(make_config({"preset": mine[0].name, "benchmark": {"task_free": True}}))


@pytest.mark.parametrize("name", presets())
def test_a_preset_becomes_a_complete_configuration(name: str) -> None:
    config = completed(make_config({"preset": name, "device": "cpu"}))
    p = preset(name)
    assert config.preset == name
    assert config.method.name == p.method
    assert config.training.replay_size == config.training.batch_size
    assert ("lider" in config.regularizers) == p.lider
    if p.buffer is not None:
        assert config.memory.size == p.buffer
        assert str(p.buffer) in name
    again = make_config(config.model_dump())  # config.yaml repeats the run
    assert again == config


def test_lider_is_pinned_down_in_every_preset() -> None:
    for name, p in presets().items():
        if p.lider and not name.endswith("-verified"):
            options = make_config({"preset": name}).regularizers["lider"]
            pinned = {k: options[k] for k in ("estimator", "reading", "weights")}
            assert pinned == {"estimator": "spatial", "reading": "singular", "weights": "paper"}


def test_controlled_presets_differ_by_the_penalty_alone() -> None:
    controlled = [name for name in presets() if name.endswith("-controlled")]
    assert "cifar100-500-er-ace-lider-controlled" in controlled
    for name in controlled:
        config = dict(preset(name).config)
        tuned = preset(name.removesuffix("-controlled")).config
        assert config.pop("regularizers") == tuned["regularizers"]
        plain = dict(preset(name.removesuffix("-lider-controlled")).config)
        assert plain.pop("regularizers") == {}
        assert config == plain


def test_values_that_the_paper_does_not_print_have_a_source() -> None:
    for p in presets().values():
        assert p.printed or p.sources["row"]
        assert "training.momentum" in p.sources
    x_der = preset("cifar100-500-x-der-rpc")
    options = x_der.config["method"]
    assert (x_der.config["training"]["lr"], options["alpha"], options["beta"]) == (0.03, 0.1, 0.5)
    assert "its own paper" in x_der.sources["row"]
    assert {p.buffer for p in presets().values() if p.method == "gmed"} == {500, 2000}
    assert {p.config["benchmark"]["tasks"] for p in presets().values() if p.method == "gmed"} == {
        10,
        20,
    }
    assert any(p.setting == "cifar10" for p in presets().values())


def test_a_likely_misprint_is_kept_with_a_note() -> None:
    odd = preset("cub200-1000-gdumb")
    assert odd.config["method"]["lr_min"] == 0.005
    assert odd.note is not None
    assert "0.0005" in odd.note


def test_later_layers_win_over_a_preset() -> None:
    config = make_config(
        {"preset": "cifar100-500-der++-lider", "training": {"lr": 0.7}, "memory": {"size": 3}}
    )
    assert (config.training.lr, config.memory.size, config.training.epochs) == (0.7, 3, 50)
    assert config.regularizers["lider"]["alpha"] == 0.3
    other = make_config({"preset": "cifar100-500-der++"}, {"method": "er"})
    assert other.method.options == {}  # er has none of der++'s options


def test_wrong_names() -> None:
    with pytest.raises(UserError, match="did you mean 'cifar100-500-er-ace'") as error:
        make_config({"preset": "cifar100-500-erace"})
    assert len(str(error.value)) < 150  # not all 144 names
    with pytest.raises(UserError, match=r"unknown preset .zzz.: lider list presets lists all"):
        preset("zzz")
    with pytest.raises(UserError, match="started from preset cifar100-joint, not from cub200"):
        make_config({"preset": "cifar100-joint"}, {"preset": "cub200-joint"})


def listed(*arguments: str) -> str:
    """The output of the command, which imports no torch."""
    code = (
        f"import sys; sys.argv = ['lider', 'list', 'presets', *{arguments}]\n"
        "from liderlab.cli import main\n"
        "try: main()\nfinally: assert 'torch' not in sys.modules"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout


def test_presets_are_listed_by_words() -> None:
    table = listed("cub200", "1000", "der++").splitlines()
    assert [line.split()[0] for line in table[1:]] == [
        "cub200-1000-der++",
        "cub200-1000-der++-lider",
        "cub200-1000-der++-lider-controlled",
    ]
    assert table[2].split()[1:] == ["0.03", "0.1,", "0.1", "yes"]
    data = json.loads(listed("gmed", "--json"))
    assert len(data) == 4
    assert data[0] == vars(preset(data[0]["name"]))


def test_all_presets_fit_80_columns(lider) -> None:
    code, out, _ = lider("list", "presets")
    heading, *rows = out.splitlines()
    assert code == 0
    assert heading.split() == ["preset", "lr", "LiDER", "α,", "β", "paper"]
    assert max(map(len, out.splitlines())) <= 80
    assert [row.split()[0] for row in rows] == list(presets())  # a row each, none cut
    for row, p in zip(rows, presets().values(), strict=True):
        weights = p.config["regularizers"].get("lider", {})
        cells = [f"{weights['alpha']},", str(weights["beta"])] if weights else ["–"]
        lr = str(p.config["training"].get("lr", "–"))
        assert row.split()[1:] == [lr, *cells, "yes" if p.printed else "no"]


def test_in_a_narrow_terminal_nothing_is_lost(lider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    wanted = "cifar100-pretrained-500-der++-lider-controlled"
    _, out, _ = lider("list", "presets", wanted)
    heading, *rows = out.splitlines()
    width = heading.index("lr")
    assert "".join(row[:width].strip() for row in rows) == wanted
    assert "0.1, 0.1" in rows[0]


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_words_that_no_preset_has(lider, options: list[str]) -> None:
    code, out, err = lider("list", "presets", "cub200", "gmed", *options)
    assert (code, out) == (2, "")
    assert err == (
        "lider: no preset has 'cub200' and 'gmed' in its name: lider list presets lists all\n"
    )
