"""Layers of values, merged into one configuration. No torch needed.

Values come from six places, later ones win: the fields' defaults, the benchmark's own defaults, the
backbone of the pre-trained weights, a preset, a configuration file, and single values
(`training.lr=0.1`). A scale, last, lowers them. A complete configuration, as a run writes it, takes
nothing from benchmark and preset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from ..backbones import BACKBONES
from ..errors import UserError, unknown
from ..methods import METHODS
from ..registry import Registry
from ..regularizers import REGULARIZERS
from ..streams import BENCHMARKS
from ..streams.storage.location import absolute
from .imports import are_loaded, check_imported, import_paths, load_imports
from .lider_forms import form_layer
from .messages import one_sentence
from .migrations import SCHEMA, is_complete, migrate
from .presets import preset
from .scale import SCALES
from .schema import RunConfig, bare_name
from .weight_backbone import backbone_of
from .weight_names import with_absolute_path
from .yaml_values import Tree


def make_config(*layers: Mapping[str, Any]) -> RunConfig:
    """Merge layers of (possibly nested) values over the defaults, check them, and fill the rest.

    A complete layer replaces those before it.

    >>> config = make_config({"method": "der++", "training": {"epochs": 3}})
    >>> config.method.name, config.training.epochs, config.memory.size
    ('der++', 3, 100)
    """
    given: Tree = {}
    method = _last_method(layers)
    for layer in layers:
        complete = is_complete(layer)
        layer = _complete_layer(layer) if complete else layer
        _refuse_another_start(given, layer)
        _check_regularizers(layer.get("regularizers", {}))
        layer = _with_form(layer, method)
        given = dict(layer) if complete else merge(given, layer)
    complete = "schema" in given
    if not complete:
        start: Tree = {"benchmark": {"name": "split-digits"}, "method": {"name": "er-ace"}}
        if given.get("preset") is not None:
            start = _with_form(preset(str(given["preset"])).config, method)
        given = merge(start, given)
    if "imports" in given:
        given["imports"] = import_paths(given["imports"])
        load_imports(given["imports"])
    given["benchmark"] = benchmark = _own_folder(bare_name(given["benchmark"]))
    if isinstance(benchmark, Mapping) and isinstance(benchmark.get("then"), list):
        later = [_own_folder(bare_name(part)) for part in benchmark["then"]]
        given["benchmark"] = benchmark = {**benchmark, "then": later}
    if isinstance(given.get("extends"), str):
        given["extends"] = str(absolute(given["extends"]))
    if isinstance(given.get("pretrained"), str):
        given["pretrained"] = with_absolute_path(given["pretrained"])
    name = benchmark.get("name") if isinstance(benchmark, Mapping) else benchmark
    defaults = BENCHMARKS.entry(str(name)).facts.get("defaults", {})
    if not complete:
        defaults = merge(defaults, _backbone_of_weights(given))
    whole = given if complete else {"schema": SCHEMA, **merge(defaults, given)}
    config = stored_config(whole)
    check_imported(config.imports, [*_names(config), (BENCHMARKS, config.benchmark.name)])
    return config


def _last_method(layers: Sequence[Mapping[str, Any]]) -> str:
    """The name of the method that the layers choose; of the preset's, if they choose none."""
    start = [preset(str(layer["preset"])).config for layer in layers if layer.get("preset")]
    chosen = [bare_name(layer.get("method")) for layer in (*start, *layers)]
    names = [str(m["name"]) for m in chosen if isinstance(m, Mapping) and "name" in m]
    return names[-1] if names else ""


def _with_form(layer: Mapping[str, Any], method: str) -> Tree:
    """The layer over the values of the form of LiDER that it names; see `lider_forms`."""
    regularizers = layer.get("regularizers", {})
    own = dict(regularizers.get("lider") or {})
    if "form" not in own:
        return dict(layer)
    form = own.pop("form")
    values = {} if form is None else form_layer(str(form), method)  # null leaves it open
    own = values.pop("regularizers", {}).get("lider", {}) | own
    return merge(values, {**layer, "regularizers": {**regularizers, "lider": own}})


def _complete_layer(tree: Mapping[str, Any]) -> Tree:
    """A complete layer in the current schema."""
    for field in ("benchmark", "method", "backbone"):
        if field not in tree:
            raise UserError(
                f"a configuration with a schema number is complete, but this one has no {field}: "
                "leave out schema where a preset or a benchmark has to fill in the rest"
            )
    return migrate(tree)


