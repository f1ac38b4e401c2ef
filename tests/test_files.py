import os
from pathlib import Path

import pytest

from liderlab.errors import UserError
from liderlab.files import try_folder, write_atomically


def test_content_replaces_content(tmp_path: Path) -> None:
    for content in (b"old", b"new"):
        write_atomically(tmp_path / "f", lambda file, content=content: file.write(content))
    assert (tmp_path / "f").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["f"]


def test_a_failed_write_leaves_the_old_content_and_no_litter(tmp_path: Path) -> None:
    write_atomically(tmp_path / "f", lambda file: file.write(b"old"))

    def fail(file: object) -> None:
        file.write(b"ne")  # type: ignore[attr-defined]
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_atomically(tmp_path / "f", fail)
    assert (tmp_path / "f").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["f"]


def test_a_folder_is_tried_out_without_a_trace(tmp_path: Path) -> None:
    try_folder(tmp_path / "a/b")
    assert os.listdir(tmp_path / "a/b") == []
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"cannot write to .*file/b"):
        try_folder(tmp_path / "file/b")
