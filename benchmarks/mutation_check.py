"""Change one operator or number of the numeric core at a time: do the tests notice?

    python benchmarks/mutation_check.py                     # all; goes on where it stopped
    python benchmarks/mutation_check.py --mutants 500       # a random sample
    python benchmarks/mutation_check.py --again --patience 60   # only those that survived

A mutant is one change in functional/, methods/ or regularizers/: + for -, * for /, < for <=, ==
for !=, and for or, or another number. The tests of these rooms are loaded once. They run once
unchanged, which says how long each takes and which lines it executes. For each mutant a forked
process puts the change into the loaded module and runs the tests that execute the changed line,
shortest first, until one fails. A mutant that takes five times as long as without the change is
killed, too.

Every verdict is kept in the results file, under the changed line's text. mutation_equivalents.json
lists the changes that cannot matter, each with its reason. Exit code 1 if fewer than 95 % of the
others are killed.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib
import json
import os
import random
import sys
import time
import types
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from forked_process import answer_of, load
from outcome_lines import add_outcome, read_outcomes

ROOT = Path(__file__).resolve().parent.parent
CORE = ROOT / "src/liderlab"
ROOMS = ("functional", "methods", "regularizers")
MORE_TESTS = {"methods": ["tests/training/test_gradient_hooks.py"]}  # of a-gem
EQUIVALENTS = Path(__file__).with_name("mutation_equivalents.json")
SHARE = 0.95
SLOW = 5  # seconds: tests that take longer without a change are left out
SURVIVED = "survived"
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
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "year":
            continue  # of a paper
        for name, child in ast.iter_fields(node):
            if name not in ("annotation", "returns"):
                children = child if isinstance(child, list) else [child]
                waiting += [one for one in children if isinstance(one, ast.AST)]


def change(node: ast.AST) -> None:
    if isinstance(node, (ast.BinOp, ast.BoolOp)):
        node.op = SWAPS[type(node.op)]()
    elif isinstance(node, ast.Compare):
        node.ops[0] = SWAPS[type(node.ops[0])]()
    elif isinstance(node, ast.Constant):
        node.value = node.value + 1 if isinstance(node.value, int) else node.value * 1.5 + 0.1


@dataclass(frozen=True)
class Mutant:
    """key: the file, the changed line's text and the change; it outlives changes elsewhere."""

    file: Path
    number: int  # of the place in the file
    lines: frozenset[int]  # a test that executes one of them can notice
    key: str

    def tree(self) -> ast.Module:
        tree = ast.parse(self.file.read_text())
        change(list(sites(tree))[self.number])
        return tree


def executed_lines(tree: ast.Module) -> dict[int, set[int]]:
    """For every line, the lines whose execution can show a change in it.

    In a function these are the lines of its statement. Default values and attributes of classes are
    executed when the module is loaded; they matter where the function or the class is used.
    """
    found: dict[int, set[int]] = {}
    for node in ast.walk(tree):  # outer statements first
        if not isinstance(node, ast.stmt):
            continue
        body = getattr(node, "body", None)
        end = node.end_lineno or node.lineno
        header = range(node.lineno, body[0].lineno if body else end + 1)
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            inner = set(range(node.body[0].lineno, end + 1))
            found.update(dict.fromkeys(range(node.lineno, end + 1), inner))
        elif node.col_offset and not class_level(node, tree):
            found.update({line: set(header) for line in header})
    return found


def class_level(node: ast.stmt, tree: ast.Module) -> bool:
    return any(isinstance(owner, ast.ClassDef) and node in owner.body for owner in ast.walk(tree))


def mutants() -> list[Mutant]:
    """All, in the order of files and places."""
    found, counts = [], Counter[str]()
    for file in core_files():
        text = file.read_text()
        tree, texts = ast.parse(text), text.splitlines()
        executed, everything = executed_lines(tree), set(range(1, len(texts) + 1))
        for number, node in enumerate(sites(tree)):
            line: int = node.lineno  # type: ignore[attr-defined]
            before = ast.unparse(node)
            change(node)
            key = f"{file.relative_to(CORE)}: {texts[line - 1].strip()}: {before} -> "
            key += ast.unparse(node)
            counts[key] += 1
            if counts[key] > 1:
                key += f" ({counts[key]})"
            found.append(Mutant(file, number, frozenset(executed.get(line, everything)), key))
    return found


def core_files() -> list[Path]:
    return [file for room in ROOMS for file in sorted((CORE / room).glob("*.py"))]


