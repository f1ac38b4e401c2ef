"""A finished run goes on with new classes; with room for them, it equals a run on all data."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from liderlab import add_benchmark, extend, load
from liderlab.config.merging import make_config
from liderlab.errors import UserError
from liderlab.runs.execute import run
from liderlab.runs.extension import extended_config
from liderlab.runs.folder import RunFolder
from liderlab.streams import BENCHMARKS
from liderlab.streams.splitting import Images
from liderlab.training.loop import StepDone

NAMES = list("abcdef")


@pytest.fixture(autouse=True, scope="module")
def arrays() -> Iterator[None]:
    """Six classes: four of them in `first`, the other two in `second`, all in `both`."""
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(6).repeat_interleave(10)
    colours = 255 * torch.rand(6, 3, 1, 1, generator=generator)
    x = colours[y] + 20 * torch.randn(60, 3, 8, 8, generator=generator)
    x = x.clamp(0, 255).to(torch.uint8)

    def add(name: str, classes: range, tasks: int, pixels: torch.Tensor = x) -> None:
        own = (y >= classes.start) & (y < classes.stop)
        part = Images(pixels[own], y[own] - classes.start)
        add_benchmark(name, part, part, tasks, names=NAMES[classes.start : classes.stop])

    add("first", range(4), 2)
    add("second", range(4, 6), 1)
    add("both", range(6), 3)
    add("known", range(3, 6), 1)
    add("small", range(4, 6), 1, x[:, :, :6, :6])
    yield
    for name in ("first", "second", "both", "known", "small"):
        del BENCHMARKS[name]


def config(name: str, method: str = "er", **more: Any) -> Any:
    fields = {
        "benchmark": {"name": name, "room": 2 * (name == "first")},
        "method": method,
        "backbone": {"name": "convnet-small", "width": 8},
        "memory": {"size": 12},
        "training": {"epochs": 1, "batch_size": 8, "lr": 0.05},
        "threads": 1,
    }
    return make_config(fields, more)


def content(folder: Path) -> dict[str, str]:
    files = (file for file in sorted(folder.rglob("*")) if file.is_file())
    return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def final(folder: Path) -> dict[str, Any]:
    stored = RunFolder(folder)
    return stored.read_memory(stored.state())


CASES: list[tuple[str, dict[str, Any]]] = [
    ("er-ace", {"regularizers": {"lider": {}}}),
    ("der++", {"memory": {"storage": "disk"}}),
    ("icarl", {}),
    ("x-der-rpc", {}),
    ("er", {"regularizers": {"oewc": {}}}),
    ("er", {"training": {"optimizer_per_task": False, "momentum": 0.5}}),
]


@pytest.mark.parametrize(("method", "more"), CASES)
def test_with_room_it_is_the_run_on_all_data_to_the_bit(
    method: str, more: dict[str, Any], tmp_path: Path, differences: Callable[..., list[str]]
) -> None:
    run(config("first", method, **more), tmp_path / "a")
    before = content(tmp_path / "a")
    longer = run(extended_config(tmp_path / "a", {"name": "second"}), tmp_path / "ab")
    whole = run(config("both", method, **more), tmp_path / "both")
    assert content(tmp_path / "a") == before
    one, other = final(tmp_path / "ab"), final(tmp_path / "both")
    for part in (
        "network",
        "method",
        "regularizers",
        "memory",
        "generators",
        "evaluation",
        "steps",
    ):
        assert not differences(one[part], other[part], part)
    for setting in ("class_incremental", "task_incremental"):
        assert longer[setting] == whole[setting]
    assert longer["extends"] == {
        "run": str(tmp_path / "a"),
        "tasks": 2,
        "steps": final(tmp_path / "a")["steps"],
        "fingerprint": RunFolder(tmp_path / "a").result()["data"]["fingerprint"],
    }


@pytest.mark.parametrize("method", ["er-ace", "der++", "icarl", "ncm"])
def test_without_room_the_head_grows(method: str, tmp_path: Path) -> None:
    run(config("first", method, benchmark={"room": 0}), tmp_path / "a")
    started: list[Any] = []
    longer = extended_config(tmp_path / "a", {"name": "second"})

    class Enough(Exception):
        pass

    def listener(work: Any, event: Any) -> None:
        started.append(event)
        if len(started) == 2:
            raise Enough

    old = final(tmp_path / "a")["network"]
    with pytest.raises(Enough):
        run(longer, tmp_path / "ab", listener=listener)
    assert isinstance(started[0], StepDone)
    assert started[0].task.index == 2
    result = run(longer, tmp_path / "ab", existing="resume")
    assert run(longer, tmp_path / "again")["class_incremental"] == result["class_incremental"]
    new = final(tmp_path / "ab")["network"]
    assert (old["backbone.fc.weight"].shape[0], new["backbone.fc.weight"].shape[0]) == (4, 6)
    first = RunFolder(tmp_path / "a").result()["class_incremental"]["accuracy_matrix"]
    matrix = result["class_incremental"]["accuracy_matrix"]
    assert [row[:2] for row in matrix[:2]] == first
    assert None not in matrix[2]
    assert load(tmp_path / "ab").names == NAMES


def test_a_grown_head_keeps_its_weights(tmp_path: Path) -> None:
    run(config("first", "der++", benchmark={"room": 0}), tmp_path / "a")
    seen: dict[str, Any] = {}

    def on_start(work: Any) -> None:
        seen["work"] = work

    def listener(work: Any, event: Any) -> None:
        raise KeyError  # the first step has been taken, at a learning rate of almost zero

    tiny = extended_config(tmp_path / "a", {"name": "second"}, {"training": {"lr": 1e-12}})
    with pytest.raises(KeyError):
        run(tiny, tmp_path / "ab", on_start=on_start, listener=listener)
    loop, old = seen["work"].loop, final(tmp_path / "a")
    weight = loop.network.state_dict()["backbone.fc.weight"]
    torch.testing.assert_close(weight[:4], old["network"]["backbone.fc.weight"])
    torch.testing.assert_close(weight[4:], loop._initial["backbone.fc.weight"][4:])
    rows = torch.arange(old["memory"]["filled"])
    past = loop.memory.read("task", rows) < 2
    logits = loop.memory.read("logits", rows)[past]
    assert torch.equal(logits[:, :4], old["memory"]["data"]["logits"][past])
    assert not logits[:, 4:].any()


def test_an_extension_can_be_extended(tmp_path: Path) -> None:
    images = Images(torch.zeros(4, 3, 8, 8, dtype=torch.uint8), [0, 0, 0, 0])
    add_benchmark("third", images, images, 1, names=["g"])
    run(config("first"), tmp_path / "a")
    extend(tmp_path / "a", "second", progress=False)
    try:
        result = extend(tmp_path / "a-extended", "third", tmp_path / "c", progress=False)
    finally:
        del BENCHMARKS["third"]
    assert result["classes"] == [*NAMES, "g"]
    assert len(result.matrix) == 4
    assert result["extends"]["run"] == str(tmp_path / "a-extended")


@pytest.mark.parametrize(
    ("method", "more", "benchmark", "message"),
    [
        ("er", {}, "known", "class 'd' is known already: an extension needs new classes"),
        ("er", {}, "small", "so far are 3x8x8 and the new ones 3x6x6"),
        ("er", {}, "secnd", "unknown benchmark 'secnd'"),
        ("x-der-rpc", {"benchmark": {"room": 0}}, "second", "cannot grow by 2 classes: train the"),
        (
            "er",
            {"benchmark": {"room": 0}, "regularizers": {"oewc": {}}},
            "second",
            "state of oewc cannot grow by 2 classes",
        ),
        ("joint", {}, "second", "joint does not train task by task: train it anew"),
    ],
)
def test_bad_input_writes_nothing(
    method: str, more: dict[str, Any], benchmark: str, message: str, tmp_path: Path
) -> None:
    run(config("first", method, **more), tmp_path / "a")
    with pytest.raises(UserError, match=message) as error:
        run(extended_config(tmp_path / "a", {"name": benchmark}), tmp_path / "ab")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "ab").exists()


def test_other_networks_and_unfinished_runs_are_refused(tmp_path: Path, lider: Any) -> None:
    run(config("first"), tmp_path / "a")
    wider = {"backbone": {"width": 12}}
    with pytest.raises(UserError, match="has another backbone: an extension keeps it"):
        run(extended_config(tmp_path / "a", {"name": "second"}, wider), tmp_path / "ab")
    assert not (tmp_path / "ab").exists()
    code, _, err = lider("extend", "a", "--benchmark", "second", "--out", "b")
    assert code == 0, err
    code, out, _ = lider("show", "b")
    assert "which had trained 2 tasks" in " ".join(out.split())
    assert lider("report", "b", "-o", "r.html")[0] == 0
    refused = {"known": "'d' is known already", "small": "images of the same shape"}
    for benchmark, says in refused.items():
        code, out, err = lider("extend", "a", "--benchmark", benchmark, "--out", "c")
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert says in err
        assert not Path("c").exists()
    (tmp_path / "a/result.json").unlink()
    code, _, err = lider("extend", "a", "--benchmark", "second", "--out", "c")
    assert (code, err.count("\n")) == (2, 1)
    assert "has not finished" in err
    assert not Path("c").exists()


def test_another_folder_has_the_options_of_the_first(
    tmp_path: Path, lider: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIDER_DATA", str(tmp_path / "data"))
    for number, name in enumerate(("old/ant", "old/bee", "new/cat")):
        Path(name).mkdir(parents=True)
        for image in range(5):
            Image.new("RGB", (9, 9), (80 * number, 20 * image, 0)).save(f"{name}/{image}.png")
    small = "--backbone convnet-small --width 8 --epochs 1 --buffer 4 --set benchmark.size=8"
    first = ("--benchmark", "folder:old", "--tasks", "2", *small.split())
    assert lider("run", *first, "--out", "a")[0] == 0
    code, _, err = lider("extend", "a", "--benchmark", "folder:new", "--tasks", "1")
    assert code == 0, err
    later = RunFolder("a-extended").config().benchmark.then[0]
    assert later.options == {"path": str(tmp_path / "new"), "size": 8}
