"""Commands that train: run, resume, verify-resume, pretrain, demo."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import UserError, unknown
from .shared import RunArgument, given, new_console

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..experiments.build import Run
    from ..experiments.config import RunConfig
    from ..experiments.run import Existing

app = typer.Typer()


@app.command(
    epilog="Example: lider run --method er-ace --lider --buffer 100 --seed 0 --out runs/x",
)
def run(
    preset: Annotated[
        str | None, typer.Option(help="An experiment of the paper: lider list presets.")
    ] = None,
    scale: Annotated[
        str | None, typer.Option(help="Make it smaller: smoke, cpu, or paper (as it is).")
    ] = None,
    benchmark: Annotated[
        str | None, typer.Option(help="What to learn: lider list benchmarks.")
    ] = None,
    method: Annotated[str | None, typer.Option(help="How: lider list methods.")] = None,
    lider: Annotated[
        bool, typer.Option("--lider", help="Add LiDER (--regularizer lider).")
    ] = False,
    lider_alpha: Annotated[float | None, typer.Option(help="Weight of |λ − c| (Eq. 9).")] = None,
    lider_beta: Annotated[float | None, typer.Option(help="Weight of |λ| (Eq. 9).")] = None,
    lider_on: Annotated[
        str | None, typer.Option(help="What LiDER hears: replay, or stream (ablation).")
    ] = None,
    lider_draw: Annotated[
        str | None, typer.Option(help="reuse the replay passes, or draw fresh (as released).")
    ] = None,
    lider_targets: Annotated[
        str | None, typer.Option(help="learned targets, or fixed ones (ablation).")
    ] = None,
    regularizer: Annotated[
        list[str] | None,
        typer.Option(help="Add a regularizer, repeatable: lider list regularizers."),
    ] = None,
    buffer: Annotated[int | None, typer.Option(help="Samples in memory.")] = None,
    memory_storage: Annotated[
        str | None, typer.Option(help="Where the memory's images are: ram, or disk.")
    ] = None,
    memory_device: Annotated[
        str | None, typer.Option(help="Device of a memory in RAM; by default the network's.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Epochs per task.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Samples of the stream per step.")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate.")] = None,
    backbone: Annotated[
        str | None,
        typer.Option(help="Network: lider list backbones, or timm:NAME, torchvision:NAME."),
    ] = None,
    width: Annotated[int | None, typer.Option(help="The network's width.")] = None,
    pretrained: Annotated[
        str | None, typer.Option(help="Weights to start from: a file, imagenet, or a name.")
    ] = None,
    tasks: Annotated[int | None, typer.Option(help="Number of tasks.")] = None,
    class_order: Annotated[
        str | None, typer.Option(help="natural, shuffled, or all classes like 3,1,2,0.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of everything random.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, … or auto.")] = None,
    stream_device: Annotated[
        str | None, typer.Option(help="Keep the benchmark's images on this device.")
    ] = None,
    precision: Annotated[
        str | None, typer.Option(help="Of training passes: float32, bfloat16 or float16.")
    ] = None,
    compile_: Annotated[
        bool, typer.Option("--compile", help="Compile the network (torch.compile).")
    ] = False,
    evaluate: Annotated[
        str | None, typer.Option(help="After every task, or after the last only: every, last.")
    ] = None,
    threads: Annotated[int | None, typer.Option(help="CPU threads (of each process).")] = None,
    devices: Annotated[
        int | None, typer.Option(help="Share the run among so many devices, or CPU processes.")
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option(help="ddp, or ddp-syncbn: BatchNorm over the rows of all devices."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="Take the values of a YAML file (a run's config.yaml).")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Any field, repeatable: --set training.momentum=0.9"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The run's folder; by default one below runs/.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier run there.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an unfinished run there, if there is one.")
    ] = False,
    checkpoint_every: Annotated[
        str | None, typer.Option(help="Steps (200) or time (30s, 5m) between checkpoints.")
    ] = None,
    on_nonfinite: Annotated[
        str | None, typer.Option(help="stop, or skip steps whose loss is not finite.")
    ] = None,
    tracker: Annotated[
        list[str] | None,
        typer.Option(help="Also log to tensorboard, wandb or mlflow; repeatable."),
    ] = None,
    deterministic: Annotated[
        bool | None,
        typer.Option(help="Allow only operations that repeat to the bit (default on the CPU)."),
    ] = None,
) -> None:
    """Train a method on a benchmark, evaluate it, and write a run's folder."""
    from ..experiments.config import make_config, read_yaml
    from ..experiments.place import started_with

    options: dict[str, Any] = {
        "benchmark": given(
            name=benchmark,
            tasks=tasks,
            class_order=_class_order(class_order),
            device=stream_device,
        ),
        "method": given(name=method),
        "backbone": given(name=backbone, width=width),
        "memory": given(size=buffer, storage=memory_storage, device=memory_device),
        "training": given(epochs=epochs, batch_size=batch_size, lr=lr),
        "regularizers": {name: {} for name in regularizer or []},
        **given(
            preset=preset,
            scale=scale,
            pretrained=pretrained,
            seed=seed,
            device=device,
            precision=precision,
            compile="inductor" if compile_ else None,
            evaluate=evaluate,
            devices=started_with() if devices is None else devices,
            strategy=strategy,
            threads=threads,
            deterministic=deterministic,
            checkpoint_every=checkpoint_every,
            on_nonfinite=on_nonfinite,
            tracker=tracker or None,
        ),
    }
    of_lider = given(
        alpha=lider_alpha,
        beta=lider_beta,
        on=lider_on,
        draw=lider_draw,
        learn_targets=_learned(lider_targets),
    )
    if lider or of_lider:
        options["regularizers"]["lider"] = of_lider
    layers = [read_yaml(config)] if config else []
    # an empty section must not stand in for whatever a file says there
    options = {field: value for field, value in options.items() if value != {}}
    complete = make_config(*layers, options, assigned(set_))
    name = "-".join([complete.benchmark.name, complete.method.name, *complete.regularizers])
    out = out or Path("runs") / f"{complete.preset or name}-seed{complete.seed}"
    _run(complete, out, "replace" if force else "resume" if resume else None)