def stored_config(tree: Mapping[str, Any]) -> RunConfig:
    """The configuration in a run folder: complete, of any schema.

    Its benchmark may be arrays that only another process knows (`add_benchmark`). Names are not
    checked while its `imports` have not been loaded: a run can be looked at without them.
    """
    try:
        config = RunConfig.model_validate(_without_removed(migrate(tree)))
    except ValidationError as error:
        raise UserError(one_sentence(error, RunConfig)) from None
    if are_loaded(config.imports):
        for registry, name in _names(config):
            registry.entry(name)
    if config.scale and config.scale.name not in SCALES:
        raise unknown("scale", config.scale.name, SCALES)
    return config


def _names(config: RunConfig) -> list[tuple[Registry, str]]:
    """The names that a configuration uses, but for its benchmark's."""
    regularizers = [(REGULARIZERS, name) for name in config.regularizers]
    return [(METHODS, config.method.name), (BACKBONES, config.backbone.name), *regularizers]


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> Tree:
    """Values of `above` over those of `below`, section by section.

    A section that names another choice starts afresh: `resnet18` does not inherit the options of
    `convnet-small`.
    """
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        old = bare_name(old) if isinstance(value, Mapping) else old
        value = bare_name(value) if isinstance(old, Mapping) else value
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            other = value.get("name", old.get("name")) != old.get("name")
            result[key] = dict(value) if other else merge(old, value)
        elif isinstance(value, Mapping) and old is not None:
            raise UserError(f"{key} must hold fields and their values, not {old!r}")
        else:
            result[key] = value
    return result


def _refuse_another_start(given: Mapping[str, Any], layer: Mapping[str, Any]) -> None:
    """Values that started from one preset or scale cannot take the name of another."""
    old, new = given.get("preset"), layer.get("preset")
    if old is not None and new is not None and old != new:
        raise UserError(f"this configuration started from preset {old}, not from {new}: choose one")
    added = new if "schema" in given else old if "schema" in layer else None
    if added is not None and old != new:
        raise UserError(
            f"this configuration is a run's, with all its values: preset {added} has none to add"
        )
    done, scale = given.get("scale"), bare_name(layer.get("scale"))
    name = scale.get("name") if isinstance(scale, Mapping) else scale
    if isinstance(done, Mapping) and done.get("changes") and name not in (None, done.get("name")):
        raise UserError(
            f"this configuration is at scale {done.get('name')} already and cannot go to {name}: "
            "start from the configuration before it was scaled"
        )


def _without_removed(tree: Mapping[str, Any]) -> Tree:
    """`regularizers.lider: null` removes a regulariser of a preset, a file or a benchmark."""
    regularizers = tree.get("regularizers")
    if not isinstance(regularizers, Mapping):
        return dict(tree)
    for name, options in regularizers.items():
        if options is None:
            REGULARIZERS.entry(str(name))  # refuses a misspelt name
    kept = {name: options for name, options in regularizers.items() if options is not None}
    return {**tree, "regularizers": kept}


def _check_regularizers(given: Any) -> None:
    """Checked before merging, which would take a bare name for a section with a name."""
    if not isinstance(given, Mapping) or any(
        not isinstance(options, Mapping | None) for options in given.values()
    ):
        raise UserError(
            "regularizers must hold names and their options, like {lider: {alpha: 0.1}}, "
            f"but got {given!r}"
        )


def _backbone_of_weights(given: Mapping[str, Any]) -> Tree:
    """Weights choose their own backbone if the user names none."""
    pretrained, backbone = given.get("pretrained"), bare_name(given.get("backbone", {}))
    if not isinstance(pretrained, str) or not isinstance(backbone, Mapping) or "name" in backbone:
        return {}
    found = backbone_of(pretrained)
    return {"backbone": found} if found else {}


def _own_folder(benchmark: Any) -> Any:
    """`folder:PATH` is the benchmark `folder` with its option `path`, made absolute; so is
    `domains:PATH`."""
    name = benchmark.get("name") if isinstance(benchmark, Mapping) else None
    if not isinstance(name, str) or not name.startswith(("folder:", "domains:")):
        return benchmark
    kind, _, given = name.partition(":")
    path = str(absolute(given)) if given else ""  # the benchmark asks for it
    if benchmark.get("path", path) != path:
        raise UserError(
            f"benchmark {name} and benchmark.path={benchmark['path']} are two folders: name one"
        )
    return {**benchmark, "name": kind, "path": path}
