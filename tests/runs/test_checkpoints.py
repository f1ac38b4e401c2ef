import os
import pickle
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from liderlab.errors import UserError
from liderlab.runs.checkpoints import MAGIC, Checkpoints, Damaged, pack, unpack

STATE = {"steps": 7, "network": {"w": torch.arange(4.0)}}
PACKED = pack(STATE)


def test_round_trip() -> None:
    assert torch.equal(unpack(PACKED)["network"]["w"], torch.arange(4.0))


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_any_changed_byte_is_noticed(data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(PACKED) - 1))
    flip = data.draw(st.integers(1, 255))
    damaged = bytearray(PACKED)
    damaged[place] ^= flip
    with pytest.raises(Damaged):
        unpack(bytes(damaged))


@given(st.one_of(st.binary(max_size=200), st.integers(0, len(PACKED) - 1).map(PACKED.__getitem__)))
@settings(max_examples=150, deadline=None)
def test_anything_else_is_refused(data: bytes | int) -> None:
    with pytest.raises(Damaged):
        unpack(data if isinstance(data, bytes) else PACKED[:data])


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch /tmp/liderlab-was-here",)


def test_a_crafted_pickle_runs_nothing(tmp_path: Path) -> None:
    import hashlib

    torch.save({"schema": 1, "x": Evil()}, tmp_path / "evil.pt")
    for payload in ((tmp_path / "evil.pt").read_bytes(), pickle.dumps(Evil())):
        with pytest.raises(Damaged):
            unpack(MAGIC + hashlib.sha256(payload).digest() + payload)
    assert not Path("/tmp/liderlab-was-here").exists()


def test_another_schema_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("liderlab.runs.checkpoints.SCHEMA", 2)
    data = pack(STATE)
    monkeypatch.undo()
    with pytest.raises(Damaged, match="schema 2"):
        unpack(data)


def test_the_last_two_are_kept_and_a_damaged_one_is_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    checkpoints = Checkpoints(tmp_path / "c")
    assert checkpoints.latest() is None
    for steps in (1, 2, 10):
        checkpoints.write({"steps": steps})
    assert [file.name for file in checkpoints.files()] == [
        "step-000000000010.pt",
        "step-000000000002.pt",
    ]
    assert checkpoints.latest() == {"schema": 1, "steps": 10}
    newest = checkpoints.files()[0]
    newest.write_bytes(newest.read_bytes()[:-1])
    assert checkpoints.latest() == {"schema": 1, "steps": 2}
    assert "cannot be used" in caplog.text
    checkpoints.files()[1].write_bytes(b"")
    with pytest.raises(UserError, match="--force"):
        checkpoints.latest()