@cache
def digest(*files: Path) -> str:
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def module_name(file: Path) -> str:
    return ".".join(file.relative_to(CORE.parent).with_suffix("").parts).removesuffix(".__init__")


def transplant(file: Path, tree: ast.Module) -> None:
    """Give the functions and values of a loaded module those of the changed text.

    Functions keep their identity, because tests and other modules have imported them.
    """
    module = sys.modules[module_name(file)]
    fresh = types.ModuleType(module.__name__)
    fresh.__dict__.update(__file__=module.__file__, __package__=module.__package__)
    sys.modules[module.__name__] = fresh  # for dataclasses
    exec(compile(tree, str(module.__file__), "exec"), fresh.__dict__)
    sys.modules[module.__name__] = module
    for name, value in list(vars(fresh).items()):
        old = vars(module).get(name)
        foreign = getattr(old, "__module__", module.__name__) != module.__name__
        if name.startswith("__") or foreign or value is old:
            continue
        if not graft(old, value) and not isinstance(old, type):
            for other in list(sys.modules.values()):
                if getattr(other, "__dict__", {}).get(name, other) is old:
                    setattr(other, name, value)


def graft(old: Any, new: Any) -> bool:
    """Whether these are functions, or a class of functions, whose code could be replaced."""
    if isinstance(old, types.FunctionType):
        old.__code__, old.__defaults__ = new.__code__, new.__defaults__
        old.__kwdefaults__ = new.__kwdefaults__
        old.__dict__.update({k: v for k, v in vars(new).items() if k != "__wrapped__"})
        for cell, other in zip(old.__closure__ or (), new.__closure__ or (), strict=True):
            if not isinstance(cell.cell_contents, type):  # a method's own class
                graft(cell.cell_contents, other.cell_contents)
        return True
    if isinstance(old, (staticmethod, classmethod)):
        return graft(old.__func__, new.__func__)
    if isinstance(old, property):
        return graft(old.fget, new.fget)
    if hasattr(old, "__wrapped__"):
        return graft(old.__wrapped__, new.__wrapped__)
    if isinstance(old, type):
        for name, value in list(vars(new).items()):
            if isinstance(value, type) or name.startswith("_abc"):
                continue
            if not graft(vars(old).get(name), value) and not name.startswith("__"):
                setattr(old, name, value)
        return True
    return False


