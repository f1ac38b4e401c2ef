"""The placement of a process, from its environment variables."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from liderlab.distributed.launch import SilentExit, begin_together, choose_device
from liderlab.distributed.placement import Placement, find_placement, torchrun_size
from liderlab.distributed.team import Team
from liderlab.errors import UserError

TORCHRUN = {
    "TORCHELASTIC_RUN_ID": "x",
    "RANK": "5",
    "WORLD_SIZE": "8",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "4",
}
SLURM = {
    "SLURM_STEP_NUM_TASKS": "8",
    "SLURM_STEP_NUM_NODES": "2",
    "SLURM_PROCID": "5",
    "SLURM_LOCALID": "1",
}


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*TORCHRUN, *SLURM):
        monkeypatch.delenv(name, raising=False)


def put(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


def test_rank_0_starts_the_others() -> None:
    assert find_placement(3) == Placement(0, 3, 0, 3)
    assert not find_placement(3).external
    assert torchrun_size() is None


def test_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, TORCHRUN)
    assert torchrun_size() == 8
    assert find_placement(8) == Placement(5, 8, 1, 4, "torchrun")
    assert find_placement(1) == Placement()  # a run of its own
    with pytest.raises(UserError, match="torchrun has started 8 processes"):
        find_placement(2)


def test_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, SLURM)
    assert torchrun_size() is None  # tasks may be runs that have nothing to do with each other
    assert find_placement(8) == Placement(5, 8, 1, 4, "slurm")
    monkeypatch.setenv("SLURM_STEP_NUM_NODES", "3")
    with pytest.raises(UserError, match="8 tasks on 3 nodes"):
        find_placement(8)


def test_a_job_of_one_task_starts_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, SLURM | {"SLURM_STEP_NUM_TASKS": "1"})
    assert find_placement(2) == Placement(0, 2, 0, 2)


def test_ranks_under_slurm_meet_at_the_first_node(monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, SLURM | {"SLURM_NODELIST": "n[3-4]", "SLURM_JOB_ID": "77"})
    assert find_placement(8).init_method == "tcp://n3:15077"
    put(monkeypatch, {"MASTER_ADDR": "head", "MASTER_PORT": "2000"})
    assert find_placement(8).init_method == "tcp://head:2000"


@pytest.mark.parametrize("device", ["cuda:1", "mps"])
def test_every_rank_has_its_own_device(device: str) -> None:
    with pytest.raises(UserError, match="--device cuda or --device cpu"):
        choose_device(device, Placement(0, 2, 0, 2))


def test_too_few_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    for device in ("cuda", "auto"):
        with pytest.raises(UserError, match=r"2 ranks .* need a GPU each, but .* sees 1"):
            choose_device(device, Placement(0, 2, 0, 2))
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    assert choose_device("auto", Placement(0, 2, 0, 2)) == "cpu"


class Answering(Team):
    """Ranks with given answers."""

    words: list[tuple[str | None, str]]

    def gather_objects(self, word: object) -> list[object]:
        return [word if rank == self.rank else w for rank, w in enumerate(self.words)]


def answering(rank: int, *words: tuple[str | None, str]) -> Answering:
    team = Answering(rank, len(words))
    team.words = list(words)
    return team


def begins(team: Team, error: Exception | None = None) -> Callable[[], None]:
    return lambda: begin_together(team, error, "this run")


def test_all_ranks_begin_or_none() -> None:
    fine, broken = (None, "this run"), ("no data", "")
    begins(answering(0, fine, fine))()
    begins(answering(1, fine, fine))()
    with pytest.raises(UserError, match="rank 1 cannot begin: no data"):
        begins(answering(0, fine, broken))()
    with pytest.raises(SilentExit):
        begins(answering(2, fine, broken, fine))()
    with pytest.raises(ZeroDivisionError):  # rank 0's own error is raised unchanged
        begins(answering(0, fine, fine), ZeroDivisionError("x"))()


def test_ranks_with_different_options_are_refused() -> None:
    with pytest.raises(UserError, match="do not have the same options"):
        begins(answering(0, (None, ""), (None, "another run")))()
