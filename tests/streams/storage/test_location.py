"""Paths given by users: `~`, and names that are not UTF-8, too long, or impossible."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from liderlab.cli.completion import run_folders
from liderlab.config.merging import make_config
from liderlab.config.weight_names import with_absolute_path
from liderlab.errors import UserError
from liderlab.runs.weights import weights_file
from liderlab.streams.datasets.image_folder import folder
from liderlab.streams.storage.location import absolute, data_folder
from liderlab.streams.storage.preparation import prepare

UNKNOWN_HOME = "~nobody-of-that-name/x"
NOT_UTF8 = os.fsdecode(b"caf\xe9")


def test_a_tilde_is_expanded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert absolute("~/x") == tmp_path / "x"
    assert with_absolute_path("~/w.pt") == str(tmp_path / "w.pt")


@pytest.mark.parametrize(
    "use",
    [
        data_folder,
        with_absolute_path,
        lambda path: make_config({"benchmark": f"folder:{path}"}),
        lambda path: folder(path=path),
        lambda path: weights_file(path, "resnet18"),
        lambda path: prepare("cifar100", source=path),
    ],
    ids=["data", "weights", "benchmark", "own folder", "weights file", "prepare"],
)
def test_an_unknown_home_folder_is_refused(use: Callable[[str], object]) -> None:
    with pytest.raises(UserError, match="unknown home folder"):
        use(UNKNOWN_HOME)


@pytest.mark.parametrize("field", ["pretrained", "extends", "imports", "benchmark"])
@pytest.mark.parametrize(
    ("name", "says"),
    [("x" * 300, "too long"), ("a\0b", "character that no path"), ("\ud800", "character")],
    ids=["too long", "null character", "surrogate"],
)
def test_a_name_that_no_file_can_have_is_refused(field: str, name: str, says: str) -> None:
    value = {"imports": [name], "benchmark": f"folder:{name}"}.get(field, name)
    with pytest.raises(UserError, match=says):
        make_config({field: value})


def test_an_unknown_home_folder_has_no_completions() -> None:
    assert run_folders(UNKNOWN_HOME) == []


def test_a_data_folder_must_be_utf8() -> None:
    with pytest.raises(UserError, match=r"caf\\udce9' is not UTF-8"):
        data_folder(f"/{NOT_UTF8}")


def test_class_folders_must_be_utf8_but_images_need_not(
    publish: SimpleNamespace, tmp_path: Path
) -> None:
    root = tmp_path / "own"
    for name in ("cat/0", "cat/1", "dog/0", "dog/1"):
        publish.picture(root / f"{name}.png", 90)
    try:
        (root / "dog/1.png").rename(root / "dog" / f"{NOT_UTF8}.png")
    except OSError:
        pytest.skip("this file system takes names of text alone")
    assert folder(2, path=str(root), size=8).names == ["cat", "dog"]
    (root / "dog").rename(root / NOT_UTF8)
    with pytest.raises(UserError, match=r"own/caf\\udce9' is not UTF-8"):
        folder(2, path=str(root))
    root.rename(tmp_path / NOT_UTF8)
    with pytest.raises(UserError, match="is not UTF-8"):
        folder(2, path=str(tmp_path / NOT_UTF8))
