"""Pre-training writes weights that another run starts from."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from liderlab.backbones.pretrained import read_weights
from liderlab.config.merging import make_config
from liderlab.config.weight_names import kept_weights
from liderlab.errors import RunFailed, Stopped, UserError
from liderlab.files import checksum
from liderlab.runs.build import build, completed
from liderlab.runs.execute import run
from liderlab.runs.folder import RunFolder
from liderlab.runs.load import load
from liderlab.runs.pretrain import default_name, export_weights, pretraining
from liderlab.runs.weights import hint, weights_file, weights_in

Lider = Callable[..., tuple[int, str, str]]
TINY: dict[str, Any] = {
    "benchmark": {"name": "synthetic", "per_class": 6},
    "backbone": {"name": "resnet18", "width": 4},
    "training": {"epochs": 1},
}


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pretraining")
    run(pretraining(TINY), folder / "run")
    export_weights(folder / "run", folder / "tiny.pt")
    return folder / "tiny.pt"


def test_the_papers_recipe() -> None:
    config = pretraining({})
    training = config.training
    assert (config.benchmark.name, config.benchmark.options["size"]) == ("split-tinyimagenet", 32)
    assert (config.method.name, config.benchmark.tasks) == ("joint", 1)
    assert (training.epochs, training.lr, training.gamma) == (50, 0.1, 0.5)
    assert training.milestones == [20, 30, 40, 45]
    assert config.backbone.name == "resnet18"
    assert default_name(config) == "tinyimagenet32-resnet18"  # what the presets ask for


def test_only_a_joint_run_pretrains() -> None:
    with pytest.raises(UserError, match="a joint run, not a run of er"):
        pretraining({"method": "er"})


def test_the_file_holds_the_trained_backbone(weights: Path) -> None:
    trained: Any = load(weights.parent / "run")
    state = trained.classifier.backbone.state_dict()
    read = read_weights(weights)
    assert read.keys() == state.keys()
    assert all(torch.equal(read[name], state[name]) for name in state)
    about = json.loads(torch.load(weights, weights_only=True)["about"])
    assert about["classes"] == 6
    assert about["backbone"]["width"] == 4


def test_a_run_starts_from_weights_with_a_new_classifier(weights: Path, tmp_path: Path) -> None:
    layers = (TINY, {"method": {"name": "gdumb", "fit_epochs": 1}})
    fresh = build(completed(make_config(*layers))).loop.network
    config = completed(make_config(*layers, {"pretrained": str(weights)}))
    loop = build(config).loop
    read = read_weights(weights)
    for name, value in loop.network.backbone.state_dict().items():
        origin = fresh.backbone.state_dict() if name.startswith("fc.") else read
        assert torch.equal(value, origin[name]), name
    result = run(config, tmp_path / "x")
    assert result["config"]["pretrained"] == str(weights)


def test_a_finished_run_is_used_without_the_file(weights: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.pt"
    copy.write_bytes(weights.read_bytes())
    run(make_config(TINY, {"pretrained": str(copy)}), tmp_path / "x")
    copy.unlink()
    assert load(tmp_path / "x").names == [str(c) for c in range(6)]


def test_weights_are_kept_by_name(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIDER_DATA", str(tmp_path))
    assert kept_weights("tiny") == tmp_path / "weights" / "tiny.pt"
    command = (
        "lider pretrain --out tinyimagenet32-resnet18 --benchmark split-tinyimagenet --size 32 "
        "--backbone resnet18"
    )
    with pytest.raises(UserError, match=command):
        weights_file("tinyimagenet32-resnet18", "resnet18")
    export_weights(weights.parent / "run", kept_weights("tiny"))
    assert weights_in(weights_file("tiny", "resnet18")).keys() == read_weights(weights).keys()


def test_weights_that_do_not_fit_are_refused_before_anything_is_written(
    weights: Path, tmp_path: Path
) -> None:
    config = make_config(TINY, {"backbone": {"width": 8}, "pretrained": str(weights)})
    with pytest.raises(UserError, match=r"bn1\.bias is 4, not 8"):
        run(config, tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_from_the_command_line(
    lider: Lider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIDER_DATA", str(tmp_path / "data"))
    synthetic = "--benchmark synthetic --backbone convnet-small --threads 1".split()  # noqa: SIM905
    code, out, err = lider("pretrain", *synthetic, "--scale", "smoke")
    assert code == 0, err
    name = "synthetic-convnet-small-smoke"
    assert out.endswith(f"  lider run --benchmark synthetic --pretrained {name}\n")
    written = tmp_path / f"data/weights/{name}.pt"
    assert f"wrote {written}, SHA-256 {checksum(written)}\n" in out
    code, _, err = lider("run", *synthetic[:2], "--backbone", "mlp", "--pretrained", name)
    assert code == 2
    assert f"the weights in {name} do not fit mlp: it lacks " in err
    assert "they belong to convnet-small" in err
    assert len(err.splitlines()) == 1
    code, _, err = lider("run", *synthetic, "--pretrained", "nowhere", "--out", "y")
    assert code == 2
    assert err.startswith("lider: there are no weights named 'nowhere'")
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("change", "suffix"),
    [
        ({"backbone": {"width": 64}}, ""),
        ({"scale": "paper", "device": "cpu", "threads": 2, "memory": {"size": 9}}, ""),
        ({"scale": "smoke"}, "-smoke"),
        ({"backbone": {"width": 16}}, "-width16"),
        ({"seed": 2}, "-seed2"),
        ({"training": {"epochs": 3, "lr": 0.2}}, "-epochs3-lr0.2"),
        ({"benchmark": {"train_per_class": 5}, "scale": "cpu"}, "-train_per_class5-cpu"),
        ({"regularizers": {"lider": {"on": "stream"}}}, "-lider"),
    ],
)
def test_only_the_full_recipe_has_the_plain_name(change: dict[str, Any], suffix: str) -> None:
    assert default_name(pretraining(change)) == f"tinyimagenet32-resnet18{suffix}"


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("tinyimagenet32-resnet18", "--benchmark split-tinyimagenet --size 32 --backbone resnet18"),
        ("cifar100-resnet18", "--benchmark split-cifar100 --backbone resnet18"),
        ("cub200-resnet50", "--benchmark split-cub200 --backbone resnet50"),
        (
            "tinyimagenet32-resnet18-width16",
            "--benchmark split-tinyimagenet --size 32 --backbone resnet18 --width 16",
        ),
        ("mine", ""),
    ],
)
def test_a_name_suggests_the_options_of_pretrain(name: str, options: str) -> None:
    assert hint(name).strip() == options


TRAIN = ["pretrain", "--benchmark", "synthetic", "--backbone", "convnet-small", "--scale", "smoke"]


def test_pre_training_has_one_task(lider: Lider) -> None:
    code, _, err = lider(*TRAIN, "--set", "benchmark.tasks=3")
    assert (code, err) == (2, "lider: pre-training is one task, not 3\n")


def test_kept_weights_are_replaced_only_by_force(
    lider: Lider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIDER_DATA", str(tmp_path))
    command = [*TRAIN, "--out", "w"]
    assert lider(*command)[0] == 0
    kept = kept_weights("w").read_bytes()
    for more in ([], ["--run", "elsewhere"], ["--run", "elsewhere", "--resume"]):
        code, out, err = lider(*command, *more)
        assert (code, out) == (2, "")
        assert err.startswith(f"lider: {kept_weights('w')} exists: ")
        assert "--out" in err
        assert "--force" in err
    assert not (tmp_path / "elsewhere").exists()  # refused before anything is trained
    assert lider(*command, "--resume")[0] == 0  # finished, kept: nothing to do
    assert kept_weights("w").read_bytes() == kept
    assert lider(*command, "--seed", "1", "--force")[0] == 0
    assert kept_weights("w").read_bytes() != kept


@pytest.mark.parametrize("out", ["w w.pt", "kept"])
def test_the_suggested_command_works(
    lider: Lider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str
) -> None:
    """Weights choose their backbone, with its options: here not the benchmark's convnet."""
    monkeypatch.setenv("LIDER_DATA", str(tmp_path / "data"))
    train = ["pretrain", "--benchmark", "synthetic", "--backbone", "mlp", "--scale", "smoke"]
    code, shown, err = lider(*train, "--set", "benchmark.side=6", "--out", out)
    assert code == 0, err
    command = shlex.split(shown.splitlines()[-1])
    code, _, err = lider(*command[1:], "--epochs", "1", "--out", "x")
    assert code == 0, err
    folders = f"runs/pretrain-{Path(out).stem}", "x"
    first, then = (RunFolder(folder).config().backbone for folder in folders)
    assert first == then
    assert then.name == "mlp"


