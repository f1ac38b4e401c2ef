"""`liderlab.run`: keywords as on the command line, and a result that shows itself."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from rich.console import Console

import liderlab
from liderlab.api.run_result import RunResult
from liderlab.api.single_run import KEYWORDS, complete_config
from liderlab.cli.run import run as command
from liderlab.config.merging import make_config
from liderlab.config.run_options import RunOptions, run_layer
from liderlab.errors import UserError
from liderlab.report.terminal.run_progress import ProgressDisplay

SHORT: dict[str, Any] = {
    "benchmark": "synthetic",
    "tasks": 2,
    "epochs": 1,
    "buffer": 20,
    "width": 4,
}
QUIET: dict[str, Any] = {**SHORT, "progress": False}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    folder = tmp_path_factory.mktemp("runs") / "a & <b>"
    return liderlab.run(method="er", lider={"alpha": 0.2}, out=folder, **QUIET)


def test_result_is_the_content_of_result_json(result: RunResult) -> None:
    assert result == json.loads((result.folder / "result.json").read_bytes())
    assert result == RunResult.read(result.folder)
    assert result.faa == result["class_incremental"]["faa"]
    assert result.ff == result["class_incremental"]["ff"]
    assert result["config"]["regularizers"]["lider"]["alpha"] == 0.2
    assert (result.folder / "accuracy.png").is_file()


def test_matrix_holds_nan_where_nothing_was_measured(result: RunResult) -> None:
    assert result.matrix.shape == (2, 2)
    assert np.nanmean(result.matrix[1]) == pytest.approx(result.faa)
    assert RunResult({"class_incremental": {"accuracy_matrix": [[None]]}}, "x").matrix[0, 0] != 0


def test_result_loads_its_network_and_draws_its_figure(result: RunResult) -> None:
    network = result.load()
    assert network.predict(np.zeros(network.image_shape, dtype=np.uint8))[0] in result["classes"]
    figure = result.plot()
    assert len(figure.axes) == 3
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]


def test_result_shows_itself_escaped(result: RunResult) -> None:
    assert "er + LiDER on synthetic, seed 0: class-incremental FAA" in repr(result)
    page = result._repr_html_()
    assert "a &amp; &lt;b&gt;" in page
    assert "<b>" not in page
    assert f"{result.faa:.2f}" in page


def test_run_equals_the_command_to_the_bit(
    result: RunResult, lider: Callable[..., tuple[int, str, str]]
) -> None:
    options = [f"--{name}={value}" for name, value in SHORT.items()]
    code, _, _ = lider("run", "--method=er", "--lider-alpha=0.2", "--out=x", *options)
    assert code == 0
    typed = RunResult.read("x")
    assert typed["class_incremental"] == result["class_incremental"]
    assert typed["config"] == result["config"]


def test_folder_is_chosen_as_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = liderlab.run(method="finetune", seed=3, **QUIET)
    assert first.folder == Path("runs/synthetic-finetune-seed3")
    with pytest.raises(UserError, match="exists and is not empty"):
        liderlab.run(method="finetune", seed=3, **QUIET)
    again = liderlab.run(method="finetune", seed=3, existing="resume", **QUIET)
    assert again == first


def test_a_configuration_a_dict_and_a_file_are_the_same(tmp_path: Path) -> None:
    fields = {"method": {"name": "der"}, "training": {"epochs": 3}}
    file = tmp_path / "x.yaml"
    file.write_text(yaml.safe_dump(fields))
    expected = make_config(fields, {"seed": 1})
    for config in (fields, file, str(file), make_config(fields)):
        assert complete_config(config, {"seed": 1}, {}) == expected
    config = make_config(fields)
    assert complete_config(config, {}, {}) is config


def test_preset_scale_and_dotted_fields() -> None:
    options: RunOptions = {"preset": "cifar100-500-der++-lider", "scale": "cpu", "lider": False}
    config = complete_config(None, options, {"training.lr": 0.5})
    assert config.preset == "cifar100-500-der++-lider"
    assert config.training.lr == 0.5
    assert config.scale is not None
    assert not config.regularizers


def test_options_become_fields() -> None:
    layer = run_layer(
        {
            "lider": True,
            "lider_targets": "fixed",
            "regularizers": ["oewc"],
            "method": {"name": "der", "alpha": 0.3},
            "compile": True,
            "tracker": "tensorboard",
            "pretrained": Path("w.pt"),
            "training": {"lr": 0.1},
            "epochs": 2,
        }
    )
    assert list(layer["regularizers"]) == ["oewc", "lider"]
    assert layer["regularizers"]["lider"] == {"learn_targets": False}
    assert layer["method"] == {"name": "der", "alpha": 0.3}
    assert (layer["compile"], layer["tracker"]) == ("inductor", ["tensorboard"])
    assert layer["pretrained"] == "w.pt"
    assert layer["training"] == {"lr": 0.1, "epochs": 2}


def test_keywords_are_the_options_of_the_command() -> None:
    typed = {name.rstrip("_") for name in inspect.signature(command).parameters}
    typed = typed - {"force", "resume", "regularizer"} | {"regularizers"}
    assert typed - set(KEYWORDS) == set(RunOptions.__annotations__)
    parameters = set(inspect.signature(liderlab.run).parameters)
    assert parameters == {*KEYWORDS, "options"}


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"bufer": 3}, "unknown keyword 'bufer': did you mean 'buffer'"),
        ({"progres": True}, "did you mean 'progress'"),
        ({"force": True}, "unknown keyword 'force': write existing=\"replace\""),
        ({"method": "er_ace"}, "unknown method 'er_ace': did you mean 'er-ace'"),
        ({"set": {"training.lrr": 1}}, "did you mean 'lr'"),
        ({"set": "training.lr=1"}, "set must be a dict like"),
        ({"lider": 3, "lider_alpha": 1.0}, "lider must be True, False, or LiDER's options, not 3"),
        ({"lider_targets": "none"}, "unknown kind of targets 'none'"),
        ({"regularizers": "lider", "lider": True}, "regularizers must be names"),
        ({"buffer": "many"}, "memory.size: .* but got 'many'"),
        ({"config": "nowhere.yaml"}, "cannot read nowhere.yaml"),
    ],
)
def test_bad_keywords_are_refused_before_anything_is_written(
    keywords: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=message):
        liderlab.run(**keywords)
    assert not os.listdir(tmp_path)


def test_progress_can_be_silent(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[object] = []
    begun: list[object] = []
    liderlab.run(
        method="finetune",
        out=tmp_path / "a",
        listener=lambda work, event: heard.append(event),
        on_start=begun.append,
        **QUIET,
    )
    assert heard
    assert begun
    assert capfd.readouterr() == ("", "")
    liderlab.run(method="finetune", out=tmp_path / "b", **SHORT)
    out, err = capfd.readouterr()
    assert not out
    assert "task 2/2 done: class-incremental accuracy so far" in err


def test_a_notebook_gets_a_bar_that_is_replaced_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[dict[str, str]] = []

    class Handle:
        def update(self, content: dict[str, str], raw: bool) -> None:
            shown.append(content)

    def display(content: dict[str, str], raw: bool, display_id: bool) -> Handle:
        shown.append(content)
        return Handle()

    pytest.importorskip("IPython.display")
    monkeypatch.setattr("IPython.display.display", display)
    with ProgressDisplay(Console(force_jupyter=True)) as bar:
        config = complete_config(None, {**SHORT, "method": "finetune"}, {})  # type: ignore[typeddict-item]
        liderlab.run(config, tmp_path / "a", progress=False, listener=bar)
    assert shown[0]["text/plain"] == "starting 0%"
    assert shown[-1]["text/plain"] == "task 2/2 epoch 1/1 100%"
    assert '<progress value="1.0000" max="1">' in shown[-1]["text/html"]
