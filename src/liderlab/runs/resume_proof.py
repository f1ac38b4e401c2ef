"""Prove that a run can be killed anywhere: kill it, resume it, and compare to the bit."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..errors import RunFailed, UserError
from .folder import RunFolder

# time differs from run to run
NOT_COMPARED = {
    *("seconds", "seconds_cpu", "seconds_evaluating", "seconds_training", "images_per_second"),
}


@dataclass(frozen=True)
class ResumeVerdict:
    """kills: over all runs. differences: from the undisturbed run."""

    kills: int
    runs: int
    differences: list[str]


def verify_resume(
    arguments: Sequence[str], kills: int, folder: Path, say: Callable[[str], None]
) -> ResumeVerdict:
    """Compare an undisturbed `lider run` with runs that SIGKILL ends at random moments.

    A killed run is resumed until it has finished; then the next run starts, until `kills` kills
    are done.
    """
    whole = RunFolder(folder / "whole")
    with _started(arguments, whole.path) as process:
        _wait_for(process, whole)
    budget = whole.config().training.budget
    if budget and budget.seconds:
        raise UserError(
            "a budget of seconds ends a run by the clock, so no two runs are the same: choose "
            "training.budget.steps or passes"
        )
    training = whole.result()["seconds"]
    say(f"undisturbed: {training:.1f} s of training")
    often = ["--checkpoint-every", str(max(1, whole.state()["steps"] // 20))]
    done, runs, differences = 0, 0, []
    while done < kills:
        runs += 1
        target = RunFolder(folder / f"killed-{runs}")
        while not target.finished:
            moment = random.uniform(0, 2 * training / (kills - done + 1))
            # in front, so that --checkpoint-every in the arguments wins
            with _started([*often, "--resume", *arguments], target.path) as process:
                if done < kills and _kill(process, target, moment):
                    done += 1
                    say(f"killed {done}/{kills} after {moment:.2f} s of training")
                else:
                    _wait_for(process, target)
        differences += [f"{target.path.name}: {what}" for what in compare(whole, target)]
    return ResumeVerdict(done, runs, differences)


@contextmanager
def _started(arguments: Sequence[str], out: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A run in a process of its own, killed at the end of the block."""
    command = [sys.executable, "-m", "liderlab", "run", "--out", str(out), *arguments]
    with out.with_suffix(".log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _kill(process: subprocess.Popen[bytes], folder: RunFolder, moment: float) -> bool:
    """Kill the process `moment` seconds after training began; False if it had finished by then."""
    while process.poll() is None and not folder.locked:
        time.sleep(0.005)
    try:
        process.wait(moment)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return not folder.finished
    return False


def _wait_for(process: subprocess.Popen[bytes], folder: RunFolder) -> None:
    process.wait()
    if not folder.finished:
        output = folder.path.with_suffix(".log").read_text().strip().splitlines()
        reason = output[-1].removeprefix("lider: ") if output else "it printed nothing"
        raise (
            UserError(reason) if process.returncode == 2 else RunFailed(f"the run failed: {reason}")
        )


def compare(one: RunFolder, other: RunFolder) -> list[str]:
    """The names of everything that differs between two finished runs: weights, metrics, …"""
    states = [f.read_memory(f.state()) for f in (one, other)]
    states = [{k: v for k, v in state.items() if k not in NOT_COMPARED} for state in states]
    results = [{k: v for k, v in f.result().items() if k not in NOT_COMPARED} for f in (one, other)]
    for tree in (*states, *results):
        tree["config"] = {k: v for k, v in tree["config"].items() if k != "checkpoint_every"}
    logs = [(f.path / "metrics.jsonl").read_bytes() for f in (one, other)]
    found = unequal(states[0], states[1], "checkpoint")
    found += [] if json.dumps(results[0]) == json.dumps(results[1]) else ["result.json"]
    return found + ([] if logs[0] == logs[1] else ["metrics.jsonl"])


def unequal(a: Any, b: Any, name: str) -> list[str]:
    """The names of the leaves in which two trees of tensors and values differ, to the bit.

    >>> unequal({"w": torch.tensor([1.0])}, {"w": torch.tensor([2.0])}, "network")
    ['network.w']
    """
    if isinstance(a, Mapping) and isinstance(b, Mapping) and a.keys() == b.keys():
        return [leaf for key in a for leaf in unequal(a[key], b[key], f"{name}.{key}")]
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)) and len(a) == len(b):
        pairs = zip(a, b, strict=True)
        return [leaf for i, (x, y) in enumerate(pairs) for leaf in unequal(x, y, f"{name}.{i}")]
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        same = a.shape == b.shape and a.dtype == b.dtype
        if same and a.numel():
            same = torch.equal(*(t.reshape(-1).view(torch.uint8) for t in (a, b)))
    else:
        same = type(a) is type(b) and a == b
    return [] if same else [name]
