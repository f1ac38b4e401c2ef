"""Runs whose files were lost, cut or edited: one sentence, and never another run's network."""

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from liderlab.config.merging import make_config
from liderlab.errors import UserError
from liderlab.paper.ledger.record_collection import network_hash
from liderlab.runs.checkpoints import read_state, write_state
from liderlab.runs.execute import run
from liderlab.runs.folder import RunFolder
from liderlab.runs.pretrain import export_weights
from liderlab.runs.resume_proof import compare

SMALL = {
    "benchmark": "synthetic",
    "backbone": {"width": 8},
    "memory": {"size": 12},
    "training": {"epochs": 1},
    "log_every": 1,
    "threads": 1,
}
Damage = Callable[[RunFolder], None]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    path = tmp_path_factory.mktemp("runs") / "x"
    run(make_config(SMALL), path)
    return RunFolder(path)


@pytest.fixture
def folder(whole: RunFolder, tmp_path: Path) -> RunFolder:
    """A copy to damage, beside an image to classify."""
    shutil.copytree(whole.path, tmp_path / "x")
    Image.new("RGB", (8, 8)).save(tmp_path / "i.png")
    return RunFolder(tmp_path / "x")


def edited(folder: RunFolder, **changes: Any) -> None:
    """result.json with these values; None removes one."""
    file = folder.path / "result.json"
    result = json.loads(file.read_text()) | changes
    file.write_text(json.dumps({k: v for k, v in result.items() if v is not None}))


def widened(folder: RunFolder) -> None:
    file = folder.path / "config.yaml"
    text = file.read_text()
    assert "width: 8" in text
    file.write_text(text.replace("width: 8", "width: 16"))


def lose_last(folder: RunFolder) -> None:
    folder.checkpoints.files()[0].unlink()


def break_last(folder: RunFolder) -> None:
    folder.checkpoints.files()[0].write_bytes(b"broken")


def break_last_of_an_old_version(folder: RunFolder) -> None:
    break_last(folder)
    edited(folder, steps=None)
    (folder.path / "metrics.jsonl").unlink()


def one_sentence(answer: tuple[int, str, str], says: str) -> bool:
    code, out, err = answer
    return (code, out, err.count("\n")) == (2, "", 1) and says in err and "--force" not in err


@pytest.mark.parametrize("damage", [lose_last, break_last, break_last_of_an_old_version])
def test_without_its_last_checkpoint_a_finished_run_gives_no_network(
    lider: Any, folder: RunFolder, tmp_path: Path, damage: Damage
) -> None:
    damage(folder)
    asked = ["predict x i.png", "export x", "analyze hessian x --scale smoke"]
    for words in asked:
        assert one_sentence(lider(*words.split()), "last checkpoint"), words
    with pytest.raises(UserError, match="last checkpoint"):
        export_weights(folder.path, tmp_path / "w.pt")
    with pytest.raises(UserError, match="last checkpoint"):
        network_hash(folder)
    answer = lider("run", "--benchmark", "synthetic", "--pretrained", "x", "--out", "y")
    assert answer[0] == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["i.png", "x"]
    assert lider("show", "x")[0] == 0


def test_results_without_steps_give_their_network(lider: Any, folder: RunFolder) -> None:
    """As earlier versions wrote them."""
    expected = lider("predict", "x", "i.png")
    edited(folder, steps=None)
    assert lider("predict", "x", "i.png") == expected
    (folder.path / "metrics.jsonl").unlink()
    assert lider("predict", "x", "i.png") == expected
    assert expected[0] == 0


def unfinished(folder: RunFolder) -> list[int]:
    """Delete the result; return the length of metrics.jsonl at both checkpoints, newest first."""
    (folder.path / "result.json").unlink()
    return [read_state(file)["logged"] for file in folder.checkpoints.files()]


def test_cut_metrics_are_written_again(whole: RunFolder, folder: RunFolder) -> None:
    newest, before = unfinished(folder)
    log = folder.path / "metrics.jsonl"
    log.write_bytes(log.read_bytes()[: newest - 3])
    assert before < newest - 3
    run(make_config(SMALL), folder.path, existing="resume")
    assert compare(whole, folder) == []


def test_empty_metrics_are_refused(lider: Any, folder: RunFolder) -> None:
    unfinished(folder)
    (folder.path / "metrics.jsonl").write_bytes(b"")
    code, _, err = lider("resume", "x")
    assert (code, "no checkpoint" in err, "Traceback" in err) == (2, True, False)
    assert (folder.path / "metrics.jsonl").read_bytes() == b""
    assert len(folder.checkpoints.files()) == 2


