"""`lider data`: from an archive, a folder or the publisher into the data folder, all or nothing."""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from liderlab.errors import UserError
from liderlab.files import one_builder
from liderlab.streams.datasets.catalogue import DATA_SETS, Remote
from liderlab.streams.storage.preparation import prepare

Lider = Callable[..., tuple[int, str, str]]
NAMES = {
    "cifar100": "cifar100_python",
    "cifar10": "cifar10_python",
    "mnist": "mnist",
    "tinyimagenet": "tinyimagenet",
    "miniimagenet": "miniimagenet",
    "cub200": "cub200",
}


@pytest.fixture
def archive(publish: SimpleNamespace, tmp_path: Path) -> Path:
    """CIFAR-100, tiny, packed as the publisher packs it, under a name of its own."""
    folder = publish.cifar100_python(tmp_path / "source")
    with tarfile.open(tmp_path / "mine.tar.gz", "w:gz") as file:
        file.add(folder, "cifar-100-python")
    return tmp_path / "mine.tar.gz"


def visible(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir()) if folder.exists() else []


def nothing_is_left(folder: Path) -> bool:
    """The data folder itself, which did not exist before, is removed too."""
    return not folder.exists()


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_is_imported(
    publish: SimpleNamespace, tmp_path: Path, own_data_folder: Path, name: str
) -> None:
    source = getattr(publish, NAMES[name])(tmp_path / "source")
    path = prepare(name, source=source, checked=False)
    assert path.parent == own_data_folder
    assert DATA_SETS[name].find(own_data_folder) == path
    assert visible(own_data_folder) == sorted([path.name, "cache"])
    files = [p.relative_to(source) for p in source.rglob("*")]
    assert {p.relative_to(path) for p in path.rglob("*")} == set(files)


def test_an_archive_may_have_outer_folders(
    publish: SimpleNamespace, tmp_path: Path, own_data_folder: Path
) -> None:
    folder = publish.cub200(tmp_path / "deep" / "er")
    shutil.make_archive(str(tmp_path / "birds"), "zip", tmp_path / "deep")
    assert folder.exists()
    path = prepare("cub200", source=tmp_path / "birds.zip", checked=False)
    assert path == own_data_folder / "CUB_200_2011"


def test_a_clone_of_class_folders_is_imported_without_its_history(
    publish: SimpleNamespace, lider: Lider, tmp_path: Path, own_data_folder: Path
) -> None:
    source = publish.cub200_folders(tmp_path / "source")
    (source / ".git").mkdir()
    (source / ".git" / "packed").write_text("history")
    prepare_it = ["data", "prepare", "split-cub200", "--from", str(source)]
    code, _, err = lider(*prepare_it)
    assert code == 2
    assert "4 training and 2 test images instead of the 5,994 and 5,794" in err
    assert nothing_is_left(own_data_folder)
    code, out, err = lider(*prepare_it, "--unchecked")
    assert code == 0, err
    assert "4 training and 2 test images of 2 classes" in out
    assert visible(own_data_folder / "CUB_200_2011") == ["README.md", "test", "train"]


@pytest.mark.parametrize(
    ("name", "form", "part"),
    [("cub200", "cub200_folders", "test"), ("miniimagenet", "miniimagenet_train_val", "val")],
)
def test_class_folders_without_test_images_are_refused(
    name: str,
    form: str,
    part: str,
    publish: SimpleNamespace,
    lider: Lider,
    tmp_path: Path,
    own_data_folder: Path,
) -> None:
    source = getattr(publish, form)(tmp_path / "source")
    shutil.rmtree(source / part)
    code, _, err = lider("data", "prepare", name, "--from", str(source), "--unchecked")
    assert code == 2
    assert "expected files like" in err
    assert f"train/*/*, {part}/*/*" in err
    assert err.count("\n") == 1
    assert nothing_is_left(own_data_folder)


def test_mini_imagenet_in_train_and_val_folders(
    publish: SimpleNamespace, lider: Lider, tmp_path: Path
) -> None:
    source = publish.miniimagenet_train_val(tmp_path / "source")
    code, out, err = lider("data", "prepare", "miniimagenet", "--from", str(source), "--unchecked")
    assert code == 0, err
    assert "9 training and 3 test images of 3 classes" in out


