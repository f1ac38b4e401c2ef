"""A run's folder, from one small run on the synthetic benchmark."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import liderlab
from liderlab.config.merging import make_config
from liderlab.config.schema import RunConfig
from liderlab.config.yaml_values import read_yaml
from liderlab.errors import UserError
from liderlab.runs.execute import run
from liderlab.runs.folder import RunFolder
from liderlab.runs.load import load
from liderlab.runs.provenance import processor
from liderlab.runs.resume_proof import NOT_COMPARED

SMALL = {
    "benchmark": "synthetic",
    "backbone": {"width": 8},
    "regularizers": {"lider": {}},
    "log_every": 3,
}


@pytest.fixture(scope="module")
def config() -> RunConfig:
    return make_config(SMALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, config: RunConfig) -> Path:
    path = tmp_path_factory.mktemp("runs") / "x"
    run(config, path)
    return path


def comparable(result: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in result.items() if key not in NOT_COMPARED}


def test_the_result_holds_every_documented_field(folder: Path) -> None:
    result = json.loads((folder / "result.json").read_text())
    for setting in ("class_incremental", "task_incremental"):
        assert {"faa", "ff", "bwt", "fwt", "aia", "accuracy_matrix"} <= set(result[setting])
        matrix = result[setting]["accuracy_matrix"]
        assert result[setting]["faa"] == pytest.approx(np.mean(matrix[-1]))
    assert result["class_incremental"]["fwt"] is None
    assert result["task_incremental"]["fwt"] is not None
    confusion = np.array(result["class_incremental"]["confusion_matrix"])
    assert confusion.sum() == 48
    assert {"config", "versions", "seconds", "seconds_cpu", "seconds_evaluating"} <= set(result)
    assert result["versions"]["torch"] == torch.__version__
    assert result["versions"]["threads"] == 1
    assert result["versions"]["processor"]
    assert result["resolved"]["lider"]["chain"] == ["input", *(f"block{i}" for i in range(1, 5))]


def test_the_processor_is_read_from_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "processor : 0\nmodel name : Imaginary 9000 @ 3 GHz\nprocessor : 1\nmodel name : Other\n"
    monkeypatch.setattr(Path, "read_text", lambda path: text)
    assert processor() == "Imaginary 9000 @ 3 GHz"

    def missing(path: Path) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", missing)
    monkeypatch.setattr("platform.processor", lambda: "another system's answer")
    assert processor() == "another system's answer"


def test_metrics_hold_steps_and_tasks(folder: Path) -> None:
    lines = RunFolder(folder).metrics()
    tasks = [line for line in lines if line["kind"] == "task"]
    steps = [line for line in lines if line["kind"] == "step"]
    assert [line["task"] for line in tasks] == [0, 1, 2]
    assert (
        tasks[-1]["class_incremental"]
        == (RunFolder(folder).result()["class_incremental"]["accuracy_matrix"][-1])
    )
    last = steps[-1]
    assert {"stream", "replay", "lider/c_lip", "lider/0_lip"} == set(last["terms"])
    assert any(name.startswith("lider/λ/") for name in last["readings"])
    assert [line["step"] for line in steps] == list(range(3, 19, 3))  # log_every is 3


def test_accuracy_on_memory_is_in_the_log_and_in_the_result(folder: Path) -> None:
    lines = RunFolder(folder).metrics()
    rows = [line["memory_accuracy"] for line in lines if line["kind"] == "task"]
    assert rows == RunFolder(folder).result()["class_incremental"]["memory_accuracy"]
    assert all(0 <= value <= 100 for value in rows[-1])


def test_progress_is_written_while_it_runs_and_deleted_afterwards(tmp_path: Path) -> None:
    told = []
    folder = RunFolder(tmp_path)
    run(make_config(SMALL), tmp_path, listener=lambda *_: told.append(folder.progress()))
    assert set(told[0]) == {"step", "planned", "seconds", "speed", "left"}
    assert (told[0]["step"], told[0]["planned"]) == (1, 18)
    assert told[0]["left"] == pytest.approx(17 / told[0]["speed"])
    assert told[-1]["step"] == 18
    assert folder.progress() is None


def test_config_repeats_the_run_to_the_bit(folder: Path, tmp_path: Path) -> None:
    run(make_config(read_yaml(folder / "config.yaml")), tmp_path / "again")
    first, again = RunFolder(folder), RunFolder(tmp_path / "again")
    assert comparable(first.result()) == comparable(again.result())
    weights, others = first.state()["network"], again.state()["network"]
    assert all(torch.equal(weights[name], others[name]) for name in weights)
    assert (folder / "metrics.jsonl").read_bytes() == (
        tmp_path / "again/metrics.jsonl"
    ).read_bytes()


def test_another_seed_is_another_run(folder: Path, tmp_path: Path) -> None:
    run(make_config(SMALL, {"seed": 1}), tmp_path / "other")
    weights = RunFolder(folder).state()["network"]
    others = RunFolder(tmp_path / "other").state()["network"]
    assert not torch.equal(weights["backbone.fc.weight"], others["backbone.fc.weight"])


def test_shuffled_class_order_is_recorded(tmp_path: Path) -> None:
    tree = {
        "benchmark": {"name": "synthetic", "class_order": "shuffled"},
        "training": {"epochs": 1},
    }
    result = run(make_config(SMALL, tree), tmp_path / "s")
    assert sorted(result["classes"]) == ["0", "1", "2", "3", "4", "5"]
    assert result["classes"] != ["0", "1", "2", "3", "4", "5"]
    listed = {"benchmark": {"class_order": [int(name) for name in result["classes"]]}}
    assert run(make_config(SMALL, tree, listed), tmp_path / "l")["classes"] == result["classes"]


def test_existing_folder_is_kept_unless_forced(
    config: RunConfig, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(UserError, match="--force"):
        run(config, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    run(config, tmp_path, existing="replace")
    assert (tmp_path / "mine.txt").read_text() == "precious"
    assert comparable(RunFolder(tmp_path).result()) == comparable(RunFolder(folder).result())


def test_a_config_of_another_program_is_not_replaced(config: RunConfig, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("my: precious\n")
    for existing in ("refuse", "replace", "resume"):
        with pytest.raises(UserError, match="does not belong to a run: choose another --out"):
            run(config, tmp_path, existing=existing)  # type: ignore[arg-type]
    assert (tmp_path / "config.yaml").read_text() == "my: precious\n"
    assert [path.name for path in tmp_path.iterdir()] == ["config.yaml"]


def test_a_mistake_in_config_yaml_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").touch()
    with pytest.raises(UserError, match=r"config\.yaml: benchmark: field required"):
        RunFolder(tmp_path).config()


def test_a_mistake_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="6 classes"):
        run(make_config(SMALL, {"benchmark": {"tasks": 7}}), tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_loaded_network_predicts_as_the_run_did(folder: Path, config: RunConfig) -> None:
    from liderlab.streams.datasets.synthetic import synthetic

    network = liderlab.load(folder)
    images = synthetic().tasks[0].test.images
    predicted = network.predict(images.x)
    right = np.mean([name == str(int(y)) for name, y in zip(predicted, images.y, strict=True)])
    result = RunFolder(folder).result()
    confusion = np.array(result["class_incremental"]["confusion_matrix"])
    assert right == pytest.approx(confusion.trace() / confusion.sum())
    assert network.predict(images.x.numpy()) == predicted
    assert network.predict(images.x[0]) == predicted[:1]
    assert network.probabilities(images.x).sum(1).allclose(torch.ones(48))


def test_loaded_network_reads_files_of_any_size_and_mode(folder: Path, tmp_path: Path) -> None:
    pixels = np.zeros((20, 30), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "grey.png")
    network = load(folder)
    assert network.predict([tmp_path / "grey.png"])[0] in network.names
    assert network.predict([Image.new("RGBA", (9, 9))])[0] in network.names


def test_predict_refuses_unreadable_images(folder: Path, tmp_path: Path) -> None:
    network = load(folder)
    (tmp_path / "x.png").write_bytes(b"no image")
    Image.new("RGB", (8, 8)).save(tmp_path / "y.png")
    head, pixels = (tmp_path / "y.png").read_bytes().split(b"IDAT")
    nothing, nonsense = b"IDAT\x35\xaf\x06\x1e", b"\0\0\0\5\0\0\0\0"  # chunks of a PNG
    (tmp_path / "y.png").write_bytes(head[:-4] + bytes(4) + nothing + nonsense + pixels)
    with pytest.raises(UserError, match=r"cannot read .*y\.png as an image"):
        network.predict(tmp_path / "y.png")
    for bad in ([tmp_path / "x.png"], torch.zeros(1, 3, 8, 8), torch.zeros(1, 1, 4, 4).byte()):
        with pytest.raises(UserError):
            network.predict(bad)


def test_predict_takes_images_in_many_forms(folder: Path, tmp_path: Path) -> None:
    from liderlab.streams.datasets.synthetic import synthetic

    network = load(folder)
    pixels = synthetic().tasks[0].test.images.x[:5]
    expected = network.predict(pixels)
    last = pixels.permute(0, 2, 3, 1).numpy()
    assert network.predict(last) == expected
    assert network.predict(last[0]) == expected[:1]
    assert network.predict([*last, *pixels]) == expected * 2
    assert network.predict(pixels.long()) == expected
    Image.fromarray(last[0]).save(tmp_path / "a.png")
    for one in (tmp_path / "a.png", str(tmp_path / "a.png"), Image.fromarray(last[0])):
        assert network.predict(one) == network.predict([one]) == expected[:1]
    for nothing in ([], (), pixels[:0], last[:0]):
        assert network.predict(nothing) == []
        assert network.probabilities(nothing).shape == (0, 6)


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (None, "NoneType"),
        ([None], "NoneType"),
        (3, "shape"),
        ({}, "dict"),
        ("nowhere.png", "nowhere.png"),
        (np.zeros((2, 9, 9, 3), np.uint8), r"\(n, 3, 8, 8\) or \(n, 8, 8, 3\)"),
        (np.full((1, 3, 8, 8), 300), "0…255, but got 300"),
        ([np.zeros((8, 8, 3), np.uint8), np.zeros((4, 4, 3), np.uint8)], "shape"),
    ],
)
def test_predict_says_which_images_it_takes(folder: Path, bad: Any, says: str) -> None:
    with pytest.raises(UserError, match=says) as refused:
        load(folder).predict(bad)
    assert "\n" not in str(refused.value)


def test_damaged_and_unfinished_folders(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a run's folder"):
        load(tmp_path)
    (tmp_path / "config.yaml").write_text((folder / "config.yaml").read_text())
    with pytest.raises(UserError, match="has not finished"):
        load(tmp_path)
    (tmp_path / "result.json").write_text((folder / "result.json").read_text())
    with pytest.raises(UserError, match="no checkpoint"):
        load(tmp_path)
    for damaged in ("{", "[]", "{}"):
        (tmp_path / "result.json").write_text(damaged)
        with pytest.raises(UserError, match="damaged"):
            load(tmp_path)


def test_poisoned_labels_are_of_the_same_task(tmp_path: Path) -> None:
    run(make_config(SMALL, {"memory": {"poison": 1.0}, "regularizers": {}}), tmp_path / "p")
    memory = RunFolder(tmp_path / "p").state()["memory"]["data"]
    assert memory["poisoned"].all()
    assert torch.equal(memory["y"] // 2, memory["task"])