class Check:
    """A pytest plugin: replaces pytest's loop over the tests by a loop over the mutants."""

    def __init__(
        self,
        rooms: Sequence[str],
        results: Path,
        count: int | None,
        seed: int,
        again: bool,
        patience: float,
    ) -> None:
        self.results, self.again, self.patience = results, again, patience
        self.tests: dict[str, dict[str, Any]] = {}
        self.verdicts: dict[str, str] = {}
        for record in read_outcomes(results):
            self.take(record)
        found = [mutant for mutant in mutants() if mutant.file.parent.name in rooms]
        self.possible = len(found)
        random.Random(seed).shuffle(found)
        self.mutants = found[:count]
        self.session: pytest.Session

    def take(self, record: dict[str, Any]) -> None:
        """A line of the results: a test without a change, or the verdict on a mutant."""
        if "test" in record:
            self.tests[record["test"]] = record
        else:
            self.verdicts[record["mutant"]] = record["verdict"]

    def keep(self, record: dict[str, Any]) -> None:
        self.take(record)
        add_outcome(self.results, record)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.session = session
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        for file in core_files():
            importlib.import_module(module_name(file))
        for file in core_files():  # the same code in the same way: must change nothing
            transplant(file, ast.parse(file.read_text()))
        self.run_unchanged()
        todo = [m for m in self.mutants if self.verdicts.get(m.key) is None]
        if self.again:
            todo = [m for m in self.mutants if self.verdicts.get(m.key) == SURVIVED]
        for number, mutant in enumerate(todo, 1):
            self.keep({"mutant": mutant.key, "verdict": self.verdict(mutant)})
            verdict = self.verdicts[mutant.key]
            print(f"{number}/{len(todo)} {mutant.key}: {verdict}", flush=True)
        return True

    def run_unchanged(self) -> None:
        """Learn each test's time and lines, unless its file and the core are as before."""
        core = digest(*core_files())
        for item in self.session.items:
            wanted = digest(item.path) + core
            if self.tests.get(item.nodeid, {}).get("of") != wanted:
                record = json.loads(answer_of(lambda item=item: self.traced(item), SLOW) or "{}")
                self.keep({"test": item.nodeid, "of": wanted, **record})
                if record.get("failed", True):
                    print(f"left out, fails or is slow without a change: {item.nodeid}", flush=True)
            load(self.tests[item.nodeid].get("modules", []))  # once, for all that follow

    def fails(self, item: pytest.Item) -> bool:
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        return self.session.testsfailed > 0

    def traced(self, item: pytest.Item) -> str:
        """Whether a test fails, its time, the modules that it loads, its lines of the core."""
        lines: dict[str, set[int]] = {}
        rooms = tuple(str(CORE / room) for room in ROOMS)

        def trace(frame: types.FrameType, event: str, _: Any) -> Any:
            name = frame.f_code.co_filename
            if not name.startswith(rooms):
                return None
            lines.setdefault(name[len(str(CORE)) + 1 :], set()).add(frame.f_lineno)
            return trace

        began, before = time.process_time(), set(sys.modules)
        sys.settrace(trace)
        failed = self.fails(item)
        sys.settrace(None)
        found = {name: sorted(numbers) for name, numbers in lines.items()}
        seconds = round(time.process_time() - began, 3)
        loaded = [name for name in sys.modules if name not in before]
        record = {"failed": failed, "seconds": seconds, "modules": loaded, "lines": found}
        return json.dumps(record)

    def tests_of(self, mutant: Mutant) -> list[pytest.Item]:
        """Those that execute the changed line, shortest first, as far as the time allows."""
        name = str(mutant.file.relative_to(CORE))
        fitting = []
        for item in self.session.items:
            known = self.tests[item.nodeid]
            lines = [] if known.get("failed", True) else known["lines"].get(name, [])
            if not mutant.lines.isdisjoint(lines):
                fitting.append((known["seconds"], item.nodeid, item))
        chosen, seconds = [], 0.0
        for needed, _, item in sorted(fitting):
            seconds += needed
            if seconds > self.patience and chosen:
                break
            chosen.append(item)
        return chosen

    def verdict(self, mutant: Mutant) -> str:
        """The test that noticed, or one of the words below."""
        items = self.tests_of(mutant)
        if not items:
            return SURVIVED
        limit = 10 + 5 * sum(self.tests[item.nodeid]["seconds"] for item in items)

        def first_failure() -> str:
            try:
                transplant(mutant.file, mutant.tree())
            except Exception:
                return "the module does not load"
            return next((item.nodeid for item in items if self.fails(item)), SURVIVED)

        return answer_of(first_failure, limit) or "the tests do not end"


def summary(check: Check) -> int:
    equivalents = json.loads(EQUIVALENTS.read_text())
    tried = [m.key for m in check.mutants if m.key in check.verdicts]
    survived = {key for key in tried if check.verdicts[key] == SURVIVED}
    alive = [key for key in tried if key in survived and key not in equivalents]
    wrong = [key for key in tried if key not in survived and key in equivalents]
    for key in alive:
        print(f"survived: {key}")
    for key in wrong:
        print(f"listed as equivalent, but killed: {key}")
    killed = len(tried) - len(survived)
    share = killed / max(1, killed + len(alive))
    print(
        f"{len(tried)} of {check.possible} mutants tried: {killed} killed, {len(alive)} survived, "
        f"{len(survived) - len(alive)} equivalent; {share:.1%} of those that are not are killed"
    )
    return 0 if share >= SHARE and not wrong else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mutants", type=int, help="a random sample (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--rooms", nargs="+", default=ROOMS, choices=ROOMS)
    parser.add_argument("--results", type=Path, default=Path("mutation_results.jsonl"))
    parser.add_argument("--again", action="store_true", help="try those that survived again")
    parser.add_argument(
        "--patience", type=float, default=8, help="seconds of tests per mutant; a survivor's time"
    )
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    results = options.results.resolve()
    check = Check(
        options.rooms, results, options.mutants, options.seed, options.again, options.patience
    )
    os.chdir(ROOT)
    arguments = ["-o", "addopts=", "--doctest-modules", "--strict-markers", "-s"]
    arguments += ["--import-mode=importlib", "-m", "not slow", "-p", "no:terminal"]
    arguments += ["-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:faulthandler"]
    for room in options.rooms:
        arguments += [f"tests/{room}", f"src/liderlab/{room}", *MORE_TESTS.get(room, [])]
    code = pytest.main(arguments, plugins=[check])
    if not hasattr(check, "session"):
        sys.exit(f"pytest could not load the tests: {code}")
    return summary(check)


if __name__ == "__main__":
    sys.exit(main())