@pytest.mark.parametrize("what", ["file", "folder", "checkpoint"])
def test_weights_choose_their_backbone(weights: Path, what: str) -> None:
    run = weights.parent / "run"
    checkpoint = RunFolder(run).checkpoints.files()[0]
    source = {"file": weights, "folder": run, "checkpoint": checkpoint}[what]
    start = {"benchmark": "synthetic", "pretrained": str(source)}
    assert make_config(start).backbone == RunFolder(run).config().backbone
    assert make_config(start, {"backbone": {"width": 6}}).backbone.options["width"] == 6
    assert make_config(start, {"backbone": "mlp"}).backbone.name == "mlp"


def test_foreign_weights_leave_the_benchmarks_backbone(tmp_path: Path) -> None:
    torch.save({"a": torch.zeros(1)}, tmp_path / "a.pt")
    (tmp_path / "b.pt").write_bytes(b"no weights")
    for name in ("a.pt", "b.pt", "none.pt", "."):
        start = {"benchmark": "synthetic", "pretrained": str(tmp_path / name)}
        assert make_config(start).backbone.name == "convnet-small"


def test_another_backbone_is_told_which_one_fits(weights: Path, tmp_path: Path) -> None:
    config = make_config(TINY, {"backbone": "mlp", "pretrained": str(weights)})
    owner = r"; they belong to resnet18 \(width 4, stem cifar\), which a run takes if it names no"
    with pytest.raises(UserError, match=owner):
        run(config, tmp_path / "x")
    digits = make_config({"benchmark": "split-digits", "pretrained": str(weights)})
    with pytest.raises(UserError, match=r"conv1.weight is 4x3x3x3, not 4x1x3x3 .*may differ\)$"):
        run(digits, tmp_path / "x")