def test_metrics_are_flushed_before_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[str] = []
    monkeypatch.setattr("os.fsync", lambda handle: happened.append("sync"))
    write = RunFolder(tmp_path).checkpoints.__class__.write

    def noted(checkpoints: Any, state: Any) -> None:
        happened.append("checkpoint")
        write(checkpoints, state)

    monkeypatch.setattr("liderlab.runs.checkpoints.Checkpoints.write", noted)
    run(make_config(SMALL), tmp_path / "y")
    places = [i for i, what in enumerate(happened) if what == "checkpoint"]
    # before each checkpoint: two syncs of an earlier file and its folder, then metrics.jsonl
    assert len(places) == 3
    for place, start in zip(places, [2, *(place + 3 for place in places)], strict=False):
        assert happened[start:place] == ["sync"]


def test_a_damaged_newer_checkpoint_is_deleted_by_the_next_one(folder: RunFolder) -> None:
    newest, before = folder.checkpoints.files()
    newest.write_bytes(b"broken")
    state = read_state(before)
    folder.checkpoints.write(state | {"steps": state["steps"] + 1})
    assert newest not in folder.checkpoints.files()
    assert before in folder.checkpoints.files()


def test_other_files_among_the_checkpoints_are_left_alone(lider: Any, folder: RunFolder) -> None:
    unfinished(folder)
    stray = folder.path / "checkpoints/step-abc.pt"
    stray.touch()
    assert lider("resume", "x")[0] == 0
    assert stray.exists()


LOOKING = ("show x", "predict x i.png", "export x", "analyze hessian x --scale smoke")


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder.path / "result.json").write_text('{"config": {}}'),
        lambda folder: edited(folder, classes=None),
        lambda folder: edited(folder, class_incremental=None),
        lambda folder: edited(folder, image_shape=[8, 8]),
        lambda folder: edited(folder, data={}),
    ],
    ids=["no values", "no classes", "no accuracy", "two sides", "no fingerprint"],
)
def test_an_incomplete_result_is_refused_and_resuming_restores_it(
    lider: Any, folder: RunFolder, damage: Damage
) -> None:
    before = folder.result()
    damage(folder)
    for words in LOOKING:
        assert one_sentence(lider(*words.split()), "result.json is damaged"), words
    assert lider("resume", "x")[0] == 0
    assert folder.result()["class_incremental"] == before["class_incremental"]


@pytest.mark.parametrize("matrix", [[], [[1.0], [2.0], [3.0]], [[1.0] * 3] * 2])
def test_a_matrix_has_a_row_and_a_column_for_every_task(
    lider: Any, folder: RunFolder, matrix: list[list[float]]
) -> None:
    accuracy = folder.result()["class_incremental"]
    edited(folder, class_incremental=accuracy | {"accuracy_matrix": matrix})
    assert one_sentence(lider("show", "x"), "result.json is damaged")


def test_an_image_shape_without_pixels_is_damaged(folder: RunFolder) -> None:
    edited(folder, image_shape=[3, 0, 8])
    with pytest.raises(UserError, match=r"result\.json is damaged"):
        folder.result()


def test_a_normalisation_of_other_channels_is_refused(lider: Any, folder: RunFolder) -> None:
    edited(folder, normalisation={"mean": [0.5, 0.5], "std": [0.2, 0.2]})
    for words in ("predict x i.png", "export x"):
        assert one_sentence(lider(*words.split()), "x is damaged"), words


def test_a_run_that_took_no_time_is_shown(lider: Any, folder: RunFolder) -> None:
    edited(folder, seconds=0.0, seconds_evaluating=[0.1])
    assert lider("show", "x")[0] == 0


def test_a_damaged_result_without_checkpoints_is_kept(lider: Any, folder: RunFolder) -> None:
    folder.checkpoints.clear()
    file = folder.path / "result.json"
    file.write_text('{"of": "another version"}')
    assert one_sentence(lider("resume", "x"), "result.json is damaged: run it again")
    assert file.read_text() == '{"of": "another version"}'


def test_a_null_accuracy_is_damaged(lider: Any, folder: RunFolder) -> None:
    file = folder.path / "result.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"class_incremental": None}))
    assert one_sentence(lider("show", "x"), "damaged")