def test_the_binary_form_keeps_its_own_name(publish: SimpleNamespace, tmp_path: Path) -> None:
    source = publish.cifar100_binary(tmp_path / "source")
    assert prepare("cifar100", source=source, checked=False).name == "cifar-100-binary"


def test_prepare_list_and_run(lider: Lider, archive: Path, own_data_folder: Path) -> None:
    code, out, err = lider("data", "list")
    assert code == 0, err
    assert str(own_data_folder) in out.replace("\n", "")
    code, _, err = lider("run", "--benchmark", "split-cifar100")
    assert code == 2
    assert err.count("\n") == 1
    assert "lider data prepare cifar100`" in err

    code, out, err = lider("data", "prepare", "cifar100", "--from", str(archive), "--unchecked")
    assert code == 0, err
    assert "8 training and 4 test images of 4 classes" in out
    assert "lider run --benchmark split-cifar100" in out
    code, out, _ = lider("data", "list", "--json")
    listing = json.loads(out)
    row = next(row for row in listing["data"] if row["name"] == "cifar100")
    assert row["found"]
    assert row["path"] == str(own_data_folder / "cifar-100-python")
    assert row["bytes"] > 12 * 3072
    assert {"licence", "download_bytes", "urls", "benchmark", "images"} <= row.keys()
    assert listing["folder"] == str(own_data_folder)

    small = "--tasks 2 --backbone convnet-small --width 8 --epochs 1 --batch-size 4 --buffer 4"
    code, _, err = lider("run", "--benchmark", "split-cifar100", *small.split(), "--out", "x")
    assert code == 0, err
    result = json.loads(Path("x/result.json").read_text())
    assert result["classes"] == ["apple", "bear", "cup", "dog"]


def test_another_root(lider: Lider, archive: Path, tmp_path: Path) -> None:
    arguments = ["cifar100", "--root", "here", "--from", str(archive), "--unchecked"]
    code, out, err = lider("data", "prepare", *arguments)
    assert code == 0, err
    assert f"LIDER_DATA={tmp_path / 'here'} lider run" in out
    assert (tmp_path / "here" / "cifar-100-python" / "train").exists()
    code, out, _ = lider("data", "prepare", *arguments)
    assert code == 0
    assert "was there already" in out


@pytest.mark.parametrize("form", ["folder", "archive"])
def test_files_with_other_checksums_are_refused(
    lider: Lider, archive: Path, own_data_folder: Path, form: str
) -> None:
    source = archive if form == "archive" else archive.parent / "source"
    code, _, err = lider("data", "prepare", "cifar100", "--from", str(source))
    assert code == 2
    assert "instead of the publisher's 16019d7e3df5f24257cddd939b257f8d" in err
    assert "--unchecked" in err
    assert nothing_is_left(own_data_folder)


def test_an_archive_with_the_publishers_name_is_checked(
    archive: Path, own_data_folder: Path
) -> None:
    named = archive.rename(archive.with_name("cifar-100-python.tar.gz"))
    with pytest.raises(UserError, match="publisher's eb9058c3a382ffc7106e4002c42a8d85"):
        prepare("cifar100", source=named)
    assert nothing_is_left(own_data_folder)


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        ("cut off", "not a complete tar or zip archive"),
        ("gone", "does not exist"),
        ("other data", "there is no CIFAR-100 in .*mine.tar.gz: expected"),
        ("broken pickle", "is not a whole CIFAR file"),
        ("climbs out", "leads out of it"),
    ],
)
def test_a_broken_source_leaves_nothing(
    archive: Path, own_data_folder: Path, tmp_path: Path, harm: str, message: str
) -> None:
    source = tmp_path / "source" / "cifar-100-python"
    if harm == "cut off":
        archive.write_bytes(archive.read_bytes()[:-100])
    elif harm == "gone":
        archive.unlink()
    elif harm == "broken pickle":
        (source / "test").write_bytes((source / "test").read_bytes()[:-100])
    elif harm == "other data":
        (source / "test").unlink()
    if harm in ("other data", "broken pickle", "climbs out"):
        inside = "../" if harm == "climbs out" else ""
        with tarfile.open(archive, "w:gz") as file:
            file.add(source, f"{inside}cifar-100-python")
    with pytest.raises(UserError, match=message):
        prepare("cifar100", source=archive, checked=False)
    assert nothing_is_left(own_data_folder)


