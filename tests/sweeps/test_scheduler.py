"""The scheduler's rules, on an engine with scripted endings."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from liderlab.runs.folder import RunFolder
from liderlab.runs.planned_run import PlannedRun
from liderlab.sweeps import engine as engines
from liderlab.sweeps.engine import Ended
from liderlab.sweeps.failure_file import read_failure, write_failure
from liderlab.sweeps.scheduler import Scheduler, run_all
from liderlab.sweeps.worker import Job, execute


class ScriptedEngine:
    """Ends every run as scripted, one at a time; "done" leaves a result."""

    def __init__(self, **endings: list[str | None]) -> None:
        self.endings, self.started, self.cancelled = endings, [], []
        self.running: list[PlannedRun] = []
        self.closed = False

    def start(self, waiting: Sequence[PlannedRun]) -> list[PlannedRun]:
        if self.running:
            return []
        self.running = [waiting[0]]
        self.started.append(waiting[0].name)
        return [waiting[0]]

    def ended(self, seconds: float) -> list[Ended]:
        if not self.running:
            return []
        plan = self.running.pop()
        ending = self.endings[plan.name].pop(0)
        plan.folder.mkdir(parents=True, exist_ok=True)
        if ending == "done":
            RunFolder(plan.folder).write_result({})
        if ending == "failed":
            write_failure(plan.folder, "no luck", ValueError("no luck"))
        return [Ended(plan, ending, "struck by lightning")]

    def cancel(self, plan: PlannedRun) -> None:
        self.cancelled.append(plan.name)

    def close(self) -> None:
        self.closed = True


def test_dead_workers_are_replaced_and_failed_runs_are_not_retried(plan, monkeypatch) -> None:
    monkeypatch.setattr("liderlab.sweeps.scheduler.BUSY", 0.0)
    engine = ScriptedEngine(a=[None, None, "done"], b=["failed"], c=[None] * 3, d=["busy", "done"])
    plans = [plan(name) for name in "abcd"]
    outcomes = run_all(plans, engine=engine)
    assert [outcome.state for outcome in outcomes] == ["done", "failed", "failed", "done"]
    assert sorted(engine.started) == list("aaabcccdd")
    assert outcomes[1].error == "no luck"
    assert "3 times: struck by lightning" in (outcomes[2].error or "")
    assert read_failure(plans[2].folder) == outcomes[2].error
    assert engine.closed


def test_finished_runs_are_skipped_and_failed_ones_retried_on_demand(plan, monkeypatch) -> None:
    monkeypatch.setattr(RunFolder, "intact", RunFolder.finished)  # scripted results are empty
    plans = [plan(name) for name in "ab"]
    run_all(plans, engine=ScriptedEngine(a=["done"], b=["failed"]))
    again = ScriptedEngine()
    outcomes = run_all(plans, engine=again)
    assert [outcome.state for outcome in outcomes] == ["done", "failed"]
    assert again.started == []
    retry = ScriptedEngine(b=["done"])
    assert [o.state for o in run_all(plans, engine=retry, retry_failed=True)] == ["done", "done"]
    assert retry.started == ["b"]
    assert read_failure(plans[1].folder) is None


@pytest.mark.usefixtures("inline_engine")
@pytest.mark.parametrize("moment", ["before", "meanwhile"])
def test_the_result_of_another_sweep_does_not_count(plan, monkeypatch, moment: str) -> None:
    """Two sweeps in one folder plan runs of the same name with other values."""
    long, short = plan("a", training={"epochs": 2}), plan("a")
    engine = engines.make_engine("local", 1, None, None, long.folder)
    start = engine.start

    def late(waiting: Sequence[PlannedRun]) -> list[PlannedRun]:
        execute(Job.of(short))
        return start(waiting)

    if moment == "before":
        execute(Job.of(short))
    else:
        monkeypatch.setattr(engine, "start", late)
    (outcome,) = run_all([long], engine=engine)
    assert outcome.state == "failed"
    assert "training.epochs was 1, now 2" in (outcome.error or "")
    assert read_failure(short.folder) is None, "the other sweep's folder is left alone"
    assert run_all([short], engine=engine)[0].state == "done"


def test_a_stopped_scheduler_starts_nothing_more(plan) -> None:
    engine = ScriptedEngine(a=[None])
    scheduler = Scheduler(engine)
    for name in "ab":
        scheduler.add(plan(name))
    engine.ended = lambda seconds: []  # type: ignore[method-assign]
    scheduler.tick()
    scheduler.stop()
    scheduler.stop()  # a second signal would kill a run that is saving
    assert engine.cancelled == ["a"]
    del engine.ended
    assert [(o.plan.name, o.state) for o in scheduler.tick()] == [("a", "stopped")]
    assert scheduler.unfinished == 0
    assert engine.started == ["a"]


def test_the_engine_is_closed_after_an_exception(plan) -> None:
    engine = ScriptedEngine()  # without an ending for the run
    with pytest.raises(KeyError):
        run_all([plan("a")], engine=engine)
    assert engine.closed