def test_a_configuration_that_does_not_fit_is_refused(lider: Any, folder: RunFolder) -> None:
    widened(folder)
    for words in ("predict x i.png", "export x", "analyze hessian x --scale smoke", "resume x"):
        assert one_sentence(lider(*words.split()), "backbone.width was 8, now 16"), words
    edited(folder, config=folder.config().model_dump(mode="json"))
    for words in ("predict x i.png", "export x", "analyze hessian x --scale smoke"):
        assert one_sentence(lider(*words.split()), "x is damaged"), words
    with pytest.raises(UserError, match="is damaged"):
        export_weights(folder.path, folder.path / "w.pt")
    unfinished(folder)
    assert one_sentence(lider("resume", "x"), "backbone.width was 8, now 16")


NO_VALUES = {
    "whole number": "!!int abc",
    "truth": "!!bool maybe",
    "time": "!!timestamp now",
    "long": "3" * 5000,
    "long in hexadecimal": f"0x{'f' * 5000}",
    "deep": "[" * 1200,
}


@pytest.mark.parametrize("value", NO_VALUES.values(), ids=NO_VALUES.keys())
def test_unreadable_values_are_refused(lider: Any, tmp_path: Path, value: str) -> None:
    answer = lider("run", "--benchmark", "synthetic", "--out", "y", "--set", f"seed={value}")
    assert one_sentence(answer, "cannot read the value of")
    assert len(answer[2]) < 200
    (tmp_path / "c.yaml").write_text(f"seed: {value}\n")
    assert one_sentence(lider("run", "--config", "c.yaml", "--out", "y"), "is not valid YAML")
    assert [path.name for path in tmp_path.iterdir()] == ["c.yaml"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--lr 1e39", "training.lr: expected at most 1e38"),
        ("--set training.weight_decay=1e300", "training.weight_decay: expected at most 1e38"),
        ("--method gdumb --set method.lr_max=1e300", "lr_max > 0 and ≤ 1e+38"),
        ("--method gdumb --set method.weight_decay=1e300", "weight_decay ≥ 0 and ≤ 1e+38"),
        ("--pretrained words.txt", "it is damaged or not a checkpoint"),
    ],
)
def test_too_large_numbers_and_wrong_weights_leave_nothing(
    lider: Any, tmp_path: Path, options: str, says: str
) -> None:
    (tmp_path / "words.txt").write_text("root:x:0:0:root:/root:/bin/bash\n")
    answer = lider("run", "--benchmark", "synthetic", "--out", "y", *options.split())
    assert one_sentence(answer, says)
    assert not (tmp_path / "y").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("import-mammoth --model --dataset seq-cifar100", "--model NAME"),
        ("import-mammoth --model er --dataset", "--dataset NAME"),
        ("ledger --records records", "a.json is not a record"),
        ("study toy --threads 0", "--threads"),
        ("study toy --threads 1025", "--threads"),
        ("bench herding --quick --threads 99999999999999", "--threads"),
    ],
)
def test_incomplete_commands_and_wrong_threads_are_one_sentence(
    lider: Any, tmp_path: Path, words: str, says: str
) -> None:
    (tmp_path / "records").mkdir()
    (tmp_path / "records/a.json").write_bytes(b"\xff\xfe\x00")
    assert one_sentence(lider(*words.split()), says)


FOREIGN = {
    "nothing": {},
    "steps": {"steps": 9},
    "no network": {"steps": 9, "logged": 0, "seconds": 0.0, "memory": {"data": {}}},
    "memory of text": {"steps": 9, "logged": 0, "seconds": 0.0, "memory": "x"},
    "empty": {
        "steps": 9,
        "logged": 0,
        "seconds": 0.0,
        "network": {},
        "method": {},
        "memory": {"data": {}},
        "origin": 3,
    },
}


@pytest.mark.parametrize("state", FOREIGN.values(), ids=FOREIGN)
def test_a_foreign_checkpoint_with_a_valid_checksum_is_one_sentence(
    lider: Any, folder: RunFolder, state: dict[str, Any]
) -> None:
    newest, before = folder.checkpoints.files()
    before.unlink()
    write_state(newest, state)
    for words in ("predict x i.png", "analyze hessian x --scale smoke"):
        code, _, err = lider(*words.split())
        assert (code, err.count("\n")) == (2, 1), words
    (folder.path / "result.json").unlink()
    code, _, err = lider("resume", "x")
    assert code == 2
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("seconds_cpu", {}),
        ("seconds_training", "long"),
        ("passes", [1]),
        ("seconds_training", float("inf")),
        ("steps", -1),
        ("steps", 10**20),
        ("seconds", float("nan")),
        ("memory", {"seen": "x"}),
        ("memory", {"seen": 10**20}),
        ("evaluation", {"class_incremental": torch.zeros(1)}),
        ("evaluation", {"untrained": torch.zeros(2, 1)}),
        ("seconds_evaluating", [{}, 0.1]),
        ("seconds_evaluating", [0.1]),
        ("cursor", {"batch": []}),
    ],
)
def test_a_checkpoint_with_a_value_of_another_kind_is_one_sentence(
    lider: Any, folder: RunFolder, field: str, value: Any
) -> None:
    """Found by benchmarks/fuzz_campaign.py; the checksum is valid."""
    newest, before = folder.checkpoints.files()
    before.unlink()
    state = read_state(newest)
    kept = state[field] if isinstance(state[field], dict) and isinstance(value, dict) else None
    write_state(newest, {**state, field: value if kept is None else {**kept, **value}})
    (folder.path / "result.json").unlink()
    code, _, err = lider("resume", "x")
    assert code == 2
    assert "Traceback" not in err


