"""The command line: parse, call, print. Nothing heavy is imported before it is needed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import __version__
from .errors import RunFailed, UserError, unknown

if TYPE_CHECKING:
    from rich.console import Console

    from .experiments.config import RunConfig
    from .experiments.run import Existing
    from .registry import Registry

app = typer.Typer(
    name="lider",
    help="A lab for rehearsal-based continual learning, with LiDER at its heart.",
    epilog="Start with: lider demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

INTERRUPTED = 130
_said: list[str] = []  # what the user has been told already
RunArgument = Annotated[Path, typer.Argument(help="A run's folder.", show_default=False)]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def main() -> None:
    """Run the command; a mistake of the user's is one sentence and exit code 2."""
    from typer.exceptions import TyperException

    try:
        code = app(standalone_mode=False)
        if code == INTERRUPTED and not _said:  # Ctrl-C, which typer turns into this code
            _complain("interrupted")
    except UserError as error:
        code = _complain(str(error))
    except RunFailed as error:
        _complain(str(error))
        code = 1
    except TyperException as error:
        code = _complain(error.format_message())
    sys.exit(code if isinstance(code, int) else 0)


def _complain(message: str) -> int:
    _said.append(message)
    print(f"lider: {' '.join(message.split())}", file=sys.stderr)
    return 2