@pytest.mark.parametrize("trouble", ["a signal", "a full disk"])
def test_a_stopped_pretraining_names_the_command_that_resumes_it(
    lider: Lider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    monkeypatch.setenv("LIDER_DATA", str(tmp_path))

    def stop(*_: object, **__: object) -> None:
        raise Stopped(2, "runs/w") if trouble == "a signal" else RunFailed("no room")

    command = [*TRAIN, "--out", "w", "--force"]
    with monkeypatch.context() as patched:
        patched.setattr("liderlab.cli.pretrain.train", stop)
        code, _, err = lider(*command)
    again = shlex.join([*command, "--resume"])
    assert code == (130 if trouble == "a signal" else 1)
    assert err.strip().endswith(f": lider {again}")
    assert "lider resume" not in err
    assert lider(*again.split())[0] == 0
    first = (tmp_path / "runs/pretrain-w/result.json").stat().st_mtime_ns
    kept_weights("w").write_bytes(b"older")
    assert lider(*again.split())[0] == 0  # --resume keeps the run, --force replaces the weights
    assert (tmp_path / "runs/pretrain-w/result.json").stat().st_mtime_ns == first
    assert kept_weights("w").stat().st_size > 100


def test_paths_of_weights_are_stored_absolute(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIDER_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(weights.parent)
    for given in (weights.name, f"./{weights.name}", "run"):
        stored = make_config(TINY, {"pretrained": given}).pretrained
        assert stored == str(weights.parent / given.removeprefix("./"))
    for name in ("imagenet", "a-kept-name"):
        assert make_config(TINY, {"pretrained": name}).pretrained == name
    kept_weights("run").parent.mkdir(parents=True)
    kept_weights("run").touch()
    assert make_config(TINY, {"pretrained": "run"}).pretrained == "run"


def test_an_occupied_run_folder_is_refused_with_the_option_to_change(
    lider: Lider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIDER_DATA", str(tmp_path))
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    code, _, err = lider(*TRAIN, "--run", "full")
    assert code == 2
    assert "full exists and is not empty: choose another folder with --run" in err
    assert lider(*TRAIN, "--run", "r")[0] == 0
    code, _, err = lider(*TRAIN, "--run", "r", "--out", "other")
    assert code == 2
    assert "--run" in err
    assert "--resume" in err
    code, _, err = lider(*TRAIN, "--run", "r", "--out", "other", "--resume")
    assert code == 0, err
    assert kept_weights("other").is_file()
    code, _, err = lider(*TRAIN, "--run", "r", "--out", "third", "--resume", "--seed", "1")
    assert code == 2
    assert "--out" not in err


def test_other_weights_in_the_file_are_not_replaced(weights: Path, tmp_path: Path) -> None:
    other = tmp_path / "w.pt"
    torch.save({"a": torch.zeros(1)}, other)
    before = other.read_bytes()
    with pytest.raises(UserError, match=r"holds other weights: keep those of .* --out NAME"):
        export_weights(weights.parent / "run", other)
    assert other.read_bytes() == before


def test_own_weights_cannot_be_named_imagenet(lider: Lider) -> None:
    code, _, err = lider(*TRAIN, "--out", "imagenet")
    assert code == 2
    assert "imagenet means the published weights" in err


@pytest.mark.parametrize("what", ["folder", "checkpoint"])
def test_a_run_starts_from_another_run(weights: Path, tmp_path: Path, what: str) -> None:
    source = weights.parent / "run"
    source = source if what == "folder" else RunFolder(source).checkpoints.files()[0]
    loop = build(completed(make_config(TINY, {"pretrained": str(source)}))).loop
    state, read = loop.network.backbone.state_dict(), read_weights(weights)
    assert all(torch.equal(state[name], read[name]) for name in state if "fc." not in name)


def test_kept_weights_win_over_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LIDER_DATA", str(tmp_path / "data"))
    Path("w").touch()
    assert weights_file("w", "resnet18") == Path("w")
    kept_weights("w").parent.mkdir(parents=True)
    kept_weights("w").touch()
    assert weights_file("w", "resnet18") == kept_weights("w")


def test_a_damaged_checkpoint_and_a_folder_of_something_else(weights: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.pt"
    cut.write_bytes(RunFolder(weights.parent / "run").checkpoints.files()[0].read_bytes()[:-9])
    with pytest.raises(UserError, match=r"cannot read weights from .*: its checksum is wrong"):
        weights_in(weights_file(str(cut), "resnet18"))
    with pytest.raises(UserError, match="is a folder without a run's checkpoints"):
        weights_file(str(tmp_path), "resnet18")


def test_a_folder_that_cannot_be_written(weights: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write"):
        export_weights(weights.parent / "run", tmp_path / "file" / "w.pt")
