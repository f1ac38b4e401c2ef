"""Images in a file: the same memory as in RAM, in little RAM, with intact checkpoints."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from liderlab.errors import UserError
from liderlab.memory import POLICIES, Column, Memory, Poison
from liderlab.memory.disk_rows import DiskColumn, stored_bytes

SHAPE = (2, 3, 3)
COLUMNS = {"logits": Column((4,)), "edits": Column((), torch.int64)}
FLOAT = {"x": Column(None), "edits": Column((), torch.int64)}  # GMED's


def memory(policy: str, columns: Any = COLUMNS, size: int = 12, **where: Any) -> Memory:
    poison = Poison(0.3, [range(2), range(2, 5)], seed=0)
    return Memory(size, SHAPE, columns, POLICIES.load(policy)(), poison, **where)


def rows(n: int, seed: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(5, (n,), generator=generator)
    x = torch.randint(256, (n, *SHAPE), generator=generator, dtype=torch.uint8)
    return {"x": x, "y": y, "task": (y > 1).long(), "edits": torch.arange(n)}


def content(memory: Memory) -> dict[str, Tensor]:
    return memory.rows(torch.arange(len(memory)))


def fill(memory: Memory, policy: str, seed: int) -> None:
    if policy == "herding":
        keep = torch.arange(len(memory)).flip(0)[:4]
        memory.rebuild(keep, **rows(8, seed))
    else:
        memory.offer(torch.Generator().manual_seed(seed), **rows(9, seed))
    if len(memory):
        slots = memory.draw(3, torch.Generator().manual_seed(seed))
        x = memory.rows(slots)["x"] + 1
        memory.update(slots, x=x, edits=torch.full((len(slots),), seed))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("columns", [COLUMNS, FLOAT], ids=["uint8", "float"])
def test_it_holds_the_same_as_a_memory_in_ram(
    policy: str, columns: Any, tmp_path: Path, differences: Callable[..., list[str]]
) -> None:
    ram = memory(policy, columns)
    disk = memory(policy, columns, storage="disk", folder=tmp_path)
    for seed in range(8):
        for each in (ram, disk):
            fill(each, policy, seed)
        assert not differences(content(disk), content(ram))
    assert isinstance(disk.data["x"], DiskColumn)
    assert (tmp_path / "x.rows").is_file()


@given(data=st.data(), policy=st.sampled_from(list(POLICIES)))
def test_no_write_changes_a_kept_checkpoint(data: st.DataObject, policy: str) -> None:
    """Random writes, checkpoints (two are kept; some by the same name) and crashes."""
    live = memory(policy, storage="disk")
    column = live.data["x"]
    assert isinstance(column, DiskColumn)
    kept: dict[int, tuple[Any, dict[str, Tensor]]] = {}
    step = 0
    for event in data.draw(st.lists(st.sampled_from("wwwcsxy"), max_size=24)):
        if event == "w":
            step += 1
            fill(live, policy, step)
        elif event in "cs":  # a checkpoint, perhaps at the same step as the last
            kept[step] = (copy.deepcopy(live.state_dict()), content(live))
            kept = {number: kept[number] for number in sorted(kept)[-2:]}
            live.checkpointed(step, min(kept))
        elif kept:  # a crash; y: the newest checkpoint is damaged, if there is another
            if event == "y" and len(kept) > 1:
                del kept[max(kept)]
            step = max(kept)
            live.load_state_dict(kept[step][0])  # in the same file, as a new process would
            live.checkpointed(step, min(kept))
        for state, expected in kept.values():
            held = stored(column, state)
            assert torch.equal(held, expected["x"])
        assert column.places <= 3 * live.size


def stored(column: DiskColumn, state: Any) -> Tensor:
    handle, size = column.open(), column._bytes
    read = [os.pread(handle, size, p * size) for p in state["data"]["x"]["place"].tolist()]
    whole = torch.tensor(list(b"".join(read)), dtype=torch.uint8)
    return whole.reshape(-1, *SHAPE)


@pytest.mark.parametrize("policy", POLICIES)
def test_another_process_resumes_from_the_file(
    policy: str, tmp_path: Path, differences: Callable[..., list[str]]
) -> None:
    whole, killed = (memory(policy, storage="disk", folder=tmp_path / n) for n in "ab")
    for seed in range(4):
        for each in (whole, killed):
            fill(each, policy, seed)
    torch.save(killed.state_dict(), tmp_path / "state.pt")
    killed.checkpointed(4, 4)
    for seed in range(90, 95):
        fill(killed, policy, seed)  # lost
    again = memory(policy, storage="disk", folder=tmp_path / "b")
    again.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    for seed in range(4, 8):
        for each in (whole, again):
            fill(each, policy, seed)
    assert not differences(content(again), content(whole))
    state = again.state_dict()["data"]["x"]
    held = stored_bytes(tmp_path / "b" / "x.rows", state)
    assert torch.equal(held.reshape(-1, *SHAPE), content(whole)["x"])


def test_a_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    first = memory("reservoir", storage="disk", folder=tmp_path)
    fill(first, "reservoir", 0)
    state = copy.deepcopy(first.state_dict())
    file = tmp_path / "x.rows"
    good = file.read_bytes()
    place = int(state["data"]["x"]["place"][4]) * 18
    flipped = bytes([good[place] ^ 1])
    for damaged in (good[:place] + flipped + good[place + 1 :], good[:20], b"", None):
        file.unlink()
        if damaged is not None:
            file.write_bytes(damaged)
        again = memory("reservoir", storage="disk", folder=tmp_path)
        with pytest.raises(UserError, match=r"x\.rows has changed since this run's checkpoint"):
            again.load_state_dict(state)
    file.write_bytes(good)
    memory("reservoir", storage="disk", folder=tmp_path).load_state_dict(state)


def test_no_file_before_the_first_row(tmp_path: Path) -> None:
    empty = memory("reservoir", storage="disk", folder=tmp_path / "m")
    state = empty.state_dict()
    assert len(stored_bytes(tmp_path / "m" / "x.rows", state["data"]["x"])) == 0
    empty.load_state_dict(state)
    assert len(content(empty)["x"]) == 0
    assert not (tmp_path / "m").exists()


def test_a_slot_cannot_be_kept_twice(tmp_path: Path) -> None:
    column = DiskColumn(4, (2,), torch.int64)
    with pytest.raises(ValueError, match="different slots"):
        column.rearrange(torch.tensor([1, 1]))


@pytest.mark.skipif(sys.platform != "linux", reason="reads a process's size from /proc")
def test_a_hundred_thousand_large_images_take_little_ram(tmp_path: Path) -> None:
    """15 GB of images (in a file that is mostly holes), with draws, offers and checkpoints."""
    program = f"""