@app.callback(invoke_without_command=True)
def _top(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        print(f"lider {__version__}")
        raise typer.Exit


@app.command(
    epilog="Example: lider run --method er-ace --lider --buffer 100 --seed 0 --out runs/x",
)
def run(
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
    epochs: Annotated[int | None, typer.Option(help="Epochs per task.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Samples of the stream per step.")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate.")] = None,
    backbone: Annotated[str | None, typer.Option(help="Network: lider list backbones.")] = None,
    width: Annotated[int | None, typer.Option(help="The network's width.")] = None,
    tasks: Annotated[int | None, typer.Option(help="Number of tasks.")] = None,
    class_order: Annotated[
        str | None, typer.Option(help="natural, shuffled, or all classes like 3,1,2,0.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of everything random.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, … or auto.")] = None,
    threads: Annotated[int | None, typer.Option(help="CPU threads.")] = None,
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
    deterministic: Annotated[
        bool | None,
        typer.Option(help="Allow only operations that repeat to the bit (default on the CPU)."),
    ] = None,
) -> None:
    """Train a method on a benchmark, evaluate it, and write a run's folder."""
    from .experiments.config import make_config, merge, parse_assignment, read_yaml

    options: dict[str, Any] = {
        "benchmark": _given(name=benchmark, tasks=tasks, class_order=_class_order(class_order)),
        "method": _given(name=method),
        "backbone": _given(name=backbone, width=width),
        "memory": _given(size=buffer),
        "training": _given(epochs=epochs, batch_size=batch_size, lr=lr),
        "regularizers": {name: {} for name in regularizer or []},
        **_given(
            seed=seed,
            device=device,
            threads=threads,
            deterministic=deterministic,
            checkpoint_every=checkpoint_every,
            on_nonfinite=on_nonfinite,
        ),
    }
    of_lider = _given(
        alpha=lider_alpha,
        beta=lider_beta,
        on=lider_on,
        draw=lider_draw,
        learn_targets=_learned(lider_targets),
    )
    if lider or of_lider:
        options["regularizers"]["lider"] = of_lider
    layers = [read_yaml(config)] if config else []
    assigned: dict[str, Any] = {}
    for text in set_ or []:
        assigned = merge(assigned, parse_assignment(text))
    complete = make_config(*layers, options, assigned)
    name = "-".join([complete.benchmark.name, complete.method.name, *complete.regularizers])
    out = out or Path("runs") / f"{name}-seed{complete.seed}"
    _run(complete, out, "replace" if force else "resume" if resume else _ask(out))


def _ask(out: Path) -> Existing:
    """What to do about an unfinished run, if nobody said."""
    from .experiments.folder import RunFolder

    folder = RunFolder(out)
    if not folder.begun or folder.finished:
        return "refuse"
    if sys.stdin.isatty() and typer.confirm(f"{out} holds an unfinished run: resume it?"):
        return "resume"
    raise UserError(
        f"{out} holds an unfinished run: --resume to go on with it, --force to start again"
    )


def _run(config: RunConfig, out: Path, existing: Existing) -> None:
    from .experiments.interrupt import Stopped
    from .experiments.run import run as execute
    from .report.figures import draw_accuracy_matrix
    from .report.progress import ProgressDisplay
    from .report.tables import metrics

    console = _console()
    with ProgressDisplay(_console(stderr=True)) as display:
        try:
            result = execute(config, out, existing=existing, listener=display)
        except Stopped as stopped:
            _complain(str(stopped))
            raise typer.Exit(stopped.exit_code) from None
    draw_accuracy_matrix(result, out / "accuracy.png")
    console.print(metrics(result))
    console.print(f"wrote {out} in {result['seconds']:.1f} s", soft_wrap=True, highlight=False)


@app.command(epilog="Example: lider resume runs/x")
def resume(run: RunArgument) -> None:
    """Go on with an interrupted run; the result is the same as if it had never stopped."""
    from .experiments.folder import RunFolder

    folder = RunFolder.open(run)
    if folder.finished:
        print(f"{run} has finished already: there is nothing to resume")
        return
    _run(folder.config(), run, "resume")


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

    Takes all options of `lider run` but --out. Exit code 0: no difference; 1: there is one.
    """
    import tempfile

    from .experiments.verify import verify_resume as verify

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
    from .experiments.demo import demo_runs
    from .experiments.run import run as execute
    from .report.figures import draw_accuracy_matrix, draw_comparison
    from .report.progress import ProgressDisplay
    from .report.tables import comparison

    runs = list(demo_runs(seeds))
    results: dict[str, list[dict[str, Any]]] = {}
    with ProgressDisplay(_console(stderr=True), len(runs)) as display:
        for label, config in runs:
            folder = out / f"{label.replace(' + ', '-').lower()}-seed{config.seed}"
            display.begin(f"{label}, seed {config.seed}")
            result = execute(config, folder, existing="replace", listener=display)
            draw_accuracy_matrix(result, folder / "accuracy.png")
            results.setdefault(label, []).append(result)
            display.finish()
    title = f"split-digits, buffer {runs[0][1].memory.size}, class-incremental"
    draw_comparison(results, out / "demo.png", title)
    console = _console()
    console.print(f"{title}: mean ± std", highlight=False)
    console.print(comparison(results))
    console.print(f"wrote {out}/ (run folders) and {out / 'demo.png'}", soft_wrap=True)


@app.command("list", epilog="Example: lider list methods --json")
def list_(
    what: Annotated[
        str | None,
        typer.Argument(help="methods, benchmarks, backbones or regularizers; all by default."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List what there is to choose from."""
    registries = _registries()
    if what is not None and what not in registries:
        raise unknown("list", what, registries)
    chosen = registries if what is None else {what: registries[what]}
    if as_json:
        tree = {
            kind: [{"name": name, "summary": e.summary, **e.facts} for name, e in registry.items()]
            for kind, registry in chosen.items()
        }
        print(json.dumps(tree if what is None else tree[what], indent=1, ensure_ascii=False))
        return
    for kind, registry in chosen.items():
        _console().print(_listing(kind, registry))


def _listing(kind: str, registry: Registry) -> Any:
    from rich.table import Table

    table = Table(title=kind, title_justify="left", box=None, padding=(0, 2, 0, 0))
    table.add_column("name", style="bold", no_wrap=True)
    facts = {"methods": ("policy", "year"), "regularizers": ("year",), "benchmarks": ("tasks",)}
    shown = facts.get(kind, ())
    for fact in shown:
        table.add_column("memory" if fact == "policy" else fact)
    table.add_column("")
    for name, entry in registry.items():
        cells = [str(entry.facts.get(fact) or "–") for fact in shown]
        paper = f" ({entry.facts['paper']})" if entry.facts.get("paper") else ""
        table.add_row(name, *cells, entry.summary + paper)
    return table


def _registries() -> dict[str, Registry]:
    from .backbones import BACKBONES
    from .methods import METHODS
    from .regularizers import REGULARIZERS
    from .streams import BENCHMARKS

    return {
        "methods": METHODS,
        "benchmarks": BENCHMARKS,
        "backbones": BACKBONES,
        "regularizers": REGULARIZERS,
    }


@app.command(epilog="Example: lider show runs/x")
def show(run: RunArgument, as_json: JsonOption = False) -> None:
    """Show a finished run: its choices, its metrics, its accuracy matrix."""
    from .experiments.folder import RunFolder
    from .report.tables import accuracy_matrix, metrics

    result = RunFolder.open(run).result()
    if as_json:
        print(json.dumps(result, indent=1, ensure_ascii=False))
        return
    console, config = _console(), result["config"]
    regularizers = "".join(f" + {name}" for name in config["regularizers"])
    console.print(
        f"{run}: {config['method']['name']}{regularizers} on {config['benchmark']['name']}, "
        f"{config['backbone']['name']}, buffer {config['memory']['size']}, seed {config['seed']}, "
        f"{result['seconds']:.1f} s",
        highlight=False,
    )
    console.print(metrics(result))
    console.print(accuracy_matrix(result))


@app.command(epilog="Example: lider predict runs/x photo.png")
def predict(
    run: RunArgument,
    images: Annotated[list[Path], typer.Argument(help="Image files.", show_default=False)],
    as_json: JsonOption = False,
) -> None:
    """Print the class of each image, and how sure the run's network is of it."""
    from .experiments.load import load

    network = load(run)
    best = network.probabilities(images).max(1)
    rows = [
        {"image": str(image), "class": network.names[int(c)], "probability": round(float(p), 4)}
        for image, p, c in zip(images, best.values, best.indices, strict=True)
    ]
    if as_json:
        print(json.dumps(rows, indent=1, ensure_ascii=False))
        return
    for row in rows:
        print(f"{row['image']}\t{row['class']}\t{row['probability']:.3f}")


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


def _given(**options: Any) -> dict[str, Any]:
    """Those options that stand on the command line."""
    return {name: value for name, value in options.items() if value is not None}


def _console(stderr: bool = False) -> Console:
    from rich.console import Console

    return Console(stderr=stderr)


if __name__ == "__main__":
    main()