def test_an_existing_folder_is_not_modified(archive: Path, own_data_folder: Path) -> None:
    own = own_data_folder / "cifar-100-python" / "mine.txt"
    own.parent.mkdir(parents=True)
    own.write_text("precious")
    with pytest.raises(UserError, match="exists, but is not complete: remove it first"):
        prepare("cifar100", source=archive, checked=False)
    assert own.read_text() == "precious"


def served(publish: SimpleNamespace, tmp_path: Path, archive: Path) -> dict[str, list[Path]]:
    return {
        "cifar100": [archive],
        "mnist": sorted(publish.mnist(tmp_path / "source").iterdir()),
    }


@pytest.mark.parametrize("name", ["cifar100", "mnist"])
def test_a_download_becomes_a_data_set(
    publish: SimpleNamespace,
    archive: Path,
    tmp_path: Path,
    own_data_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    """file:// stands for the publisher's server."""
    files = served(publish, tmp_path, archive)[name]
    sums = {path: hashlib.md5(path.read_bytes()).hexdigest() for path in files}
    remotes = tuple(Remote(p.as_uri(), md5, p.stat().st_size) for p, md5 in sums.items())
    inside = {path.name: md5 for path, md5 in sums.items()} if len(files) > 1 else {"train": "0"}
    train, test = {"cifar100": (8, 4), "mnist": (20, 10)}[name]
    tiny = replace(DATA_SETS[name], remotes=remotes, md5=inside, train=train, test=test)
    monkeypatch.setitem(DATA_SETS, name, tiny)
    path = prepare(name)
    assert DATA_SETS[name].find(own_data_folder) == path
    assert visible(own_data_folder) == sorted([path.name, "cache"])  # the archive has done its work


@pytest.mark.parametrize("form", ["folder", "archive", "in place"])
def test_fewer_images_than_published_are_refused(
    lider: Lider, publish: SimpleNamespace, tmp_path: Path, own_data_folder: Path, form: str
) -> None:
    source = publish.cub200(own_data_folder if form == "in place" else tmp_path / "source")
    if form == "archive":
        source = Path(shutil.make_archive(str(tmp_path / "birds"), "zip", source.parent))
    arguments = [] if form == "in place" else ["--from", str(source)]
    code, out, err = lider("data", "prepare", "cub200", *arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "4 training and 2 test images instead of the 5,994 and 5,794 of CUB-200-2011" in err
    assert "--unchecked" in err
    assert form == "in place" or nothing_is_left(own_data_folder)
    code, out, err = lider("data", "prepare", "cub200", *arguments, "--unchecked")
    assert code == 0, err
    code, out, _ = lider("data", "list", "--json")
    row = next(row for row in json.loads(out)["data"] if row["name"] == "cub200")
    assert (row["found"], row["complete"]) == (True, False)
    assert "in part" in lider("data", "list")[1]


@pytest.mark.parametrize("name", ["classes.txt", "train_test_split.txt", "images"])
def test_birds_without_their_index_are_not_found(
    publish: SimpleNamespace, own_data_folder: Path, name: str
) -> None:
    folder = publish.cub200(own_data_folder)
    assert DATA_SETS["cub200"].find(own_data_folder) == folder
    shutil.rmtree(folder / name) if name == "images" else (folder / name).unlink()
    assert DATA_SETS["cub200"].find(own_data_folder) is None


def test_a_missing_image_is_named(publish: SimpleNamespace, tmp_path: Path) -> None:
    source = publish.cub200(tmp_path / "source")
    next(source.rglob("b_1.jpg")).unlink()
    with pytest.raises(UserError, match=r"b_1\.jpg is missing: the data set is not complete"):
        prepare("cub200", source=source, checked=False)


def test_the_expected_files_are_listed_once(tmp_path: Path, own_data_folder: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError) as error:
        prepare("mnist", source=tmp_path / "empty")
    assert str(error.value).count("train-images*idx3*") == 1
    assert nothing_is_left(own_data_folder)


def test_junk_is_one_short_sentence(lider: Lider, tmp_path: Path, own_data_folder: Path) -> None:
    (tmp_path / "junk.tgz").write_text("junk")
    code, _, err = lider("data", "prepare", "cifar100", "--from", "junk.tgz")
    assert code == 2
    assert err == "lider: junk.tgz is not a complete tar or zip archive\n"
    assert nothing_is_left(own_data_folder)


@pytest.mark.parametrize("arrived", [0, 100])
def test_a_failed_download_leaves_only_its_part(
    tmp_path: Path, own_data_folder: Path, monkeypatch: pytest.MonkeyPatch, arrived: int
) -> None:
    remote = Remote((tmp_path / "not-there.tgz").as_uri(), "0" * 32, 9)
    monkeypatch.setitem(DATA_SETS, "cifar100", replace(DATA_SETS["cifar100"], remotes=(remote,)))
    monkeypatch.setattr("liderlab.streams.storage.downloads.time.sleep", lambda seconds: None)
    part = own_data_folder / "downloads" / "cifar100" / "not-there.tgz.part"
    if arrived:
        part.parent.mkdir(parents=True)
        part.write_bytes(b"x" * arrived)
    with pytest.raises(UserError, match="cannot download"):
        prepare("cifar100")
    left = [p for p in own_data_folder.rglob("*") if p.is_file()]
    assert left == ([part] if arrived else [])
    assert bool(arrived) == own_data_folder.exists()


def test_a_source_around_the_data_folder_is_refused(
    publish: SimpleNamespace, own_data_folder: Path
) -> None:
    source = publish.cifar100_python(own_data_folder)
    with pytest.raises(UserError, match=r"lies inside .*: choose another with --root"):
        prepare("cifar100", root=source / "data", source=source, checked=False)
    assert sorted(p.name for p in source.iterdir()) == ["meta", "test", "train"]


def test_a_lock_is_taken_by_one_at_a_time_although_it_is_removed(tmp_path: Path) -> None:
    inside, most = [0], [0]

    def work() -> None:
        for _ in range(30):
            with one_builder(tmp_path / "new", "x"):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                time.sleep(0.001)  # let the others try
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]
    assert not (tmp_path / "new").exists() or not list((tmp_path / "new").iterdir())


def test_val_is_the_test_part_of_mini_imagenet(
    publish: SimpleNamespace, lider: Lider, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = publish.miniimagenet(tmp_path / "source")
    (source / "test").rename(source / "val")
    command = ["data", "prepare", "miniimagenet", "--from", str(source.parent), "--unchecked"]
    code, out, err = lider(*command)
    assert code == 0, err
    assert "9 training and 3 test images of 3 classes" in out
    assert "val/ is used for testing" in caplog.text


@pytest.mark.parametrize("other", ["validation", "dev"])
def test_a_part_alone_is_not_the_data_set(
    publish: SimpleNamespace, lider: Lider, tmp_path: Path, other: str
) -> None:
    """Without its other part, test images would be split off the training images."""
    source = publish.miniimagenet(tmp_path / "source")
    (source / "test").rename(source / other)
    command = ["data", "prepare", "miniimagenet", "--from", str(source), "--unchecked"]
    code, _, err = lider(*command)
    assert code == 2
    assert "there is no mini-ImageNet in" in err


def test_two_copies_are_not_chosen_from(publish: SimpleNamespace, tmp_path: Path) -> None:
    for copy in "ab":
        publish.miniimagenet(tmp_path / "source" / copy)
    with pytest.raises(UserError, match="twice"):
        prepare("miniimagenet", source=tmp_path / "source", checked=False)


def test_links_in_a_circle_are_refused(
    publish: SimpleNamespace, tmp_path: Path, within_a_minute: None
) -> None:
    source = publish.miniimagenet(tmp_path / "source")
    for number in range(3):
        (source / "train" / "n01" / f"link{number}").symlink_to(source)
    with pytest.raises(UserError, match="remove one of them"):
        prepare("miniimagenet", source=source, checked=False)


def test_a_data_set_without_a_download_is_refused(lider: Lider) -> None:
    code, _, err = lider("data", "prepare", "miniimagenet")
    assert code == 2
    assert "no public download" in err
    assert "lider data prepare miniimagenet --from FILE_OR_DIR" in err


def test_an_unknown_data_set_suggests_the_nearest(lider: Lider) -> None:
    code, _, err = lider("data", "prepare", "cifar1000")
    assert code == 2
    assert "did you mean 'cifar100'?" in err


@pytest.mark.parametrize("name", DATA_SETS)
def test_the_catalogue_is_complete(name: str) -> None:
    data = DATA_SETS[name]
    assert data.licence
    assert data.images
    assert all(remote.url.startswith("http") and remote.size > 0 for remote in data.remotes)
    assert all(len(md5) == 32 for md5 in [r.md5 for r in data.remotes] + list(data.md5.values()))
