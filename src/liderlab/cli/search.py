"""`lider search`: hyperparameters by validation accuracy."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import unknown
from . import completion
from .help_pages import MANY, examples
from .shared import (
    JsonOption,
    SetOption,
    given,
    new_console,
    print_json,
    refuse_file,
    this_command,
)
from .sweep import AddressOption, EngineOption, SlurmOption, WorkersOption
from .training_commands import assigned

app = typer.Typer()
VALIDATION = 0.1


@app.command(
    rich_help_panel=MANY,
    epilog=examples(
        "lider search --preset cifar100-500-er-ace-lider --scale cpu --space paper",
        "lider search --config my.yaml --space space.yaml --trials 20 --workers 2",
        "lider run --config runs/search/best.yaml",
    ),
)
def search(
    preset: Annotated[
        str | None,
        typer.Option(
            help="What to start from: lider list presets.",
            metavar="NAME",
            autocompletion=completion.presets,
        ),
    ] = None,
    scale: Annotated[
        str | None,
        typer.Option(
            help="Make it smaller: smoke or cpu.",
            metavar="SCALE",
            autocompletion=completion.scales,
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="Take the values of a YAML file.", metavar="FILE")
    ] = None,
    set_: SetOption = None,
    space: Annotated[
        str,
        typer.Option(
            help="A YAML file, or paper: the values in the paper's tables.", metavar="FILE"
        ),
    ] = "paper",
    trials: Annotated[
        int, typer.Option(min=1, help="How many in all; a grid has no more than its points.")
    ] = 50,
    sampler: Annotated[
        str,
        typer.Option(
            help="tpe, or grid.",
            metavar="SAMPLER",
            autocompletion=completion.one_of("tpe", "grid"),
        ),
    ] = "tpe",
    validation: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            max=0.9,
            help="Share of the training images held out.",
            show_default=f"benchmark.validation, or {VALIDATION}",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the sampler.")] = 0,
    out: Annotated[Path, typer.Option(help="The search's folder.", metavar="FOLDER")] = Path(
        "runs/search"
    ),
    storage: Annotated[
        str | None,
        typer.Option(
            help="An RDB's URL (postgresql://…).", metavar="URL", show_default="a file in --out"
        ),
    ] = None,
    study: Annotated[
        str, typer.Option(help="The study's name in the storage.", metavar="NAME")
    ] = "search",
    workers: WorkersOption = None,
    engine: EngineOption = "local",
    address: AddressOption = None,
    slurm: SlurmOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search for hyperparameters, by accuracy on a validation split.

    Reads what lider run reads, and --space. Writes a run's folder per trial, search.db (without
    --storage) and best.yaml, which it also prints, into --out.
    """
    from ..config.merging import make_config
    from ..config.yaml_values import read_yaml
    from ..files import write_atomically
    from ..sweeps.engine import check_engine, default_workers, make_engine, threads_each
    from ..sweeps.hyperparameter_search import Search
    from ..sweeps.search_space import paper_space, read_space

    check_engine(engine, workers, address, slurm)
    if sampler not in ("tpe", "grid"):
        raise unknown("--sampler", sampler, ["tpe", "grid"])
    refuse_file(out)
    layers: list[dict[str, Any]] = [read_yaml(config)] if config else []
    base = make_config(*layers, given(preset=preset, scale=scale), assigned(set_))
    chosen = paper_space(base) if space == "paper" else read_space(read_yaml(Path(space)))
    workers = workers or (default_workers(base.device) if engine == "local" else 1)
    console = new_console(stderr=True)
    work = Search(
        base,
        chosen,
        out,
        trials,
        storage,
        study,
        "grid" if sampler == "grid" else "tpe",
        validation or base.benchmark.validation or VALIDATION,
        seed,
        threads=threads_each(engine, workers),
    )
    work.check(None if engine == "local" else "cpu")
    work.run(
        make_engine(engine, workers, address, slurm, out),
        workers,
        lambda text: console.print(text, highlight=False, markup=False, soft_wrap=True),
        this_command(),
    )
    accuracy, best = work.best()
    text = best.as_yaml().encode()
    write_atomically(out / "best.yaml", text)
    if as_json:
        best_tree = best.model_dump(mode="json")
        print_json({"accuracy": accuracy, "config": best_tree, "trials": work.trial_rows()})
    else:
        print(text.decode(), end="")
    console.print(
        f"best validation accuracy {accuracy:.2f} %; wrote {out / 'best.yaml'}: "
        f"lider run --config {shlex.quote(str(out / 'best.yaml'))}",
        soft_wrap=True,
        highlight=False,
        markup=False,
    )
