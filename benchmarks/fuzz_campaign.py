"""Damaged and random input of every kind: a result or one sentence, no traceback, no hang.

    python benchmarks/fuzz_campaign.py --cases 10000        # goes on where it stopped
    python benchmarks/fuzz_campaign.py --again              # repeats those that failed
    python benchmarks/fuzz_campaign.py --only 1234          # repeats one case, with its traceback

A case damages a configuration, a YAML text, a run folder, a checkpoint (with a valid checksum), an
archive, an image, or a command line, and hands it to the code that reads it, in a process that is
forked from one with torch loaded. Each outcome is a line of the results file; the last one of a
case counts. Exit code 1 if any case ends in a traceback, takes more than 60 s of processor time, or
wants more than 2 GiB.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import resource
import shutil
import sys
import tarfile
import tempfile
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import torch
from PIL import Image

import liderlab.runs.execute as execution
from forked_process import answer_of, warm_up
from liderlab.cli import main as command
from liderlab.config.merging import make_config
from liderlab.config.schema import RunConfig
from liderlab.config.yaml_values import read_yaml
from liderlab.errors import UserError
from liderlab.methods import METHODS
from liderlab.regularizers import REGULARIZERS
from liderlab.runs.build import completed
from liderlab.runs.checkpoints import read_state, write_state
from liderlab.runs.execute import run
from liderlab.runs.folder import RunFolder
from liderlab.streams.datasets.image_decoding import decode
from liderlab.streams.storage.archives import unpack
from outcome_lines import add_outcome, read_outcomes

SECONDS = 60  # of processor time
MEMORY = 2 * 2**30  # bytes on top of the loaded modules
SMALL = {
    "benchmark": "synthetic",
    "backbone": {"width": 4},
    "regularizers": {"lider": {}},
    "memory": {"size": 8},
    "training": {"epochs": 1, "batch_size": 32},
    "threads": 1,
}
WORDS = ["run", "list", "show", "resume", "sweep", "data", "--method", "er", "--lider", "--buffer"]
WORDS += ["--set", "training.lr=1", "memory.size=-1", "--json", "3", "-1", "x", "--config", "a.b=c"]
WORDS += [
    "--tasks",
    "--class-order",
    "1,2",
    "--regularizer",
    "oewc",
    "=",
    "\x1b[31m",
    "é",
    "",
    "--",
]
YAML = [
    b"&a",
    b"*a",
    b"<<: *a",
    b"!!python/object:os.system",
    b"? ",
    b"- ",
    b": ",
    b"{",
    b"[",
    b"|",
]
INTACT: set[str] = set()  # the names of the inputs that cases damage
READERS = ["show x", "resume x", "predict x i.png", "report x -o r.html", "compare x x", "runs ."]


def value(dice: random.Random, depth: int = 2) -> Any:
    """A random value, also nested."""
    names = [*METHODS, *REGULARIZERS, "resnet18", "split-digits", "name", "alpha", "5m", "natural"]
    plain = [None, True, -1, 0, 3, 10**20, 0.5, float("nan"), float("inf"), "", "x" * 300]
    kind = dice.randrange(4 if depth else 2)
    if kind == 2:
        return [value(dice, depth - 1) for _ in range(dice.randrange(3))]
    if kind == 3:
        return {dice.choice(names): value(dice, depth - 1) for _ in range(dice.randrange(3))}
    return dice.choice(plain if kind else names)


def damaged(dice: random.Random, data: bytes, tokens: list[bytes] = YAML) -> bytes:
    """The bytes with some changed, deleted, repeated or inserted."""
    content = bytearray(data)
    for _ in range(dice.randint(1, 4)):
        place = dice.randrange(len(content) + 1)
        kind = dice.randrange(5)
        if kind == 0 and place < len(content):
            content[place] = dice.randrange(256)
        elif kind == 1:
            del content[place : place + dice.randint(1, 200)]
        elif kind == 2:
            content[place:place] = content[place : place + dice.randint(1, 200)]
        elif kind == 3:
            content[place:place] = dice.choice(tokens)
        else:
            del content[place:]
    return bytes(content)


def changed(dice: random.Random, tree: Any) -> Any:
    """The tree with one leaf or branch replaced or removed."""
    if isinstance(tree, dict) and tree and dice.random() < 0.9:
        key = dice.choice(list(tree))
        if dice.random() < 0.1:
            return {name: branch for name, branch in tree.items() if name != key}
        return {**tree, key: changed(dice, tree[key])}
    if isinstance(tree, list) and tree and dice.random() < 0.7:
        place = dice.randrange(len(tree))
        return [*tree[:place], changed(dice, tree[place]), *tree[place + 1 :]]
    if isinstance(tree, torch.Tensor) and dice.random() < 0.7:
        shapes = [tree.flatten()[:1], tree[..., None], tree.double(), -tree.int(), tree * torch.nan]
        return dice.choice(shapes)
    return value(dice)


def call(arguments: list[str]) -> None:
    """A command in this process: an exit code, never another exception."""
    sys.argv = ["lider", *arguments]
    try:
        command()
    except SystemExit as ending:
        if ending.code not in (None, 0, 1, 2, 130):
            raise RuntimeError(f"exit code {ending.code}") from ending


def fuzz_configuration(dice: random.Random, work: Path) -> None:
    fields = [*RunConfig.model_fields, "trainign"]
    with suppress(UserError):
        completed(make_config({dice.choice(fields): value(dice, 3) for _ in range(3)}))


def fuzz_yaml(dice: random.Random, work: Path) -> None:
    text = (work / "whole/config.yaml").read_bytes()
    (work / "c.yaml").write_bytes(damaged(dice, text))
    with suppress(UserError):
        completed(make_config(read_yaml(work / "c.yaml")))


def fuzz_folder(dice: random.Random, work: Path) -> None:
    folder = work / "x"
    file = dice.choice([path for path in folder.rglob("*") if path.is_file()])
    kind = dice.randrange(4)
    content = file.read_bytes()
    file.unlink()
    if kind == 0:
        file.mkdir()
    elif kind == 1 and file.name == "result.json":
        file.write_text(json.dumps(changed(dice, json.loads(content))))
    elif kind < 3:
        file.write_bytes(damaged(dice, content))
    if dice.random() < 0.3:
        with suppress(OSError):
            (folder / "result.json").unlink()
    call(dice.choice(READERS).split())


def fuzz_checkpoint(dice: random.Random, work: Path) -> None:
    folder = RunFolder(work / "x")
    for file in folder.checkpoints.files():
        state = changed(dice, read_state(file))
        write_state(file, state if isinstance(state, dict) else {"state": state})
    if dice.random() < 0.7:
        (folder.path / "result.json").unlink()
    call(dice.choice(READERS).split())


def fuzz_archive(dice: random.Random, work: Path) -> None:
    name = dice.choice(["a.zip", "a.tar", "a.tar.gz", "a.tar.xz"])
    (work / "b").write_bytes(damaged(dice, (work / name).read_bytes()))
    (work / "out").mkdir()
    with suppress(UserError):
        unpack(work / "b", work / "out", lambda *_: None)


def fuzz_image(dice: random.Random, work: Path) -> None:
    name = dice.choice(["i.png", "i.jpg", "i.gif", "i.bmp", "i.tif", "i.webp"])
    (work / "j").write_bytes(damaged(dice, (work / name).read_bytes()))
    with suppress(UserError):
        decode(work / "j", (dice.choice([1, 3]), 8, 8))


def fuzz_arguments(dice: random.Random, work: Path) -> None:
    build = execution.build
    execution.build = stop_here  # type: ignore[assignment]
    try:
        call([dice.choice(WORDS) for _ in range(dice.randint(1, 7))])
    finally:
        execution.build = build


def stop_here(*_: object) -> None:
    raise UserError("this would have run")


KINDS: dict[str, Callable[[random.Random, Path], None]] = {
    "configuration": fuzz_configuration,
    "yaml": fuzz_yaml,
    "run folder": fuzz_folder,
    "checkpoint": fuzz_checkpoint,
    "archive": fuzz_archive,
    "image": fuzz_image,
    "arguments": fuzz_arguments,
}


def prepare(work: Path) -> None:
    """The intact inputs that cases damage."""
    run(make_config(SMALL), work / "whole")
    picture = Image.new("RGB", (9, 7), (200, 30, 5))
    for suffix in ("png", "jpg", "gif", "bmp", "tif", "webp"):
        picture.save(work / f"i.{suffix}")
    with zipfile.ZipFile(work / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(work / "i.png", "d/i.png")
    for name, mode in (("a.tar", "w"), ("a.tar.gz", "w:gz"), ("a.tar.xz", "w:xz")):
        with tarfile.open(work / name, mode) as archive:  # type: ignore[call-overload]
            archive.add(work / "whole/config.yaml", "d/c")


def try_case(number: int, seed: int, work: Path) -> dict[str, Any]:
    """The kind of the case, its traceback if any, its seconds and megabytes."""
    kind = list(KINDS)[number % len(KINDS)]
    for leftover in work.iterdir():
        if leftover.name not in INTACT:
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
    if kind in ("run folder", "checkpoint"):
        shutil.copytree(work / "whole", work / "x")
    told = answer_of(
        lambda: outcome(kind, random.Random(f"{seed}-{number}"), work), SECONDS, MEMORY
    )
    ended = {"trace": "the process hung, or was ended by a signal"}
    return {"case": number, "kind": kind, **(json.loads(told) if told else ended)}


def outcome(kind: str, dice: random.Random, work: Path) -> str:
    """In the forked process."""
    trace, before = "", resource.getrusage(resource.RUSAGE_SELF)
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            KINDS[kind](dice, work)
    except Exception:
        trace = traceback.format_exc()
    after = resource.getrusage(resource.RUSAGE_SELF)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    growth = (after.ru_maxrss - before.ru_maxrss) / 1024
    return json.dumps({"trace": trace, "seconds": round(seconds, 3), "megabytes": round(growth)})


def warm(work: Path) -> None:
    """Load what the commands load."""
    shutil.copytree(work / "whole", work / "x")
    for line in (*READERS, "list methods", "run --tasks 99", "sweep x", "data list"):
        warm_up(lambda line=line: call(line.split()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--again", action="store_true", help="repeat the cases that failed")
    parser.add_argument("--only", type=int, help="repeat one case")
    parser.add_argument("--results", type=Path, default=Path("fuzz_results.jsonl"))
    options = parser.parse_args()
    results = options.results.resolve()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    records = {record["case"]: record for record in read_outcomes(results)}
    todo = [number for number in range(options.cases) if number not in records]
    if options.again:
        todo = [number for number, record in records.items() if record["trace"]]
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        prepare(Path(name))
        INTACT.update(os.listdir(name))
        warm(Path(name))
        if options.only is not None:
            records = {options.only: try_case(options.only, options.seed, Path(name))}
            print(records[options.only]["trace"])
        else:
            for number in todo:
                records[number] = try_case(number, options.seed, Path(name))
                add_outcome(results, records[number])
        os.chdir("/")
    return summary(list(records.values()))


def summary(records: Sequence[dict[str, Any]]) -> int:
    failed = [record for record in records if record["trace"]]
    for record in failed:
        last = record["trace"].strip().splitlines()[-1]
        print(f"case {record['case']} ({record['kind']}): {last}")
    counts = Counter(record["kind"] for record in records)
    print(
        f"{len(records)} cases ({', '.join(f'{n} {kind}' for kind, n in counts.items())}): "
        f"{len(failed)} tracebacks or hangs; at most "
        f"{max(record.get('seconds', 0) for record in records):.1f} s of processor time and "
        f"{max(record.get('megabytes', 0) for record in records)} MB more memory in a case"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