@pytest.mark.parametrize("seconds", [None, 0])
def test_a_checkpoint_without_training_time_gives_no_speed(
    lider: Any, folder: RunFolder, seconds: int | None
) -> None:
    newest, _ = folder.checkpoints.files()
    write_state(newest, {**read_state(newest), "seconds_training": seconds})
    (folder.path / "result.json").unlink()
    assert lider("resume", "x")[0] == 0
    assert folder.result()["images_per_second"] is None


def test_a_result_without_space_for_its_figure_is_a_success(
    lider: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("liderlab.runs.accuracy_figure.draw_accuracy_matrix", full)
    code, out, _ = lider("run", "--benchmark", "synthetic", "--epochs", "1", "--out", "x")
    assert code == 0
    assert "wrote x" in out
    assert "accuracy.png: No space left on device" in caplog.text


def test_names_do_not_command_the_terminal(lider: Any, folder: RunFolder) -> None:
    name = "\x1b[31m\x9b5m.png"
    shutil.copy(folder.path.parent / "i.png", folder.path.parent / name)
    for words in (
        ["predict", "x", name],
        ["predict", "x", name, "--json"],
        ["predict", "x", "\x1b"],
    ):
        _, out, err = lider(*words)
        assert "\\x1b" in out + err or "\\u001b" in out + err
        assert not set(out + err) & {"\x1b", "\x9b"}


@pytest.mark.parametrize("words", ["runs .", "show", "compare x"])
def test_folder_names_do_not_command_the_terminal(
    lider: Any, folder: RunFolder, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    name = "\x1b]0;mine\x07\x1b[31m"
    shutil.copytree(folder.path, folder.path.parent / name)
    monkeypatch.setenv("NO_COLOR", "1")  # so that every escape code is the name's
    command, *rest = words.split()
    code, out, err = lider(command, *rest, *([] if command == "runs" else [name]))
    assert code == 0
    assert "mine" in out + err
    assert not set(out + err) & {"\x1b", "\x07"}


LINKS = ["metrics.jsonl", ".lock", "memory", "checkpoints", "tasks"]


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.parametrize("command", ["run --resume", "run --force"])
def test_links_in_the_folder_are_not_followed(
    lider: Any, folder: RunFolder, tmp_path: Path, name: str, command: str
) -> None:
    """A link would empty, delete or write files elsewhere."""
    inside, outside = folder.path / name, tmp_path / "mine"
    if inside.is_dir():
        shutil.rmtree(inside)
    else:
        inside.unlink(missing_ok=True)
    if name.startswith((".", "metrics")):
        outside.write_text("precious")
    else:
        outside.mkdir()
        (outside / "x.rows").write_text("precious")
        (outside / "step-000000000001.pt").write_text("precious")
    inside.symlink_to(outside)
    before = {file: file.read_bytes() for file in [outside, *outside.glob("*")] if file.is_file()}
    (folder.path / "result.json").unlink()
    options = ["--config", "x/config.yaml", "--out", "x"]
    assert one_sentence(lider(*command.split(), *options), "is a link")
    assert before == {file: file.read_bytes() for file in before}


def test_files_follow_the_umask(lider: Any, tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        options = "--benchmark synthetic --epochs 1 --memory-storage disk --set keep_tasks=true"
        assert lider("run", *options.split(), "--out", "x")[0] == 0
        assert lider("report", "x", "-o", "r.html")[0] == 0
    finally:
        os.umask(before)
    modes = {file: file.stat().st_mode & 0o077 for file in tmp_path.rglob("*")}
    assert len(modes) > 10
    assert set(modes.values()) == {0}
