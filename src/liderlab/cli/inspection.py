"""Commands that look: list, show, predict."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import UserError, unknown
from . import completion
from .help_pages import LOOK, START, USE, examples
from .shared import JsonOption, RunArgument, new_console, print_json

if TYPE_CHECKING:
    from ..registry import Registry

app = typer.Typer()
REGISTRIES = ("methods", "benchmarks", "backbones", "regularizers")


@app.command(
    "list",
    rich_help_panel=START,
    epilog=examples("lider list", "lider list methods --json", "lider list presets cifar100 lider"),
)
def list_(
    what: Annotated[
        str | None,
        typer.Argument(
            help="methods, benchmarks, backbones or regularizers (without it, all of these), "
            "presets, or studies.",
            autocompletion=completion.one_of(*REGISTRIES, "presets", "studies"),
        ),
    ] = None,
    words: Annotated[
        list[str] | None, typer.Argument(help="Only presets with these words in their names.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List methods, benchmarks, networks, presets, studies.

    Reads and writes no files.
    """
    if what == "presets":
        _list_presets(words or [], as_json)
        return
    if words:
        raise UserError(f"only presets are filtered by words, not {what}")
    if what == "studies":
        from .study import list_studies

        list_studies(as_json)
        return
    registries = _registries()
    if what is not None and what not in registries:
        raise unknown("list", what, [*registries, "presets", "studies"])
    chosen = registries if what is None else {what: registries[what]}
    if as_json:
        tree = {
            kind: [
                {"name": name, "summary": entry.summary, **registry.facts(name)}
                for name, entry in registry.items()
            ]
            for kind, registry in chosen.items()
        }
        print_json(tree if what is None else tree[what])
        return
    for kind, registry in chosen.items():
        new_console().print(_listing(kind, registry))


def _list_presets(words: list[str], as_json: bool) -> None:
    from rich.table import Table

    from ..config.presets import presets

    chosen = [p for p in presets().values() if all(word in p.name for word in words)]
    if not chosen:
        wanted = " and ".join(map(repr, words))
        raise UserError(f"no preset has {wanted} in its name: lider list presets lists all")
    if as_json:
        print_json([vars(p) for p in chosen])
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("preset", "lr", "LiDER α, β", "paper"):
        table.add_column(column, overflow="fold")  # the longest rows take 80 columns
    for preset in chosen:
        lider = preset.config["regularizers"].get("lider")
        weights = f"{lider['alpha']}, {lider['beta']}" if lider else "–"
        lr = str(preset.config["training"].get("lr", "–"))
        table.add_row(preset.name, lr, weights, "yes" if preset.printed else "no")
    new_console().print(table)


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
        known = registry.facts(name)
        cells = [str(known.get(fact) or "–") for fact in shown]
        paper = f" ({known['paper']})" if known.get("paper") else ""
        table.add_row(name, *cells, entry.summary + paper)
    return table


def _registries() -> dict[str, Registry]:
    from ..backbones import BACKBONES
    from ..methods import METHODS
    from ..regularizers import REGULARIZERS
    from ..streams import BENCHMARKS

    return dict(zip(REGISTRIES, (METHODS, BENCHMARKS, BACKBONES, REGULARIZERS), strict=True))


@app.command(rich_help_panel=LOOK, epilog=examples("lider show runs/x", "lider show runs/x --json"))
def show(run: RunArgument, as_json: JsonOption = False) -> None:
    """Show a finished run: its choices, metrics, accuracy matrix.

    Reads result.json in RUN, which --json prints as it is; writes nothing.
    """
    from ..report.terminal.tables import accuracy_matrix, duration, metrics, origin, remarks
    from ..runs.folder import RunFolder

    result = RunFolder.open(run).result()
    if as_json:
        print_json(result)
        return
    console, config = new_console(), result["config"]
    scale = f", scale {result['scale']['name']}" if result.get("scale") else ""
    regularizers = "".join(f" + {name}" for name in config["regularizers"])
    console.print(
        f"{run}: {config['method']['name']}{regularizers} on {config['benchmark']['name']}, "
        f"{config['backbone']['name']}, buffer {config['memory']['size']}, seed {config['seed']}, "
        f"{duration(result)}{scale}",
        highlight=False,
    )
    for line in origin(result):
        console.print(line, highlight=False)
    console.print(metrics(result))
    for remark in remarks(result):
        console.print(remark, highlight=False)
    console.print(accuracy_matrix(result))


@app.command(
    rich_help_panel=USE,
    epilog=examples("lider predict runs/x photo.png", "lider predict runs/x a.png b.png --json"),
)
def predict(
    run: RunArgument,
    images: Annotated[list[Path], typer.Argument(help="Image files.", show_default=False)],
    as_json: JsonOption = False,
) -> None:
    """Print the class of each image, and how sure the network is.

    Reads result.json and the last checkpoint in RUN, and the images, which may have any size;
    writes nothing. Prints a line per image: file, class, probability, separated by tabs.
    """
    from ..runs.load import load

    network = load(run)
    best = network.probabilities(images).max(1)
    rows = [
        {"image": str(image), "class": network.names[int(c)], "probability": round(float(p), 4)}
        for image, p, c in zip(images, best.values, best.indices, strict=True)
    ]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        print(f"{row['image']}\t{row['class']}\t{row['probability']:.3f}")
