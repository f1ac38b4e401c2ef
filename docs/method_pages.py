"""Lists every method and regulariser in the site's navigation, each with a page.

A page written by hand (docs/methods/NAME.md) is used as it is. Without one, a page is generated
from the class's docstring and its constructor's arguments. The section begins with a list of all.
"""

from __future__ import annotations

import inspect
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from liderlab.config.options import complete
from liderlab.methods import METHODS
from liderlab.regularizers import REGULARIZERS

SECTION = "Methods and regularisers"
ENTRIES = {name: ("regularizer", entry) for name, entry in REGULARIZERS.items()} | {
    name: ("method", entry) for name, entry in METHODS.items()
}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    for section in config.nav:
        if SECTION in section:
            pages = [{name: f"methods/{name}.md"} for name in ENTRIES]
            section[SECTION] = ["methods/index.md", *pages]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name, (kind, entry) in ENTRIES.items():
        path = f"methods/{name}.md"
        if files.get_file_from_path(path) is None:
            files.append(File.generated(config, path, content=generated_page(name, kind, entry)))
    files.append(File.generated(config, "methods/index.md", content=overview()))
    return files


def overview() -> str:
    """Every regulariser and method with its summary, and the paper it comes from."""
    lines = [f"# {SECTION}"]
    for title, registry in (("Regularisers", REGULARIZERS), ("Methods", METHODS)):
        lines += ["", f"## {title}", "", "| name | | paper |", "|---|---|---|"]
        for name, entry in registry.items():
            facts = registry.facts(name)
            paper = " ".join(str(facts[key]) for key in ("paper", "year") if facts.get(key))
            lines.append(f"| [{name}]({name}.md) | {entry.summary} | {paper} |")
    return "\n".join([*lines, ""])


def generated_page(name: str, kind: str, entry: Any) -> str:
    target = entry.load()
    rows = [f"| `{k}` | {v!r} |" for k, v in complete(target, {}, name, kind).items()]
    return "\n".join(
        [
            f"# {name}",
            "",
            f"{entry.summary}.",
            "",
            "```",
            inspect.getdoc(target) or "",
            "```",
            "",
            "| option | default |",
            "|---|---|",
            *(rows or ["| none | |"]),
            "",
        ]
    )