@app.command(epilog="Example: lider pretrain --benchmark split-tinyimagenet --size 32")
def pretrain(
    benchmark: Annotated[
        str, typer.Option(help="What to learn: lider list benchmarks.")
    ] = "split-tinyimagenet",
    size: Annotated[int | None, typer.Option(help="Side of the images.")] = None,
    backbone: Annotated[str, typer.Option(help="Network: lider list backbones.")] = "resnet18",
    width: Annotated[int | None, typer.Option(help="The network's width.")] = None,
    scale: Annotated[str | None, typer.Option(help="Make it smaller: smoke or cpu.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Epochs (50).")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Samples per step.")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate (0.1).")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of everything random.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, … or auto.")] = None,
    threads: Annotated[int | None, typer.Option(help="CPU threads.")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Any field, repeatable.")] = None,
    out: Annotated[
        str | None, typer.Option(help="A file, or a name to keep the weights under.")
    ] = None,
    run: Annotated[Path | None, typer.Option(help="The folder of the run that trains.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an earlier run and weights of that name.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an unfinished run there, if there is one.")
    ] = False,
) -> None:
    """Train on all of a benchmark at once, by the paper's recipe; keep the weights for other runs.

    Use them with: lider run --pretrained NAME_OR_FILE
    """
    from ..experiments.pretrain import check_place, export_weights, name_of, pretraining
    from ..experiments.weights import is_file_name, kept_weights

    options = {
        "benchmark": given(name=benchmark, size=size),
        "backbone": given(name=backbone, width=width),
        "training": given(epochs=epochs, batch_size=batch_size, lr=lr),
        **given(scale=scale, seed=seed, device=device, threads=threads),
    }
    config = pretraining(options, assigned(set_))
    out = out or name_of(config)
    path = Path(out) if is_file_name(out) else kept_weights(out)
    run = run or Path("runs") / f"pretrain-{path.stem}"
    check_place(out, path, run, replace=force, resume=resume)
    if not _run(config, run, "replace" if force else "resume" if resume else None):
        return
    export_weights(run, path, replace=force)
    new_console().print(
        f"wrote {path}; use it with: lider run --pretrained {out}", soft_wrap=True, highlight=False
    )


def assigned(texts: list[str] | None) -> dict[str, Any]:
    """The values that --set gives."""
    from ..experiments.config import merge, parse_assignment

    assigned: dict[str, Any] = {}
    for text in texts or []:
        assigned = merge(assigned, parse_assignment(text))
    return assigned


def _ask(out: Path) -> Existing:
    """What to do about an unfinished run, if nobody said."""
    from ..experiments.folder import RunFolder

    folder = RunFolder(out)
    if not folder.begun or folder.finished:
        return "refuse"
    if sys.stdin.isatty() and typer.confirm(f"{out} holds an unfinished run: resume it?"):
        return "resume"
    raise UserError(
        f"{out} holds an unfinished run: --resume to go on with it, --force to start again"
    )


def _run(config: RunConfig, out: Path, existing: Existing | None) -> bool:
    """existing: None asks, if need be. Returns whether this process leads the run, if several
    share it: the others say nothing and write nothing."""
    from ..experiments.place import find_place

    leads = find_place(config.devices).leads
    existing = existing or (_ask(out) if leads else "refuse")
    from ..experiments.run import run as execute
    from ..report.figures import draw_accuracy_matrix
    from ..report.progress import ProgressDisplay
    from ..report.tables import duration, metrics, unmeasured

    if not leads:
        execute(config, out, existing=existing)
        return False
    console, progress = new_console(), new_console(stderr=True)
    started: list[Run] = []

    def on_start(work: Run) -> None:
        started.append(work)
        for line in _settled(work):
            progress.print(line, soft_wrap=True, highlight=False)

    with ProgressDisplay(progress) as display:
        result = execute(config, out, existing=existing, listener=display, on_start=on_start)
    if not (out / "accuracy.png").is_file():
        draw_accuracy_matrix(result, out / "accuracy.png")
    console.print(metrics(result))
    if note := unmeasured(result):
        console.print(note, soft_wrap=True, highlight=False)
    done = f"wrote {out} in {duration(result)}"
    if not started:
        done = f"{out} had finished already: nothing was done"
    console.print(done, soft_wrap=True, highlight=False)
    return True


def _settled(work: Run) -> Iterator[str]:
    """Which stages are regularised, whether they were named or found."""
    from ..experiments.run import resolved

    for name, found in resolved(work).items():
        left_out = ", ".join(found["left_out"])
        rest = f"; nothing to regularise in {left_out}" if left_out else ""
        yield f"{name} regularises {' → '.join(found['chain'])}{rest}"


@app.command(epilog="Example: lider resume runs/x")
def resume(
    run: RunArgument,
    on_nonfinite: Annotated[
        str | None, typer.Option(help="From now on: stop, or skip steps that are not finite.")
    ] = None,
    checkpoint_every: Annotated[
        str | None, typer.Option(help="From now on: steps (200) or time (30s, 5m).")
    ] = None,
    tracker: Annotated[
        list[str] | None, typer.Option(help="From now on: tensorboard, wandb or mlflow.")
    ] = None,
    devices: Annotated[
        int | None, typer.Option(help="From now on: shared among so many devices.")
    ] = None,
    strategy: Annotated[str | None, typer.Option(help="From now on: ddp, or ddp-syncbn.")] = None,
) -> None:
    """Go on with an interrupted run; the result is the same as if it had never stopped."""
    from ..experiments.config import make_config
    from ..experiments.folder import RunFolder
    from ..experiments.place import started_with

    folder = RunFolder.open(run)
    changes = given(
        on_nonfinite=on_nonfinite,
        checkpoint_every=checkpoint_every,
        tracker=tracker or None,
        devices=started_with() if devices is None else devices,
        strategy=strategy,
    )
    config = folder.config()
    if changes:
        config = make_config(config.model_dump(mode="json"), changes)
    _run(config, run, "resume")


@app.command(
    epilog="Example: lider verify-resume --method er-ace --lider --kills 5",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def verify_resume(
    context: typer.Context,
    kills: Annotated[int, typer.Option(min=1, help="How often to kill the run.")] = 5,
    keep: Annotated[Path | None, typer.Option(help="Keep the runs in this (new) folder.")] = None,
) -> None:
    """Prove that a run survives SIGKILL at random moments, to the bit.

    Takes all options of `lider run` but --out, --force and --resume. Exit code 0: no difference; 1:
    there is one.
    """
    for option in ("--out", "--force", "--resume"):
        if any(word.partition("=")[0] == option for word in context.args):
            raise UserError(
                f"verify-resume makes folders of its own and takes no {option}: leave it out, or "
                "keep the runs with --keep FOLDER"
            )
    import tempfile

    from ..experiments.verify import verify_resume as verify

    if keep is not None and keep.exists():
        raise UserError(f"{keep} exists: choose another folder for --keep")
    with tempfile.TemporaryDirectory() as temporary:
        folder = keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        verdict = verify(context.args, kills, folder, lambda text: print(text, flush=True))
    for difference in verdict.differences[:20]:
        print(f"differs: {difference}")
    same = "nothing differs" if not verdict.differences else f"{len(verdict.differences)} differ"
    print(f"{verdict.kills} kills in {verdict.runs} run(s), weights to metrics compared: {same}")
    if verdict.differences:
        raise typer.Exit(1)


@app.command(epilog="Example: lider demo --out demo")
def demo(
    out: Annotated[Path, typer.Option(help="Where to write.")] = Path("demo"),
    seeds: Annotated[int, typer.Option(min=1, help="How many runs of each.")] = 3,
) -> None:
    """Compare finetune, er-ace, er-ace + LiDER and joint on the embedded benchmark."""
    from ..experiments.demo import demo_runs
    from ..experiments.run import run as execute
    from ..report.figures import draw_accuracy_matrix, draw_comparison
    from ..report.page import write_report
    from ..report.progress import ProgressDisplay
    from ..report.records import read_all
    from ..report.tables import comparison

    runs, folders = list(demo_runs(seeds)), []
    results: dict[str, list[dict[str, Any]]] = {}
    with ProgressDisplay(new_console(stderr=True), len(runs)) as display:
        for label, config in runs:
            folder = out / f"{label.replace(' + ', '-').lower()}-seed{config.seed}"
            folders.append(folder.name)
            display.begin(f"{label}, seed {config.seed}")
            result = execute(config, folder, existing="replace", listener=display)
            draw_accuracy_matrix(result, folder / "accuracy.png")
            results.setdefault(label, []).append(result)
            display.finish()
    title = f"split-digits, buffer {runs[0][1].memory.size}, class-incremental"
    draw_comparison(results, out / "demo.png", title)
    console = new_console()
    console.print(f"{title}: mean ± std", highlight=False)
    console.print(comparison(results))
    records, _ = read_all([out / name for name in folders])
    write_report(records, out / "report.html", title="The demo: split-digits")
    console.print(
        f"wrote {out}/ (run folders), {out / 'demo.png'} and {out / 'report.html'}: open it in a "
        "browser",
        soft_wrap=True,
    )


def _class_order(text: str | None) -> Any:
    if text is None or text in ("natural", "shuffled"):
        return text
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UserError(
            f"--class-order takes natural, shuffled, or all classes like 3,1,2,0, not {text!r}"
        ) from None


def _learned(text: str | None) -> bool | None:
    if text not in (None, "learned", "fixed"):
        raise unknown("--lider-targets", text, ["learned", "fixed"])
    return None if text is None else text == "learned"
