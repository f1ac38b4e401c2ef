import os
import threading
from pathlib import Path

import pytest

from liderlab.errors import UserError
from liderlab.files import (
    acquire_lock,
    atomic_file,
    delete_lock,
    is_locked,
    no_link,
    release_lock,
    temporary_folder,
    writable_folder,
    write_atomically,
)


def test_a_write_replaces_the_old_content(tmp_path: Path) -> None:
    for content in (b"old", b"new"):
        write_atomically(tmp_path / "f", content)
    assert (tmp_path / "f").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["f"]


def test_a_failed_write_leaves_only_the_old_content(tmp_path: Path) -> None:
    write_atomically(tmp_path / "f", b"old")

    def fail() -> None:
        with atomic_file(tmp_path / "f") as file:
            file.write(b"ne")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        fail()
    assert (tmp_path / "f").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["f"]


def test_checking_a_folder_leaves_no_file(tmp_path: Path) -> None:
    assert writable_folder(tmp_path / "a/b") == tmp_path / "a/b"
    assert os.listdir(tmp_path / "a/b") == []
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"cannot write to .*file/b"):
        writable_folder(tmp_path / "file/b")


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_modes_follow_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "f", b"")
        with temporary_folder(tmp_path, "x") as folder:
            modes = [path.stat().st_mode & 0o777 for path in (tmp_path / "f", folder)]
    finally:
        os.umask(before)
    assert modes == [0o640, 0o750]


def test_a_link_is_not_opened(tmp_path: Path) -> None:
    """Neither to write nor to lock: the link may have come after the folder was checked."""
    mine = tmp_path / "mine"
    mine.write_text("precious")
    (tmp_path / "link").symlink_to(mine)
    for open_it in (acquire_lock, lambda path: no_link(path, os.O_WRONLY | os.O_TRUNC)):
        with pytest.raises(OSError, match="symbolic link"):
            open_it(tmp_path / "link")
    assert mine.read_text() == "precious"


def test_a_lock_excludes_others_until_it_is_released(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not is_locked(path)
    lock = acquire_lock(path)
    assert is_locked(path)
    with pytest.raises(TimeoutError):
        acquire_lock(path, timeout=0.05)
    release_lock(lock)
    assert not is_locked(path)
    release_lock(acquire_lock(path, timeout=0))


def test_a_reader_may_ask_about_a_lock_that_it_may_not_write(tmp_path: Path) -> None:
    lock = acquire_lock(tmp_path / "lock")
    (tmp_path / "lock").chmod(0o444)
    assert is_locked(tmp_path / "lock")
    release_lock(lock)
    assert not is_locked(tmp_path / "lock")


def test_a_lock_held_for_a_moment_is_another_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = acquire_lock(tmp_path / "lock")
    monkeypatch.setattr("time.sleep", lambda seconds: release_lock(lock))
    assert not is_locked(tmp_path / "lock")


def test_a_lock_that_was_deleted_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    lock, error = acquire_lock(path), list[Exception]()

    def wait() -> None:
        try:
            acquire_lock(path)
        except FileNotFoundError as failure:
            error.append(failure)

    waiting = threading.Thread(target=wait)
    waiting.start()
    waiting.join(0.1)  # it has opened the file by now
    delete_lock(path)
    release_lock(lock)
    waiting.join()
    assert len(error) == 1
