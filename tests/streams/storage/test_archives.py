"""Unpacking: paths out of the folder, links and truncated archives are refused."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from liderlab.errors import UserError
from liderlab.streams.storage.archives import unpack

CONTENT = {"top/a.txt": b"a" * 5000, "top/sub/b.txt": bytes(range(256)) * 40}


def silent(action: str, done: int, total: int) -> None:
    pass


def tar(path: Path, *extra: tarfile.TarInfo) -> Path:
    mode = {".gz": "w:gz", ".tgz": "w:gz", ".xz": "w:xz", ".bz2": "w:bz2", ".tar": "w"}[path.suffix]
    with tarfile.open(path, mode) as file:
        for name, content in CONTENT.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))
        for member in extra:
            file.addfile(member, io.BytesIO(b"x" * member.size))
    return path


def zipped(path: Path, *extra: zipfile.ZipInfo) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in CONTENT.items():
            file.writestr(name, content)
        for member in extra:
            file.writestr(member, "/etc/passwd")
    return path


def pack(path: Path) -> Path:
    return zipped(path) if path.suffix == ".zip" else tar(path)


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    folder = tmp_path / "work" / "inside"
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.tgz", "a.tar.xz", "a.tar.bz2", "a.zip"])
def test_every_format_is_unpacked(tmp_path: Path, inside: Path, name: str) -> None:
    seen: list[tuple[int, int]] = []
    unpack(pack(tmp_path / name), inside, lambda what, done, total: seen.append((done, total)))
    assert {str(p.relative_to(inside)) for p in inside.rglob("*") if p.is_file()} == set(CONTENT)
    for path, content in CONTENT.items():
        assert (inside / path).read_bytes() == content
    assert seen
    assert all(0 < done <= total for done, total in seen)


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.tar.xz", "a.zip"])
@pytest.mark.parametrize("keep", [0.3, 0.9])
def test_a_truncated_archive_is_refused(
    tmp_path: Path, inside: Path, name: str, keep: float
) -> None:
    path = pack(tmp_path / name)
    whole = path.read_bytes()
    if name == "a.tar":
        whole = whole.rstrip(b"\0")  # a tar is padded at its end
    path.write_bytes(whole[: int(len(whole) * keep)])
    with pytest.raises(UserError, match="is not a complete tar or zip archive"):
        unpack(path, inside, silent)


@pytest.mark.parametrize("content", [b"", b"what is this?" * 100])
def test_a_file_that_is_not_an_archive_is_refused(
    tmp_path: Path, inside: Path, content: bytes
) -> None:
    (tmp_path / "a.tgz").write_bytes(content)
    with pytest.raises(UserError, match="is not a complete tar or zip archive"):
        unpack(tmp_path / "a.tgz", inside, silent)


@pytest.mark.parametrize(("flag", "method"), [(1, 0), (0, 99)], ids=["encrypted", "unknown method"])
def test_an_encrypted_or_unknown_zip_is_refused(
    tmp_path: Path, inside: Path, flag: int, method: int
) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a.txt", "a")
    content = bytearray(path.read_bytes())
    for signature, place in ((b"PK\3\4", 6), (b"PK\1\2", 8)):  # of the file, and in the index
        start = content.index(signature) + place
        content[start], content[start + 2] = flag, method
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"a\.zip cannot be unpacked: .*(encrypted|not supported)"):
        unpack(path, inside, silent)


def outside(tmp_path: Path, inside: Path) -> list[str]:
    there = [p for p in tmp_path.rglob("*") if not p.is_relative_to(inside)]
    return sorted(p.name for p in there if p not in inside.parents)


@pytest.mark.parametrize(
    "name", ["../out.txt", "top/../../out.txt", "/out.txt", "..\\out.txt", "c:x"]
)
@pytest.mark.parametrize("kind", ["a.tar.gz", "a.zip"])
def test_a_path_that_climbs_out_is_refused(
    tmp_path: Path, inside: Path, name: str, kind: str
) -> None:
    if kind == "a.zip":
        path = zipped(tmp_path / kind, zipfile.ZipInfo(name))
    else:
        path = tar(tmp_path / kind, tarfile.TarInfo(name))
    with pytest.raises(UserError, match="leads out of it"):
        unpack(path, inside, silent)
    assert outside(tmp_path, inside) == [kind]


def test_permissions_in_the_archive_are_ignored(tmp_path: Path, inside: Path) -> None:
    member = tarfile.TarInfo("top/program")
    member.mode = 0o6777
    unpack(tar(tmp_path / "a.tgz", member), inside, silent)
    assert not (inside / "top/program").stat().st_mode & 0o7111


@pytest.mark.parametrize("target", ["/etc/passwd", "../../secret", "top/a.txt"])
@pytest.mark.parametrize("type_", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_are_refused(
    tmp_path: Path, inside: Path, target: str, type_: bytes
) -> None:
    member = tarfile.TarInfo("top/link")
    member.type, member.linkname = type_, target
    with pytest.raises(UserError, match="link or device, 'top/link'"):
        unpack(tar(tmp_path / "a.tgz", member), inside, silent)
    assert not (inside / "top/link").exists()


def test_links_in_a_zip_are_refused(tmp_path: Path, inside: Path) -> None:
    member = zipfile.ZipInfo("top/link")
    member.external_attr = (stat.S_IFLNK | 0o777) << 16
    with pytest.raises(UserError, match="link or device"):
        unpack(zipped(tmp_path / "a.zip", member), inside, silent)


def test_a_full_disk_is_noticed_before_unpacking(
    tmp_path: Path, inside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = zipped(tmp_path / "a.zip")
    monkeypatch.setattr("liderlab.files.shutil.disk_usage", lambda p: type("U", (), {"free": 9}))
    with pytest.raises(UserError, match="GB are needed"):
        unpack(path, inside, silent)
    assert not list(inside.iterdir())


def test_a_zip_without_its_beginning_is_refused(tmp_path: Path) -> None:
    """Its members' places lie before the file: found by benchmarks/fuzz_campaign.py."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as file:
        file.writestr("a", b"text" * 9)
    (tmp_path / "a.zip").write_bytes(whole.getvalue()[10:])
    with pytest.raises(UserError, match="is not a complete tar or zip archive"):
        unpack(tmp_path / "a.zip", tmp_path, lambda *_: None)
