"""SIGKILL at random moments, over every method, regulariser, memory and number of ranks.

    python benchmarks/kill_campaign.py --kills 1000
    python benchmarks/kill_campaign.py --kills 20 --methods er der++ --ranks 1

Each case trains once undisturbed and once under kills, resumed each time, and compares the two to
the bit: weights, memory, generators, metrics, result. A process is forked from one that has loaded
torch, and killed after a random share of the time that an undisturbed run takes, its start
included. Exit code 1 if anything differs.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import torch

from liderlab.config.compatibility import why_not
from liderlab.config.merging import make_config
from liderlab.config.schema import RunConfig
from liderlab.errors import UserError
from liderlab.methods import METHODS
from liderlab.regularizers import REGULARIZERS
from liderlab.runs.execute import run
from liderlab.runs.folder import RunFolder
from liderlab.runs.resume_proof import compare

SMALL: dict[str, Any] = {
    "benchmark": "synthetic",
    "backbone": {"width": 8},
    "log_every": 1,
    "checkpoint_every": 2,
    "threads": 1,
}
QUICK = {"gdumb": {"fit_epochs": 4}}
KILLS_PER_RUN = 5
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


def start(config: RunConfig, folder: Path) -> int:
    """Fork a process that begins or resumes the run; its output goes to FOLDER.log."""
    if child := os.fork():
        return child
    log = os.open(folder.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    code = 1
    try:
        torch.set_num_threads(1)
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


def moment(folder: RunFolder) -> str:
    """The work that a kill has just interrupted, as its files tell."""
    if not folder.begun:
        return "start"
    if any(folder.checkpoints.folder.glob(".step-*")):
        return "writing a checkpoint"
    return "training or evaluating" if folder.checkpoints.files() else "before a checkpoint"


def kill_and_resume(case: Case, work: Path, kills: int) -> tuple[Counter[str], list[str]] | None:
    """The moments of the kills, and everything that differs; None if the case is refused."""
    config, whole, target = case.config(), RunFolder(work / "whole"), RunFolder(work / "killed")
    began = time.monotonic()
    if (code := wait(start(config, whole.path))) == REFUSED:
        return None
    if code:
        return Counter(), [f"the undisturbed run ended with {code}"]
    seconds, moments = time.monotonic() - began, Counter[str]()
    while not target.finished:
        child = start(config, target.path)
        if moments.total() < kills:
            time.sleep(random.uniform(0, seconds))
            os.kill(child, signal.SIGKILL)
        code = wait(child)
        if code == -signal.SIGKILL and not target.finished:
            moments[moment(target)] += 1
        elif code > 0:
            return moments, [f"a resumed run ended with {code}: {work / 'killed.log'}"]
    return moments, compare(whole, target)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--ranks", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    random.seed(options.seed)
    found = list(cases(options.methods, options.ranks))
    random.shuffle(found)
    moments, done, refused, different, began = Counter[str](), 0, set(), 0, time.monotonic()
    while moments.total() < options.kills and len(refused) < len(found):
        case = found[done % len(found)]
        done += 1
        if case in refused:
            continue
        work = Path(tempfile.mkdtemp(prefix="kills-"))
        kills = min(KILLS_PER_RUN, options.kills - moments.total())
        if (outcome := kill_and_resume(case, work, kills)) is None:
            refused.add(case)
            print(f"{case}: refused: {(work / 'whole.log').read_text().strip()}", flush=True)
            continue
        moments += outcome[0]
        different += bool(outcome[1])
        verdict = "; ".join(outcome[1]) or "nothing differs"
        print(f"{moments.total()}/{options.kills} kills, {case}: {verdict}", flush=True)
        if not outcome[1]:
            shutil.rmtree(work)
    tried = min(done, len(found)) - len(refused)
    print(
        f"{moments.total()} kills ({', '.join(f'{n} {name}' for name, n in moments.items())}) in "
        f"{tried} of {len(found)} cases, {len(refused)} refused, "
        f"{time.monotonic() - began:.0f} s: {different} runs differ"
    )
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
