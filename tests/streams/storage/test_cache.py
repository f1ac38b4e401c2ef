"""The cache: decoded once, then memory-mapped, never incomplete."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import time
from collections.abc import Iterator
from multiprocessing.synchronize import Barrier
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from liderlab.errors import UserError
from liderlab.streams.datasets.cifar import read_cifar100
from liderlab.streams.datasets.image_folder import read_folder
from liderlab.streams.datasets.raw_data import RawData, RawPart, blocks_of
from liderlab.streams.storage.cache import cached, state_of_files
from liderlab.streams.storage.location import cache_folder, data_folder, platform_folder


def never(source: Path, size: int) -> RawData:
    raise AssertionError("read again")


def left_over(folder: Path) -> list[str]:
    return [p.name for p in folder.rglob("*") if "unfinished" in p.name]


@pytest.fixture
def source(publish: SimpleNamespace, tmp_path: Path) -> Path:
    return publish.cifar100_python(tmp_path)


def test_a_cached_source_is_not_read_again(source: Path) -> None:
    first, second = cached("c", source, 32, read_cifar100), cached("c", source, 32, never)
    for part in ("train", "test"):
        a, b = getattr(first, part), getattr(second, part)
        assert torch.equal(a.x, b.x)
        assert torch.equal(a.y, b.y)
    assert second.names == ["apple", "bear", "cup", "dog"]


def test_the_cache_holds_pixels_and_statistics(source: Path, publish: SimpleNamespace) -> None:
    ready = cached("c", source, 32, read_cifar100)
    expected = publish.noise(8, 3072, seed=1).reshape(8, 3, 32, 32)
    assert np.array_equal(ready.train.x.numpy(), expected)
    assert ready.mean == pytest.approx(expected.mean((0, 2, 3)) / 255, abs=1e-12)
    assert ready.std == pytest.approx(expected.std((0, 2, 3)) / 255, abs=1e-12)


def test_the_cache_is_plain_files(source: Path, own_data_folder: Path) -> None:
    cached("c", source, 32, read_cifar100)
    (folder,) = (own_data_folder / "cache").glob("c-32px-*")
    files = {"train_x.npy", "train_y.npy", "test_x.npy", "test_y.npy", "about.json"}
    assert {path.name for path in folder.iterdir()} == files
    assert np.load(folder / "test_y.npy").tolist() == [0, 1, 2, 3]
    assert not left_over(own_data_folder)


def test_each_size_has_its_own_cache(publish: SimpleNamespace, tmp_path) -> None:
    source = publish.miniimagenet(tmp_path)
    for size in (16, 8):
        assert cached("m", source, size, read_folder).train.x.shape[2:] == (size, size)
    for size in (16, 8):
        assert cached("m", source, size, never).train.x.shape[2:] == (size, size)


def test_a_changed_source_replaces_its_cache(
    publish: SimpleNamespace, tmp_path: Path, own_data_folder: Path
) -> None:
    source, other = publish.miniimagenet(tmp_path), publish.miniimagenet(tmp_path / "other")
    for place in (source, other):
        cached("m", place, 8, read_folder)
    publish.picture(source / "train" / "n01" / "0.jpg", (255, 255, 255))  # in place
    assert cached("m", source, 8, read_folder).train.x[0].float().mean() > 250
    cached("m", other, 8, never)  # the other one's stays
    assert len(list((own_data_folder / "cache").glob("m-8px-*"))) == 2


@pytest.mark.parametrize("harm", ["cut off", "empty", "gone", "no json", "another json", "kind"])
def test_a_damaged_cache_is_made_anew(source: Path, own_data_folder: Path, harm: str) -> None:
    cached("c", source, 32, read_cifar100)
    (folder,) = (own_data_folder / "cache").glob("c-*")
    if harm == "cut off":
        os.truncate(folder / "train_x.npy", 500)
    elif harm == "empty":
        os.truncate(folder / "test_y.npy", 0)
    elif harm == "another json":
        (folder / "about.json").write_text("[]")
    elif harm == "gone":
        (folder / "test_y.npy").unlink()
    elif harm == "no json":
        (folder / "about.json").write_text("{")
    else:
        np.save(folder / "train_x.npy", np.array([{}], dtype=object))
    assert len(cached("c", source, 32, read_cifar100).train.x) == 8
    cached("c", source, 32, never)


def reading(blocks: list[np.ndarray], labels: list[int]) -> RawData:
    part = RawPart(labels, lambda: iter(blocks))
    return RawData(["a", "b"], (3, 4, 4), part, part)


def test_inconsistent_data_leave_no_cache(tmp_path: Path, own_data_folder: Path) -> None:
    blocks = [np.zeros((2, 3, 4, 4), dtype=np.uint8)]
    with pytest.raises(UserError, match="3 train labels, but 2 images"):
        cached("x", tmp_path, 4, lambda source, size: reading(blocks, [0, 1, 1]))
    assert not left_over(own_data_folder)
    assert not list((own_data_folder / "cache").glob("x-*"))


def test_an_interruption_leaves_no_cache(tmp_path: Path, own_data_folder: Path) -> None:
    def blocks() -> Iterator[np.ndarray]:
        yield np.zeros((1, 3, 4, 4), dtype=np.uint8)
        raise KeyboardInterrupt

    part = RawPart([0, 1], blocks)
    with pytest.raises(KeyboardInterrupt):
        cached("x", tmp_path, 4, lambda s, z: RawData(["a", "b"], (3, 4, 4), part, part))
    assert not left_over(own_data_folder)


def test_the_remains_of_a_killed_process_are_removed(source: Path, own_data_folder: Path) -> None:
    left = own_data_folder / "cache" / ".unfinished-c-32px-abc"
    left.mkdir(parents=True)
    (left / "train_x.npy").write_bytes(b"half")
    cached("c", source, 32, read_cifar100)
    assert not left.exists()


def _in_another_process(source: Path, reads: Path, barrier: Barrier) -> None:
    def read(source: Path, size: int) -> RawData:
        time.sleep(0.3)
        with reads.open("a") as file:
            file.write("x")
        return read_cifar100(source)

    barrier.wait()
    assert len(cached("c", source, 32, read).train.x) == 8


def test_only_one_of_several_processes_decodes(source: Path, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    arguments = (source, tmp_path / "reads", context.Barrier(2))
    processes = [context.Process(target=_in_another_process, args=arguments) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert (tmp_path / "reads").read_text() == "x"


def _with_little_memory(source: Path, megabytes: int) -> None:
    """Write and then read a data set larger than the memory that this process may have."""
    images, shape = 2 * megabytes, (1, 1000, 1000)  # a megabyte each

    def blocks() -> Iterator[np.ndarray]:
        for i in range(images):
            yield np.full((1, *shape), i % 256, dtype=np.uint8)

    small = np.zeros((2, *shape), dtype=np.uint8)
    test = RawPart([0, 1], lambda: blocks_of(small))
    train = RawPart([i % 2 for i in range(images)], blocks)
    resource.setrlimit(resource.RLIMIT_DATA, (in_use() + (megabytes << 20),) * 2)
    with pytest.raises(MemoryError):
        np.ones(images << 20, dtype=np.uint8)
    ready = cached("big", source, 1000, lambda s, z: RawData(["a", "b"], shape, train, test))
    rows = ready.train.x[torch.tensor([images - 1, 3])]
    assert rows.float().mean((1, 2, 3)).tolist() == [(images - 1) % 256, 3]


def in_use() -> int:
    status = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in status if line.startswith("VmData")).split()[1])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="RLIMIT_DATA is Linux's")
def test_data_larger_than_memory(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_with_little_memory, args=(tmp_path, 40))
    process.start()
    process.join()
    assert process.exitcode == 0


def test_a_lack_of_disk_space_is_noticed_before_decoding(
    source: Path, own_data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = SimpleNamespace(free=1000)
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage)
    with pytest.raises(UserError, match=r"has 0\.0 GB free"):
        cached("c", source, 32, read_cifar100)
    assert not left_over(own_data_folder)


def test_a_full_disk_leaves_nothing(
    source: Path, own_data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(UserError, match="No space left on device"):
        cached("c", source, 32, read_cifar100)
    assert not left_over(own_data_folder)


def test_default_data_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert data_folder("~/x") == Path.home() / "x"
    assert data_folder() == tmp_path / "lider-data"
    assert cache_folder() == tmp_path / "lider-data" / "cache"
    monkeypatch.delenv("LIDER_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    assert data_folder() == tmp_path / "liderlab"
    monkeypatch.setattr("sys.platform", "darwin")
    assert data_folder() == Path.home() / "Library" / "Caches" / "liderlab"


def test_read_only_data_is_cached_elsewhere(
    source: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert cache_folder(source) == platform_folder() / "cache"


def test_about_json_names_the_source(source: Path, own_data_folder: Path) -> None:
    cached("c", source, 32, read_cifar100)
    (about,) = (own_data_folder / "cache").glob("c-*/about.json")
    assert json.loads(about.read_text())["source"] == str(source.resolve())


def test_a_link_to_the_source_uses_the_sources_cache(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "a").write_text("a")
    (tmp_path / "link").symlink_to(tmp_path / "source")
    assert state_of_files(tmp_path / "link") == state_of_files(tmp_path / "source")


def test_links_in_a_circle_are_walked_once(tmp_path: Path, within_a_minute: None) -> None:
    for name in "abc":
        (tmp_path / "source" / name).mkdir(parents=True)
    for name in "abc":
        (tmp_path / "source" / name / "up").symlink_to(tmp_path / "source")
    before = state_of_files(tmp_path / "source")
    (tmp_path / "source" / "d").symlink_to(tmp_path / "source" / "a")
    assert state_of_files(tmp_path / "source") != before, "a new link is a change"
