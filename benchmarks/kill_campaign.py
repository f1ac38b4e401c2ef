"""SIGKILL at random moments, over every method, regulariser, memory and number of ranks.

    python benchmarks/kill_campaign.py --kills 1000          # goes on where it stopped
    python benchmarks/kill_campaign.py --kills 20 --methods er der++ --ranks 1 --results k.jsonl

Each case trains once undisturbed and once under kills, resumed each time, and compares the two to
the bit: weights, memory, generators, metrics, result. Processes, those of rank 1 too, are forked
from one that has loaded torch. One kill in four each falls into the start, the writing of a
checkpoint and an evaluation; the others fall anywhere in the time that an undisturbed run takes.
Every case's outcome is a line of the results file. Exit code 1 if anything differs.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from forked_process import warm_up
from liderlab.config.compatibility import why_not
from liderlab.config.merging import make_config
from liderlab.config.schema import RunConfig
from liderlab.distributed import launch
from liderlab.errors import UserError
from liderlab.methods import METHODS
from liderlab.regularizers import REGULARIZERS
from liderlab.runs import rank_process
from liderlab.runs.checkpoints import Checkpoints
from liderlab.runs.execute import run
from liderlab.runs.folder import RunFolder
from liderlab.runs.resume_proof import compare
from liderlab.training.evaluation import Evaluation
from outcome_lines import add_outcome, read_outcomes

SMALL: dict[str, Any] = {
    "benchmark": {"name": "synthetic", "tasks": 2},
    "backbone": {"width": 4},
    "memory": {"size": 16},
    "training": {"epochs": 2, "batch_size": 16},
    "log_every": 1,
    "checkpoint_every": 2,
    "threads": 1,
}
QUICK = {"gdumb": {"fit_epochs": 4}}
KILLS_PER_RUN = 8
ANYWHERE = "anywhere"
MOMENTS = {
    "start": None,
    "checkpoint": (Checkpoints, "write"),
    "evaluation": (Evaluation, "after_task"),
    ANYWHERE: None,
}
REFUSED = 2  # exit code of a configuration that cannot be


@dataclass(frozen=True)
class Case:
    method: str
    regularizers: tuple[str, ...]
    storage: str
    ranks: int

    def __str__(self) -> str:
        return (
            f"{'+'.join((self.method, *self.regularizers))}, {self.storage}, {self.ranks} rank(s)"
        )

    def config(self) -> RunConfig:
        """On the stream, where LiDER has no memory to watch."""
        stream = {"on": "stream"} if why_not(self.method, "lider", {}) else {}
        regularizers = {name: stream if name == "lider" else {} for name in self.regularizers}
        return make_config(
            SMALL,
            {"method": {"name": self.method, **QUICK.get(self.method, {})}},
            {"regularizers": regularizers, "memory": {"storage": self.storage}},
            {"devices": self.ranks},
        )


def cases(methods: Sequence[str], ranks: Sequence[int]) -> Iterator[Case]:
    """Every method with no regulariser, with LiDER, and with LiDER and the next one that fits."""
    for method in methods:
        fitting = [n for n in REGULARIZERS if n != "lider" and not why_not(method, n, {})]
        chosen = [(), ("lider",), *([("lider", fitting[0])] if fitting else [])]
        for regularizers, storage, number in product(chosen, ("ram", "disk"), ranks):
            yield Case(method, regularizers, storage, number)


class ForkedRank:
    """Stands for `subprocess.Popen` of the process of a rank: forked instead of started anew."""

    def __init__(self, command: list[str], **_: Any) -> None:
        self.args = command
        self.returncode: int | None = None
        reader, writer = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            os.dup2(reader, 0)
            os.closerange(3, 1024)  # a process that is started anew has no files of its parent
            sys.stdin, sys.argv = io.TextIOWrapper(io.FileIO(0)), command[2:]
            try:
                rank_process.main()
                os._exit(0)
            finally:
                os._exit(1)
        os.close(reader)
        self.stdin = os.fdopen(writer, "wb")

    def __class_getitem__(cls, _: type) -> type:
        return cls

    def poll(self) -> int | None:
        if self.returncode is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if ended else None
        return self.returncode

    def wait(self, timeout: float = 60) -> None:
        deadline = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(self.args, timeout)
            time.sleep(0.005)

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


def announce(owner: type, name: str, count: int, pipe: int) -> None:
    """Let the count-th call of a method write a byte to the pipe before it acts; on rank 0."""
    act, calls, process = getattr(owner, name), iter(range(1, 10**9)), os.getpid()

    def announced(self: Any, *arguments: Any, **options: Any) -> Any:
        if next(calls) == count and os.getpid() == process:
            os.write(pipe, b".")
        return act(self, *arguments, **options)

    setattr(owner, name, announced)


def start(config: RunConfig, folder: Path, prepare: Callable[[], None] = lambda: None) -> int:
    """Fork a process that begins or resumes the run; its output goes to FOLDER.log."""
    if child := os.fork():
        return child
    log = os.open(folder.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    code = 1
    try:
        torch.set_num_threads(1)
        launch.subprocess = SimpleNamespace(**{**vars(subprocess), "Popen": ForkedRank})
        prepare()
        run(config, folder, existing="resume")
        code = 0
    except UserError as error:
        print(error, flush=True)
        code = REFUSED
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def wait(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed(config: RunConfig, folder: Path, moment: str, seconds: float) -> int:
    """The exit code of a run that is killed at the moment, unless it ends before."""
    reader, writer = os.pipe()
    place = MOMENTS[moment]
    count = random.randint(1, 3)

    def prepare() -> None:
        if place is not None:
            announce(*place, count, writer)

    child = start(config, folder, prepare)
    os.close(writer)
    if place is not None:
        select.select([reader], [], [])  # the announcement, or the end of the process
        time.sleep(random.choice([0.0, random.uniform(0, seconds / 20)]))
    else:
        share = 0.2 if moment == "start" else 1.0
        time.sleep(random.uniform(0, share * seconds))
    os.kill(child, signal.SIGKILL)
    os.close(reader)
    return wait(child)


def kill_and_resume(case: Case, work: Path, kills: int) -> tuple[Counter[str], list[str]] | None:
    """The moments of the kills, and everything that differs; None if the case is refused."""
    config, whole, target = case.config(), RunFolder(work / "whole"), RunFolder(work / "killed")
    began = time.monotonic()
    if (code := wait(start(config, whole.path))) == REFUSED:
        return None
    if code:
        return Counter(), [f"the undisturbed run ended with {code}: {work / 'whole.log'}"]
    seconds, moments = time.monotonic() - began, Counter[str]()
    while moments.total() < kills:
        shutil.rmtree(target.path, ignore_errors=True)
        if different := survives(config, whole, target, seconds, kills, moments):
            return moments, different
    return moments, []


def survives(
    config: RunConfig,
    whole: RunFolder,
    target: RunFolder,
    seconds: float,
    kills: int,
    moments: Counter[str],
) -> list[str]:
    """Finish one run under kills, counted in `moments`; return everything that differs."""
    while not target.finished:
        if moments.total() < kills:
            moment = random.choice(list(MOMENTS))
            code = killed(config, target.path, moment, seconds)
            moments[moment] += code == -signal.SIGKILL
        else:
            code = wait(start(config, target.path))
        if code > 0:
            return [f"a resumed run ended with {code}: {target.path}.log"]
    return compare(whole, target)


def warm(found: Sequence[Case]) -> None:
    """Load what a run of every regulariser loads."""
    folder = Path(tempfile.mkdtemp(prefix="kills-"))
    for number, case in enumerate({case.regularizers: case for case in found}.values()):
        warm_up(lambda case=case, number=number: run(case.config(), folder / str(number)))
    shutil.rmtree(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--ranks", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path, default=Path("kill_results.jsonl"))
    options = parser.parse_args()
    found = list(cases(options.methods, options.ranks))
    random.Random(options.seed).shuffle(found)
    records = read_outcomes(options.results)
    warm([case for case in found if case.ranks == 1])
    while (done := count(records)).total() < options.kills:
        tried = len(records)
        case = found[tried % len(found)]
        random.seed(f"{options.seed}-{tried}")
        work = Path(tempfile.mkdtemp(prefix="kills-"))
        began = os.times()
        outcome = kill_and_resume(case, work, min(KILLS_PER_RUN, options.kills - done.total()))
        used = sum(after - before for before, after in zip(began[:4], os.times()[:4], strict=True))
        record: dict[str, Any] = {"case": str(case), "seconds": round(used, 1)}
        if outcome is None:
            record["refused"] = (work / "whole.log").read_text().strip()
        else:
            record |= {"kills": outcome[0], "different": outcome[1]}
        records.append(record)
        add_outcome(options.results, record)
        verdict = record.get("refused") or "; ".join(record["different"]) or "nothing differs"
        print(f"{count(records).total()} kills; {case}: {verdict}", flush=True)
        if not record.get("different"):
            shutil.rmtree(work)
    return summary(records, len(found))


def count(records: Sequence[dict[str, Any]]) -> Counter[str]:
    return sum((Counter(record.get("kills", {})) for record in records), Counter[str]())


def summary(records: Sequence[dict[str, Any]], possible: int) -> int:
    refused = {record["case"] for record in records if "refused" in record}
    tried = {record["case"] for record in records} - refused
    different = sum(bool(record.get("different")) for record in records)
    kills, seconds = count(records), sum(record["seconds"] for record in records)
    print(
        f"{kills.total()} kills ({', '.join(f'{n} {name}' for name, n in sorted(kills.items()))}) "
        f"in {len(tried)} of {possible} cases, {len(refused)} refused, "
        f"{seconds:.0f} s of processor time: {different} runs differ"
    )
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
