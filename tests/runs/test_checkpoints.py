import os
import pickle
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from liderlab.errors import UserError
from liderlab.runs.checkpoints import MAGIC, Checkpoints, Damaged, read_state, write_state

STATE = {"steps": 7, "network": {"w": torch.arange(4.0)}}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state") / "state.pt"


@pytest.fixture(scope="module")
def packed(file: Path) -> bytes:
    write_state(file, STATE)
    return file.read_bytes()


def refused(file: Path, data: bytes, why: str | None = None) -> None:
    file.write_bytes(data)
    with pytest.raises(Damaged, match=why):
        read_state(file)


def test_round_trip(tmp_path: Path) -> None:
    write_state(tmp_path / "s.pt", STATE)
    assert torch.equal(read_state(tmp_path / "s.pt")["network"]["w"], torch.arange(4.0))


@given(place=st.integers(0), flip=st.integers(1, 255))
@settings(max_examples=150, deadline=None)
def test_any_changed_byte_is_noticed(file: Path, packed: bytes, place: int, flip: int) -> None:
    damaged = bytearray(packed)
    damaged[place % len(packed)] ^= flip
    refused(file, bytes(damaged))


@given(data=st.one_of(st.binary(max_size=200), st.integers(0)))
@settings(max_examples=150, deadline=None)
def test_other_and_shorter_files_are_refused(file: Path, packed: bytes, data: bytes | int) -> None:
    refused(file, data if isinstance(data, bytes) else packed[: data % len(packed)])


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch /tmp/liderlab-was-here",)


def test_a_crafted_pickle_runs_nothing(tmp_path: Path) -> None:
    import hashlib

    torch.save({"schema": 1, "x": Evil()}, tmp_path / "evil.pt")
    for payload in ((tmp_path / "evil.pt").read_bytes(), pickle.dumps(Evil())):
        refused(tmp_path / "x.pt", MAGIC + hashlib.sha256(payload).digest() + payload)
    assert not Path("/tmp/liderlab-was-here").exists()


def test_another_schema_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("liderlab.runs.checkpoints.SCHEMA", 2)
    write_state(tmp_path / "s.pt", STATE)
    monkeypatch.undo()
    refused(tmp_path / "s.pt", (tmp_path / "s.pt").read_bytes(), "schema 2")


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
