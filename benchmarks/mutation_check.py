"""Change one operator or number of the numeric core at a time: do the room's tests notice?

    python benchmarks/mutation_check.py --mutants 500
    python benchmarks/mutation_check.py --mutants 20 --rooms functional

A mutant is a copy of the package with one change in functional/, methods/ or regularizers/: + for
-, * for /, < for <=, == for !=, and for or, or another number. It is killed if a test of its room
fails, or if they take five times as long as without a change. Prints the survivors, to be judged
one by one: some changes make no difference (a tolerance, a number of iterations, a limit).
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("functional", "methods", "regularizers")
SWAPS: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult,
    ast.MatMult: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


def sites(tree: ast.Module) -> Iterator[ast.AST]:
    """The nodes that a mutant can change: not those of annotations."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.BinOp, ast.BoolOp)):
            fits = type(node.op) in SWAPS
        elif isinstance(node, ast.Compare):
            fits = type(node.ops[0]) in SWAPS
        else:
            fits = isinstance(node, ast.Constant) and type(node.value) in (int, float)
        if fits:
            yield node
        for name, child in ast.iter_fields(node):
            if name not in ("annotation", "returns"):
                children = child if isinstance(child, list) else [child]
                waiting += [one for one in children if isinstance(one, ast.AST)]


def mutate(node: ast.AST) -> None:
    if isinstance(node, (ast.BinOp, ast.BoolOp)):
        node.op = SWAPS[type(node.op)]()
    elif isinstance(node, ast.Compare):
        node.ops[0] = SWAPS[type(node.ops[0])]()
    elif isinstance(node, ast.Constant):
        node.value = node.value + 1 if isinstance(node.value, int) else node.value * 1.5 + 0.1


def killed(room: str, package: Path, limit: float | None = None) -> bool:
    """Whether a test of the room fails on the package."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        f"tests/{room}",
    ]
    environment = {**os.environ, "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mutants", type=int, default=500)
    parser.add_argument("--rooms", nargs="+", default=ROOMS, choices=ROOMS)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    files = [
        f for room in options.rooms for f in sorted((ROOT / "src/liderlab" / room).glob("*.py"))
    ]
    places = [
        (file, number)
        for file in files
        for number, _ in enumerate(sites(ast.parse(file.read_text())))
    ]
    chosen = random.Random(options.seed).sample(places, min(options.mutants, len(places)))
    dead = 0
    with tempfile.TemporaryDirectory() as name:
        package = Path(name)
        shutil.copytree(ROOT / "src/liderlab", package / "liderlab")
        limits = {}
        for room in options.rooms:
            began = time.monotonic()
            if killed(room, package):
                sys.exit(f"the tests of {room} fail without a change")
            limits[room] = 5 * (time.monotonic() - began)
        for count, (file, number) in enumerate(chosen, 1):
            text = file.read_text()
            tree = ast.parse(text)
            node = list(sites(tree))[number]
            before = ast.unparse(node)
            mutate(node)
            copy = package / file.relative_to(ROOT / "src")
            copy.write_text(ast.unparse(tree))
            found = killed(file.parent.name, package, limits[file.parent.name])
            copy.write_text(text)
            dead += found
            if not found:
                line = getattr(node, "lineno", 0)
                where = f"{file.relative_to(ROOT)}:{line}"
                print(f"survived: {where}: {before} -> {ast.unparse(node)}", flush=True)
            print(f"{count}/{len(chosen)}: {dead} killed", file=sys.stderr, flush=True)
    print(f"{dead} of {len(chosen)} mutants killed ({len(places)} possible)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
