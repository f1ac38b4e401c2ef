"""The cost of training: peak memory of a process, and samples per second."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter
from typing import Any

from .analysis_result import AnalysisResult


@dataclass(frozen=True, eq=False)
class ChildMeasurement(AnalysisResult):
    """The value and the cost of a call in a process of its own.

    peak_bytes: the most physical memory that the process held, libraries included; start_bytes: the
    same just before the call. seconds: of the call alone.
    """

    value: Any
    peak_bytes: int
    start_bytes: int
    seconds: float


def measure_in_child(function: Callable[..., Any], *args: Any, **options: Any) -> ChildMeasurement:
    """Call a function in a new process, and measure that process's memory.

    The peak of a process never falls, so only a new process shows what one call needs. The
    function, its arguments and its value travel between processes: it must be importable by name,
    and a script that calls this needs the usual `if __name__ == "__main__":`. An exception in the
    child is raised here as a RuntimeError.

    >>> measure_in_child(sum, [1, 2, 3]).value
    6
    """
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_measure, args=(theirs, function, args, options))
    child.start()
    theirs.close()  # so that recv ends if the child dies
    try:
        answer = ours.recv()
    except EOFError:
        answer = None
    finally:
        ours.close()
        child.join()
    if answer is None:
        raise RuntimeError(f"The process ended without a result (exit code {child.exitcode}).")
    if isinstance(answer, str):
        raise RuntimeError(f"The call failed in its process: {answer}")
    return ChildMeasurement(*answer)


def _measure(
    pipe: Connection, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
) -> None:
    start, began = peak_memory(), perf_counter()
    try:
        value = function(*args, **options)
        pipe.send((value, peak_memory(), start, perf_counter() - began))
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {error}")


def peak_memory() -> int:
    """The most bytes of physical memory that this process has held.

    On Linux from the kernel's high-water mark; `getrusage` would count a child's parent, too.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


@dataclass(frozen=True, eq=False)
class Throughput(AnalysisResult):
    """samples_per_second: by the median step. seconds: of each timed step."""

    samples_per_second: float
    seconds: list[float]


def throughput(
    step: Callable[[], Any],
    samples: int,
    *,
    warmup: int = 3,
    repeats: int = 20,
    clock: Callable[[], float] = perf_counter,
) -> Throughput:
    """Samples per second of a step that handles `samples` of them, by the median of `repeats`.

    clock: `time.process_time` counts the processor time of this process alone, which compares
    single-threaded steps on a busy machine.

    >>> throughput(lambda: sum(range(1000)), samples=10, repeats=5).samples_per_second > 0
    True
    """
    if repeats < 1 or samples < 1:
        raise ValueError(f"Expected repeats and samples ≥ 1, but got {repeats} and {samples}.")
    for _ in range(warmup):
        step()
    seconds = []
    for _ in range(repeats):
        began = clock()
        step()
        _wait_for_devices()
        seconds.append(clock() - began)
    return Throughput(samples / statistics.median(seconds), seconds)


def _wait_for_devices() -> None:
    """Wait for CUDA, whose calls return before their work is done."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.synchronize()
