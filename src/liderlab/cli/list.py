"""`lider list`: methods, benchmarks, networks, presets, studies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from ..errors import UserError, unknown
from .commands import command
from .option_types import Imports, Json, argument
from .output import new_console, print_json

if TYPE_CHECKING:
    from ..registry import Registry

REGISTRIES = ("methods", "benchmarks", "backbones", "regularizers")
KINDS = (*REGISTRIES, "presets", "studies")


@command("lider list", "lider list methods --json", "lider list presets cifar100 lider")
def list_(
    kind: Annotated[
        str | None,
        argument(
            "methods, benchmarks, backbones or regularizers (without it, all of these), "
            "presets, or studies.",
            values=KINDS,
        ),
    ] = None,
    words: Annotated[
        list[str] | None, argument("Only presets with these words in their names.")
    ] = None,
    imports: Imports = None,
    as_json: Json = False,
) -> None:
    """List methods, benchmarks, networks, presets, studies.

    Names that a file or an installed package has registered come with their origin. Reads the files
    of --import; writes no files.
    """
    if kind is not None and kind not in KINDS:
        raise unknown("list", kind, KINDS)
    if words and kind != "presets":
        raise UserError(f"only presets are filtered by words, not {kind}")
    if kind == "presets":
        _list_presets(words or [], as_json)
    elif kind == "studies":
        _list_studies(as_json)
    else:
        from ..config.imports import import_paths, load_imports

        load_imports(import_paths(imports or []))
        _list_registries(kind, as_json)


def _list_registries(kind: str | None, as_json: bool) -> None:
    from ..report.terminal.catalogues import registry_table

    chosen = {name: reg for name, reg in _registries().items() if kind in (None, name)}
    if as_json:
        tree = {
            name: [
                {
                    "name": key,
                    "summary": entry.summary,
                    "origin": entry.origin,
                    **({} if entry.installed else registry.facts(key)),
                }
                for key, entry in registry.items()
            ]
            for name, registry in chosen.items()
        }
        print_json(tree if kind is None else tree[kind])
        return
    for name, registry in chosen.items():
        new_console().print(registry_table(name, registry))


def _registries() -> dict[str, Registry]:
    from ..backbones import BACKBONES
    from ..methods import METHODS
    from ..regularizers import REGULARIZERS
    from ..streams import BENCHMARKS

    return dict(zip(REGISTRIES, (METHODS, BENCHMARKS, BACKBONES, REGULARIZERS), strict=True))


def _list_presets(words: list[str], as_json: bool) -> None:
    from ..config.presets import presets
    from ..report.terminal.catalogues import preset_table

    chosen = [p for p in presets().values() if all(word in p.name for word in words)]
    if not chosen:
        wanted = " and ".join(map(repr, words))
        raise UserError(f"no preset has {wanted} in its name: lider list presets lists all")
    if as_json:
        print_json([vars(preset) for preset in chosen])
    else:
        new_console().print(preset_table(chosen))


def _list_studies(as_json: bool) -> None:
    from ..config.scale import SCALES
    from ..paper.studies import STUDIES, find_study
    from ..paper.studies.cases import Request
    from ..paper.studies.cost_estimate import estimate_cost
    from ..report.terminal.catalogues import study_table

    costs = {
        name: {scale: estimate_cost(find_study(name), Request(scale)) for scale in SCALES}
        for name in STUDIES
    }
    if as_json:
        tree = [
            {
                "name": name,
                "summary": entry.summary,
                "paper": find_study(name).paper,
                "analysis": bool(entry.facts.get("analysis")),
                "estimate": {scale: vars(cost) for scale, cost in costs[name].items()},
            }
            for name, entry in STUDIES.items()
        ]
        print_json(tree)
        return
    console = new_console()
    console.print(study_table(costs))
    console.print(
        "Number of runs, and processor time per seed on one core of an AMD EPYC server: counted "
        "steps times times measured in the runs of the ledger and of the studies at scale smoke. A "
        "busy machine takes longer, a GPU far less. Runs that exist, or that studies share, are "
        "not repeated; analyses of finished runs are not counted."
    )