import os, torch, zlib
from pathlib import Path
from liderlab.memory import POLICIES, Memory

def size(what):
    line = next(l for l in open("/proc/self/status") if l.startswith(what))
    return int(line.split()[1]) * 1024
n, shape = 100_000, (3, 224, 224)
policy, folder = POLICIES.load("reservoir")(), Path({str(tmp_path)!r})
memory = Memory(n, shape, {{}}, policy, storage="disk", folder=folder)
generator = torch.Generator().manual_seed(0)
x = torch.randint(256, (64, *shape), generator=generator, dtype=torch.uint8)
y = torch.arange(64)
open("/proc/self/clear_refs", "w").write("5")  # forget the peak so far
before = size("VmRSS")
column = memory.data["x"]
column._young += bytes(n)  # as after 100,000 black images, but for writing them
os.ftruncate(column.open(), n * 3 * 224 * 224)
column._place[:] = range(n)
column._sum[:] = zlib.crc32(bytes(3 * 224 * 224))
memory.filled = memory.seen = n
for step in range(60):
    slots = memory.draw(64, generator)
    rows = memory.rows(slots)
    kept = memory.offer(generator, x=x, y=y, task=y)
    if step % 20 == 0:
        memory.state_dict()
        memory.checkpointed(step, step - 20)
assert torch.equal(memory.rows(kept[kept >= 0])["x"], x[kept >= 0])
print(size("VmHWM") - before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert 10e6 < int(done.stdout) < 100e6  # of 15 GB: a batch or two, and the tables
    file = tmp_path / "x.rows"
    assert file.stat().st_size > 15e9
    assert file.stat().st_blocks * 512 < 1e9
