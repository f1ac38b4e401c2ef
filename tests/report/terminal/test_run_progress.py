"""Progress of runs and sweeps: times are labelled, and every display tells the same."""

import io
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from liderlab.config.merging import make_config
from liderlab.report.terminal.run_progress import ProgressDisplay
from liderlab.report.terminal.sweep_progress import SweepDisplay
from liderlab.runs.build import Run
from liderlab.runs.execute import run
from liderlab.runs.folder import RunFolder
from liderlab.runs.pace import Pace
from liderlab.runs.planned_run import PlannedRun
from liderlab.training.loop import Event, StepDone

TINY: dict[str, Any] = {
    "benchmark": {"name": "synthetic", "per_class": 32},
    "backbone": {"name": "mlp", "width": 8},
    "training": {"epochs": 3},
}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr("liderlab.runs.pace.time.monotonic", lambda: clock.now)
    return clock


def loop_of(planned: int, steps: int = 0) -> Any:
    return SimpleNamespace(budget=None, steps=steps, planned_steps=lambda: planned)


def go(pace: Pace, loop: Any, clock: SimpleNamespace, steps: int, seconds: float) -> None:
    for _ in range(steps):
        clock.now += seconds
        loop.steps += 1
        pace.update(loop)


def test_speed_is_that_of_the_last_task(clock: SimpleNamespace) -> None:
    pace, loop = Pace(tasks=3), loop_of(3000)
    pace.update(loop)
    assert (pace.speed, pace.left, pace.done) == (None, None, 0.0)
    go(pace, loop, clock, 1000, 0.1)
    assert pace.speed == pytest.approx(10)
    assert pace.left == pytest.approx(200)
    clock.now += 50  # an evaluation
    pace.update(loop)
    assert pace.left == pytest.approx(2000 * 0.15)
    go(pace, loop, clock, 1000, 0.2)  # the second task replays: half as fast
    clock.now += 50
    pace.update(loop)
    assert pace.left == pytest.approx(1000 * 0.25, rel=0.01)
    assert pace.done == pytest.approx(2 / 3)


def test_a_resumed_run_measures_its_own_steps(clock: SimpleNamespace) -> None:
    pace, loop = Pace(tasks=2), loop_of(1000, steps=600)
    pace.update(loop)
    assert pace.left is None
    go(pace, loop, clock, 100, 0.5)
    assert pace.left == pytest.approx(150)


def test_a_long_run_keeps_few_marks(clock: SimpleNamespace) -> None:
    pace, loop = Pace(tasks=2), loop_of(50_000)
    pace.update(loop)
    go(pace, loop, clock, 30_000, 0.01)
    assert len(pace._marks) <= 102
    assert pace.left == pytest.approx(200)


def test_more_steps_than_planned_are_no_more_than_all(clock: SimpleNamespace) -> None:
    pace, loop = Pace(tasks=1), loop_of(10)
    pace.update(loop)
    go(pace, loop, clock, 12, 1.0)
    assert (pace.done, pace.left) == (1.0, 0.0)


class Lines(io.StringIO):
    """The text of a display, without the codes that move the cursor and set colours."""

    def frames(self) -> str:
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.getvalue())


def test_a_terminal_shows_accuracy_speed_and_labelled_time_left(tmp_path: Path) -> None:
    text = Lines()
    console = Console(file=text, force_terminal=True, width=80, height=24)
    with ProgressDisplay(console) as display:

        def listen(work: Run, event: Event) -> None:
            display(work, event)
            display._bar.refresh()  # type: ignore[union-attr]

        run(make_config(TINY), tmp_path / "x", listener=listen)
    frames = text.frames()
    assert re.search(r"task 2/3 epoch 1/3 .*\d% \d+ s left", frames)
    assert re.search(r"class-incremental accuracy so far \d+\.\d\d %, [\d.]+ steps/s", frames)
    assert "replay 0." in frames or "replay 1." in frames
    assert not re.search(r"\d:\d\d", frames)  # a time without a label
    assert all(len(line) <= 80 for line in re.split(r"[\r\n]", frames))


def test_a_long_label_leaves_room_for_the_bar(tmp_path: Path) -> None:
    text = Lines()
    label = "run 1/4 split-digits-der++-lider-b50-seed0-c097b93a"
    with ProgressDisplay(Console(file=text, force_terminal=True, width=80), runs=4) as display:
        display.begin(label)

        def listen(work: Run, event: Event) -> None:
            display(work, event)
            display._bar.refresh()  # type: ignore[union-attr]

        run(make_config(TINY), tmp_path / "x", listener=listen)
    lines = re.split(r"[\r\n]+", text.frames())
    assert label in [line.strip() for line in lines]
    bar = next(line for line in lines if line.startswith("task 2/3 epoch 2/3"))
    assert bar.count("━") + bar.count("╸") + bar.count("╺") > 30
    assert bar.rstrip().endswith(" s left")


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines of a run whose output is a file, with a line every so often."""
    monkeypatch.setattr("liderlab.report.terminal.run_progress.LINE_EVERY", 0.0)
    text = io.StringIO()
    with ProgressDisplay(Console(file=text)) as display:
        run(make_config(TINY), tmp_path / "x", listener=display)
    return text.getvalue().splitlines()


def test_a_log_has_lines_between_the_ends_of_tasks(log: list[str]) -> None:
    line = next(line for line in log if line.startswith("  task 3/3 epoch 1/3"))
    known = r"\d+ s left, class-incremental accuracy so far \d+\.\d\d %, [\d.]+ steps/s, stream \d"
    assert re.match(rf"  task 3/3 epoch 1/3: {known}", line)
    assert len(log) > 9


def test_a_quick_run_has_two_lines_per_task(tmp_path: Path) -> None:
    text = io.StringIO()
    with ProgressDisplay(Console(file=text)) as display:
        run(make_config(TINY), tmp_path / "x", listener=display)
    lines = text.getvalue().splitlines()
    assert [line.split()[1] for line in lines] == ["1/3", "1/3", "2/3", "2/3", "3/3", "3/3"]


def test_watch_and_sweep_tell_what_run_tells(tmp_path: Path) -> None:
    """All three take the time left from one place."""
    told = []

    def listen(work: Run, event: Event) -> None:
        if not isinstance(event, StepDone):
            progress = RunFolder(tmp_path / "x").progress()
            assert progress is not None
            assert progress["left"] == work.pace.left
            assert progress["speed"] == work.pace.speed
            display = SweepDisplay(Console(file=io.StringIO()), [plan])
            told.append((progress["left"], display._progress("x")))

    plan = PlannedRun("x", make_config(TINY), tmp_path / "x")
    run(plan.config, plan.folder, listener=listen)
    assert len(told) == 3
    assert told[0][0] > 0
    assert [text for _, text in told] == [
        f"{share} %, {left:.0f} s left"
        for (left, _), share in zip(told, (33, 67, 100), strict=True)
    ]


def test_runs_that_follow_count_in_the_time_left(tmp_path: Path) -> None:
    display = ProgressDisplay(Console(file=io.StringIO()), runs=3)
    work: Any = SimpleNamespace(pace=SimpleNamespace(left=10.0))
    display._begun = 0.0
    assert display._seconds_left(work, now=5.0) == 10 + 2 * 15
    display._done = 2
    assert display._seconds_left(work, now=5.0) == 10


def test_a_sweep_says_that_a_run_is_starting(tmp_path: Path) -> None:
    plan = PlannedRun("x", make_config(TINY), tmp_path / "x")
    assert SweepDisplay(Console(file=io.StringIO()), [plan])._progress("x") == "starting"
