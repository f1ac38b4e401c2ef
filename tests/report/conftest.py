"""A headless browser, and small runs to report on."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from liderlab.config.merging import make_config
from liderlab.runs.execute import run

PATIENCE = 60.0  # seconds: enough on a busy machine
KINDS = (".csv", ".svg")  # of downloads


AT_3_AND_4 = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""  # Chromium reads commands from descriptor 3 and writes to 4


class Browser:
    """Headless Chromium, controlled through its debugging pipe: no port and no driver needed."""

    def __init__(self, program: str, home: Path) -> None:
        (read_there, write_here), (read_here, write_there) = os.pipe(), os.pipe()
        options = (
            "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run "
            "--disable-background-networking --disable-component-update --disable-extensions "
            f"--hide-scrollbars --remote-debugging-pipe --user-data-dir={home}"
        ).split()
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                AT_3_AND_4,
                str(read_there),
                str(write_there),
                program,
                *options,
            ],
            pass_fds=(read_there, write_there),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read_there)
        os.close(write_there)
        self._in, self._out = os.fdopen(write_here, "wb"), os.fdopen(read_here, "rb")
        self._number, self._session, self._received = 0, "", b""
        self.events: list[dict[str, Any]] = []
        pages = [t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page"]
        page = {"targetId": pages[0]["targetId"], "flatten": True}
        self._session = self.call("Target.attachToTarget", **page)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        # a page without a window is not sure to have the focus, and then no element gets it either
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)

    def close(self) -> None:
        self._in.close()  # the browser ends when its pipe closes
        self._out.close()
        try:
            self._process.wait(PATIENCE)
        finally:
            self._process.kill()
            self._process.wait()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the DevTools protocol; events that arrive meanwhile go to `events`."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._in.write(json.dumps(message).encode() + b"\0")
        self._in.flush()
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return dict(answer["result"])
            self.events.append(answer)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._received:
            part = self._out.read1()
            assert part, "the browser is gone"
            self._received += part
        message, _, self._received = self._received.partition(b"\0")
        return dict(json.loads(message))

    def open(self, page: Path, fragment: str = "", width: int = 1280, height: int = 900) -> None:
        """Open a page in a window of this size and wait until its script has run."""
        self.resize(width, height)
        self.call("Page.navigate", url="about:blank")
        self.events.clear()
        self.call("Page.navigate", url=page.as_uri() + fragment)
        self.wait("document.documentElement?.dataset.ready === 'true'")

    def resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)

    def run(self, script: str) -> Any:
        """The value of an expression on the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, script: str) -> None:
        """Wait until the expression is true."""
        deadline = time.monotonic() + PATIENCE
        while not self.run(f"Boolean({script})"):
            assert time.monotonic() < deadline, f"never true: {script}"
            time.sleep(0.02)

    def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def drag(self, selector: str, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Drag the mouse within an element; places are shares of its width and height."""
        query, options = json.dumps(selector), "{block: 'center', behavior: 'instant'}"
        self.run(f"document.querySelector({query}).scrollIntoView({options})")
        box = self.run(
            f"(({{x, y, width, height}}) => [x, y, width, height])"
            f"(document.querySelector({query}).getBoundingClientRect())"
        )
        for kind, (across, down) in (
            ("mouseMoved", start),
            ("mousePressed", start),
            ("mouseMoved", end),
            ("mouseReleased", end),
        ):
            place = {"x": box[0] + across * box[2], "y": box[1] + down * box[3]}
            button = {"button": "none" if kind == "mouseMoved" else "left", "clickCount": 1}
            self.call("Input.dispatchMouseEvent", type=kind, **place, **button)

    def download(self, selector: str, folder: Path) -> Path:
        """Click a button that downloads a file; return the file."""
        self.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
        before = set(folder.iterdir())
        self.click(selector)
        deadline = time.monotonic() + PATIENCE
        while not (new := [f for f in set(folder.iterdir()) - before if f.suffix in KINDS]):
            assert time.monotonic() < deadline, "no file was downloaded"
            time.sleep(0.02)
        return new[0]

    def texts(self, selector: str) -> list[str]:
        query = f"document.querySelectorAll({json.dumps(selector)})"
        return list(self.run(f"[...{query}].map((element) => element.textContent)"))

    def click(self, selector: str) -> None:
        self.run(f"document.querySelector({json.dumps(selector)}).click()")

    def screenshot(self, path: Path, whole: bool = False) -> None:
        options: dict[str, Any] = {"captureBeyondViewport": True} if whole else {}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            options["clip"] = {**size, "scale": 1}
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", **options)["data"]))

    def print(self) -> bytes:
        """The page as PDF."""
        answer = self.call("Page.printToPDF", printBackground=False, preferCSSPageSize=True)
        return base64.b64decode(answer["data"])

    def errors(self) -> list[str]:
        """Errors and warnings on the page since it was opened."""
        self.run("0")  # flushes earlier events
        return [
            json.dumps(event["params"])
            for event in self.events
            if event["method"] == "Runtime.exceptionThrown"
            or (
                event["method"] == "Runtime.consoleAPICalled"
                and event["params"]["type"] in ("error", "warning", "assert")
            )
            or event["method"] == "Log.entryAdded"
        ]

    def requests(self) -> list[str]:
        """URLs that the page requested since it was opened, except data: URLs."""
        self.run("0")
        sent = [e for e in self.events if e["method"] == "Network.requestWillBeSent"]
        urls = [event["params"]["request"]["url"] for event in sent]
        return [url for url in urls if not url.startswith("data:")]


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    browser = Browser(program, tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()


SMALL: dict[str, Any] = {
    "benchmark": "synthetic",
    "backbone": {"width": 8},
    "memory": {"size": 20},
    "training": {"epochs": 1},
    "log_every": 2,
    "threads": 1,
}
RUNS: dict[str, dict[str, Any]] = {
    "er-ace-0": {"method": "er-ace"},
    "er-ace-1": {"method": "er-ace", "seed": 1},
    "er-ace-lider-0": {"method": "er-ace", "regularizers": {"lider": {}}},
    "er-ace-lider-1": {"method": "er-ace", "regularizers": {"lider": {}}, "seed": 1},
    "gmed": {"method": "gmed"},
    "poisoned": {"method": "er", "memory": {"size": 20, "poison": 0.5}},
    "joint": {"method": "joint"},
}


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of small runs, shared by all tests: read only."""
    folder = tmp_path_factory.mktemp("runs")
    for name, choice in RUNS.items():
        run(make_config(SMALL, choice), folder / name)
    return folder
