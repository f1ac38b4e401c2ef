"""Carry a study's finished runs to another machine, in one text file.

    python benchmarks/study_records.py save studies benchmarks/matrix_runs.json     # after runs
    python benchmarks/study_records.py restore studies benchmarks/matrix_runs.json  # elsewhere

A study does not repeat runs whose results lie in its folder, nor the costs that it has measured.
The file holds both, without weights and memories: a restored run cannot be resumed or analysed.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

PATTERNS = ("runs/*/result.json", "*/measured/*.json")


def save(folder: Path, record: Path) -> int:
    """Write all finished runs of a folder into the record; return their number."""
    files = {}
    for path in sorted(found for pattern in PATTERNS for found in folder.glob(pattern)):
        files[str(path.relative_to(folder))] = json.loads(path.read_text())
        config = path.with_name("config.yaml")
        if config.exists():
            files[str(config.relative_to(folder))] = config.read_text()
    lines = [f"{json.dumps(name)}: {json.dumps(content)}" for name, content in files.items()]
    record.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return sum(name.endswith("result.json") for name in files)


def restore(folder: Path, record: Path) -> int:
    """Write the record's files that the folder lacks; return the number of its runs."""
    files = json.loads(record.read_text())
    for name, content in files.items():
        path = folder / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content if isinstance(content, str) else json.dumps(content))
    return sum(name.endswith("result.json") for name in files)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=("save", "restore"))
    parser.add_argument("folder", type=Path, help="--out of the study")
    parser.add_argument("record", type=Path)
    options = parser.parse_args()
    action = {"save": save, "restore": restore}[options.action]
    print(f"{action(options.folder, options.record)} runs")


if __name__ == "__main__":
    main()
