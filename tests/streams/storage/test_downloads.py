"""Downloads from a local server: resumed, checked, complete or absent."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from liderlab.errors import UserError
from liderlab.streams.datasets.catalogue import Remote
from liderlab.streams.storage.downloads import download

CONTENT = bytes(range(256)) * 2000
MD5 = hashlib.md5(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    """break_after: bytes after which each of the first `breaks` answers ends."""

    content = CONTENT
    ranges, breaks, break_after = True, 0, 100_000
    statuses: list[int]
    asked: list[str | None]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        server, wanted = self.server, self.headers.get("Range")
        server.asked.append(wanted)
        if server.statuses:
            self.send_error(server.statuses.pop(0))
            return
        start = int(wanted[6:-1]) if wanted and server.ranges else 0
        if wanted and server.ranges and start >= len(server.content):
            self.send_error(416)
            return
        self.send_response(206 if wanted and server.ranges else 200)
        self.send_header("Content-Length", str(len(server.content) - start))
        self.end_headers()
        body = server.content[start:]
        if server.breaks:
            server.breaks -= 1
            body = body[: server.break_after]
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as server:
        server.asked, server.statuses = [], []
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def remote(server: Server, md5: str = MD5) -> Remote:
    return Remote(f"http://127.0.0.1:{server.server_port}/data.bin", md5, len(CONTENT))


def silent(action: str, done: int, total: int) -> None:
    pass


def get(server: Server, folder: Path, md5: str = MD5) -> Path:
    return download(remote(server, md5), folder, silent, pause=0)


def test_a_file_arrives_with_progress(server: Server, tmp_path: Path) -> None:
    seen: list[int] = []
    path = download(remote(server), tmp_path / "new", lambda what, done, total: seen.append(done))
    assert path.read_bytes() == CONTENT
    assert [p.name for p in path.parent.iterdir()] == ["data.bin"]
    assert seen == sorted(seen)
    assert seen[-1] == len(CONTENT)


def test_a_broken_connection_is_resumed(server: Server, tmp_path: Path) -> None:
    server.breaks = 2
    assert get(server, tmp_path).read_bytes() == CONTENT
    assert server.asked == [None, "bytes=100000-", "bytes=200000-"]


def test_the_next_call_resumes_a_failed_download(server: Server, tmp_path: Path) -> None:
    server.breaks = 4
    with pytest.raises(UserError, match="broke off after 400,000 of 512,000 bytes"):
        get(server, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["data.bin.part"]
    assert get(server, tmp_path).read_bytes() == CONTENT
    assert server.asked[-1] == "bytes=400000-"
    assert [p.name for p in tmp_path.iterdir()] == ["data.bin"]


def test_a_server_without_ranges_sends_the_whole_file(server: Server, tmp_path: Path) -> None:
    server.ranges = False
    (tmp_path / "data.bin.part").write_bytes(CONTENT[:1000])
    assert get(server, tmp_path).read_bytes() == CONTENT


def test_a_complete_part_needs_no_download(server: Server, tmp_path: Path) -> None:
    (tmp_path / "data.bin.part").write_bytes(CONTENT)
    assert get(server, tmp_path).read_bytes() == CONTENT


def test_a_part_of_another_file_is_deleted(server: Server, tmp_path: Path) -> None:
    (tmp_path / "data.bin.part").write_bytes(b"other" * 100)
    assert get(server, tmp_path).read_bytes() == CONTENT
    assert server.asked == ["bytes=500-", None]


def test_a_wrong_checksum_leaves_nothing(server: Server, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"checksum {MD5} instead of {'0' * 32}"):
        get(server, tmp_path, "0" * 32)
    assert not list(tmp_path.iterdir())


def test_an_existing_file_is_not_downloaded_again(server: Server, tmp_path: Path) -> None:
    get(server, tmp_path)
    get(server, tmp_path)
    assert len(server.asked) == 1


def test_a_server_error_is_retried(server: Server, tmp_path: Path) -> None:
    server.statuses = [503, 500]
    assert get(server, tmp_path).read_bytes() == CONTENT


def test_a_missing_file_is_not_retried(server: Server, tmp_path: Path) -> None:
    server.statuses = [404]
    with pytest.raises(UserError, match=r"404 .* pass it with --from"):
        get(server, tmp_path)
    assert len(server.asked) == 1


def test_no_network(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot download .*--from"):
        download(Remote("http://127.0.0.1:9/data.bin", MD5, 1), tmp_path, silent, pause=0)
