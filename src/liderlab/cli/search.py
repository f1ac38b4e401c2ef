"""`lider search`: hyperparameters by validation accuracy."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Literal

from . import option_types as o
from .commands import command, typed_command
from .option_types import Json, assigned, check_folder, given, option
from .output import new_console, print_json

VALIDATION = 0.1


@command(
    "lider search --preset cifar100-500-er-ace-lider --scale cpu --space paper",
    "lider search --config my.yaml --space space.yaml --trials 20 --workers 2",
    "lider run --config runs/search/best.yaml",
)
def search(
    preset: o.Preset = None,
    scale: o.Scale = None,
    imports: o.Imports = None,
    config: o.Config = None,
    set_: o.Set = None,
    space: Annotated[
        str, option("A YAML file, or paper: the values in the paper's tables.", metavar="FILE")
    ] = "paper",
    trials: Annotated[
        int, option("Number of trials; a grid has no more than its points.", min=1)
    ] = 50,
    sampler: Annotated[Literal["tpe", "grid"], option("tpe, or grid.", metavar="SAMPLER")] = "tpe",
    validation: Annotated[
        float | None,
        option(
            "Share of the training images held out.",
            default=f"benchmark.validation, or {VALIDATION}",
            min=0.01,
            max=0.9,
        ),
    ] = None,
    seed: Annotated[int, option("Seed of the sampler.", min=0)] = 0,
    out: Annotated[Path, option("The search's folder.", metavar="FOLDER")] = Path("runs/search"),
    storage: Annotated[
        str | None,
        option("URL of a database (postgresql://…).", metavar="URL", default="a file in --out"),
    ] = None,
    study: Annotated[
        str, option("Name of the Optuna study in the storage.", metavar="NAME")
    ] = "search",
    workers: o.Workers = None,
    engine: o.Engine = "local",
    address: o.Address = None,
    slurm: o.Slurm = None,
    as_json: Json = False,
) -> None:
    """Search for hyperparameters, by accuracy on a validation split.

    Reads what lider run reads, and --space. Writes a run folder per trial, search.db (without
    --storage) and best.yaml into --out. Prints the best trials, how much each field matters, and
    the command that uses the best.
    """
    from ..config.merging import make_config
    from ..config.yaml_values import read_yaml
    from ..files import write_atomically
    from ..sweeps.engine import check_engine, default_workers, make_engine, threads_each
    from ..sweeps.hyperparameter_search import Search
    from ..sweeps.search_space import paper_space, read_space

    check_engine(engine, workers, address, slurm)
    check_folder(out)
    files = [read_yaml(config)] if config else []
    layer = given(preset=preset, scale=scale, imports=imports or None)
    base = make_config(*files, layer, assigned(set_))
    chosen = paper_space(base) if space == "paper" else read_space(read_yaml(Path(space)))
    workers = workers or (default_workers(base.device) if engine == "local" else 1)
    work = Search(
        base,
        chosen,
        out,
        trials,
        storage,
        study,
        sampler,
        validation or base.benchmark.validation or VALIDATION,
        seed,
        threads=threads_each(engine, workers),
    )
    work.check(None if engine == "local" else "cpu")
    work.run(
        make_engine(engine, workers, address, slurm, out),
        workers,
        lambda text: print(text, file=sys.stderr, flush=True),
        typed_command(),
    )
    accuracy, best = work.best()
    write_atomically(out / "best.yaml", best.as_yaml().encode())
    rows, importances, setting = work.trial_rows(), work.importances(), work.setting()
    if as_json:
        tree = {"accuracy": accuracy, "setting": setting, "config": best.model_dump(mode="json")}
        print_json({**tree, "importances": importances, "trials": rows})
        return
    from ..report.terminal.search_table import search_table, trial_counts

    new_console().print(search_table(rows, importances))
    if setting:
        print(f"accuracy: {setting}, on training images held back for validation")
    file = out / "best.yaml"
    print(f"{trial_counts(rows)}; wrote {file}. Use it with:")
    print(f"  {shlex.join(['lider', 'run', '--config', str(file)])}")
