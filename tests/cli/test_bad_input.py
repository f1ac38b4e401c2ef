"""A mistake in a command is one sentence and exit code 2, and leaves no files behind."""

from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("run --method er_ace", "did you mean 'er-ace'"),
        ("run --benchmark digits", "did you mean 'split-digits'"),
        ("run --backbone resnet-18", "did you mean 'resnet18'"),
        ("run --regularizer lidr", "did you mean 'lider'"),
        ("run --buffer -1", "memory.size"),
        ("run --method er --buffer 0", "needs a memory"),
        ("run --method finetune --lider", "--lider-on stream"),
        ("run --tasks 11", "10 classes can be split into 1…10 tasks, not 11"),
        ("run --tasks 4,3,2", "tasks of 4, 3, 2 classes do not add up to the 10 classes"),
        ("run --tasks 5,0,5", "expected the number of tasks"),
        ("run --base 11 --tasks 3", "a base of 11 classes and 2 further tasks do not add up to 10"),
        ("run --base 10 --tasks 2", "a base of 10 classes and 1 further task do not"),
        ("run --tasks 1 --blurry 0.1", "blurry"),
        ("run --blurry 1.5", "benchmark.blurry"),
        ("run --imbalance 0", "benchmark.imbalance"),
        ("run --set benchmark.noise=2", "benchmark.noise"),
        ("run --set training.budget.passes=0", "training.budget.passes"),
        ("run --benchmark rotated-digits --method icarl", "icarl needs new classes in every task"),
        ("run --benchmark rotated-digits --base 5", "--tasks takes the number of its domains"),
        ("run --task-free --method icarl --epochs 1", "icarl needs to know where a task"),
        ("extend nowhere --benchmark synthetic", "not a run's folder"),
        ("run --class-order 1,x", "--class-order"),
        ("run --class-order 1,2", "class order must list each"),
        ("run --set training.lr", "training.lr=0.1"),
        ("run --config missing.yaml", "cannot read missing.yaml"),
        ("run --config typo.yaml", "did you mean 'training'"),
        ("run --config broken.yaml", "not valid YAML"),
        ("run --lider-targets wrong", "'learned', 'fixed'"),
        ("run --lider-on elsewhere", "'stream' or 'both'"),
        ("run --lider --lider-alpha -1", "alpha"),
        ("run --epochs many", "--epochs"),
        ("run --epochs 0", "training.epochs"),
        ("run --width 0", "width"),
        ("run --device toaster", "cpu, cuda"),
        ("run --device meta", "cpu, cuda"),
        ("run --device cuda:99", "not available"),
        ("run --threads 100000", "1024"),
        ("run --set regularizers=lider", "like {lider: {alpha: 0.1}}"),
        ("run --set regularizers.lider=3", "like {lider: {alpha: 0.1}}"),
        ("run --set benchmark.class_order=random", "natural, shuffled, or a list"),
        ("run --set training.milestones=[3,2]", "each later than the one before"),
        ("run --method icarl --buffer 5", "a buffer of that size or more"),
        ("run --method gdumb --set training.optimizer=adamw", "by SGD with a schedule of its own"),
        ("run --method gdumb --set training.schedule=cosine", "by SGD with a schedule of its own"),
        ("run --evaluate every:0", "every:50 (also every 50 steps)"),
        ("run --evaluate every:5:0", "every:50 (also every 50 steps)"),
        ("run --evaluate sometimes", "expected every, seen"),
        ("run --method joint --evaluate every:5", "joint does not train task by task"),
        ("run --method gdumb --evaluate every:5", "gdumb does not train task by task"),
        ("run --set training.budget.steps=0", "training.budget.steps"),
        ("run --set training.budget.steps=4", "4 steps is too small for 5 tasks"),
        ("run --set training.budget.seconds=0", "training.budget.seconds"),
        ("run --set training.budget.seconds=.inf", "training.budget.seconds"),
        ("run --set training.budget.passes=-5", "training.budget.passes"),
        ("run --set training.budget={}", "one of steps, passes and seconds"),
        ('run --set training.budget={"steps":5,"seconds":5}', "one of steps, passes and"),
        ("run --set training.budget=5", "training.budget"),
        ("run --set training.budget.hours=1", "Allowed: steps, passes, seconds"),
        (
            "run --task-free --method er --epochs 1 --set training.budget.steps=50",
            "passes once: leave out training.budget",
        ),
        ("run --set training.budget.steps=50 --scale smoke", "a budget replaces them"),
        ("run --set training.budget.steps=50 --set training.patience=2", "choose one"),
        ("run --method gdumb --set training.budget.steps=50", "leave out training.budget"),
        ("run --method gdumb --set training.patience=2", "leave out training.patience"),
        ("run --method gdumb --set training.updates_per_batch=2", "training.updates_per_batch"),
        ("run --set training.patience=0", "training.patience.epochs"),
        ("run --set training.patience=1.5", "training.patience.epochs"),
        ("run --set training.patience=true", "training.patience"),
        ("run --epochs 1 --set training.patience=2", "2 epochs or more"),
        ('run --set training.patience={"epochs":2,"validation":1}', "patience.validation"),
        (
            "run --set training.patience=2 --set benchmark.train_per_class=1",
            "leaves no training image in a class of 1",
        ),
        ("run --set training.updates_per_batch=0", "training.updates_per_batch"),
        ("run --set training.optimizer=adma", "did you mean 'adam'"),
        ("run --set training.schedule=cosin", "did you mean 'cosine'"),
        ("run --set training.clip.size=1", "Allowed: norm, value"),
        ("run --import missing.py", "cannot import"),
        ("run --set training=3", "training: expected fields and their values, but got 3"),
        ("run --set regularizers.lider.stages=block1", "stages: expected a list, but got 'block1'"),
        ("run --tasks 10 --set benchmark.train_per_class=1", "task 1 has a single training image"),
        ("pretrain --benchmark synthetic --out full/file/w.pt", "cannot write full/file/w.pt"),
        ("pretrain --benchmark synthetic --out ./full", "cannot write full"),
        ("run --buffer 100000000000000", "not enough memory"),
        (
            "run --backbone mlp --lider --set regularizers.lider.estimator=spatial",
            'estimator="batch"',
        ),
        ("run --out full", "--force"),
        ("run --checkpoint-every soon", "like 30s, 5m or 1h"),
        ("run --on-nonfinite maybe", "'stop' or 'skip'"),
        ("run --method finetune --set memory.poison=0.5", "finetune has no memory"),
        (f"run --set benchmark.train_per_class={10**30}", "benchmark.train_per_class"),
        (f"run --regularizer ssgd --set regularizers.ssgd.batch_size={10**30}", "batch_size ≥ 2"),
        ("run --benchmark folder:~nobody-of-that-name/x", "unknown home folder"),
        ("data list --root ~nobody-of-that-name/x", "unknown home folder"),
        ("watch full --every inf", "every ≥ 0.1 and ≤ 86400"),
        ("watch full --every nan", "every ≥ 0.1 and ≤ 86400"),
        ("resume nowhere", "not a run's folder"),
        ("verify-resume --kills 0", "--kills"),
        ("verify-resume --out x", "takes no --out"),
        ("verify-resume --out=x --method er", "takes no --out"),
        ("verify-resume --resume", "takes no --resume"),
        ("verify-resume --force", "takes no --force"),
        ("verify-resume --benchmark synthetic --set training.budget.seconds=0.1", "by the clock"),
        ("verify-resume --method x --keep kept", "unknown method 'x'"),
        ("run --force --resume", "give one of them"),
        ("list studies x", "only presets are filtered"),
        ("ledger cells zzz", "no cell has 'zzz' in its name"),
        ("show full[/b]", "full[/b] is not a run's folder"),
        ("run --nonsense 3", "--nonsense"),
        ("list metods", "did you mean 'methods'"),
        ("show nowhere", "not a run's folder"),
        (f"show {'x' * 300}", "File name too long"),
        (f"run --out {'x' * 300}", "File name too long"),
        (f"run --benchmark folder:{'x' * 300} --out x", "the name is too long"),
        ("predict nowhere a.png", "not a run's folder"),
        ("frobnicate", "frobnicate"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(lider, tmp_path: Path, arguments, says) -> None:
    (tmp_path / "typo.yaml").write_text("trainign: {lr: 1}")
    (tmp_path / "broken.yaml").write_text("a: [1")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    before = sorted(tmp_path.rglob("*"))
    code, out, err = lider(*arguments.split())
    assert code == 2
    assert out == ""
    assert says in err
    assert err.startswith("lider: ")
    assert err.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before  # nothing half-written


@pytest.mark.parametrize(
    "text",
    ["regularizers: [lider]", "method: 3", "method: [a]", "memory: null", "training: 5"],
)
def test_a_section_of_the_wrong_kind_is_refused(lider, tmp_path: Path, text: str) -> None:
    (tmp_path / "c.yaml").write_text(text)
    code, _, err = lider("run", "--config", "c.yaml", "--epochs", "1", "--out", "x")
    assert code == 2, err
    assert err.count("\n") == 1
    assert not (tmp_path / "x").exists()
