"""Lists every method and regulariser in the site's navigation, each with a page.

A page written by hand (docs/methods/NAME.md) is used as it is. Without one, a page is generated
from the class's docstring and its constructor's arguments.
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
            section[SECTION] = [{name: f"methods/{name}.md"} for name in ENTRIES]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name, (kind, entry) in ENTRIES.items():
        path = f"methods/{name}.md"
        if files.get_file_from_path(path) is None:
            files.append(File.generated(config, path, content=generated_page(name, kind, entry)))
    return files


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
