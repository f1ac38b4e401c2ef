"""Commands in README and the documentation work: all are parsed, many are run."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from liderlab.config.merging import make_config
from liderlab.runs.execute import run
from liderlab.streams import BENCHMARKS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
NOT_OURS = ("make ", "pip install ", ". .venv/")  # tried elsewhere, or by installing
ELSEWHERE = ("lider demo",)  # tests/cli/test_demo.py
SHELLS = ("bash", "sh", "console")
FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?<=\n\n)(?:    .*\n|\n(?=    ))+")
FILE = re.compile(r"`([\w.-]+\.yaml)`:\n\n```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
Lider = Callable[..., tuple[int, str, str]]


def blocks(text: str, language: str) -> Iterator[str]:
    """Blocks of code in that language; "" and indented ones are for the shell."""
    for found in FENCED.finditer(text):
        if found[1] == language or (not language and found[1] in SHELLS):
            yield found[2]
    if not language:
        yield from INDENTED.findall(FENCED.sub("", text))


def typed(page: Path, until: str = "\0") -> list[str]:
    """The command lines of a page up to a heading, without comments; \\ continues a line."""
    lines = []
    for block in blocks(page.read_text().partition(until)[0], ""):
        for line in block.replace("\\\n", " ").splitlines():
            if line.strip().startswith(("lider ", *NOT_OURS)):
                lines.append(" ".join(line.split("  #")[0].split()))
    return lines


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_is_valid(page: Path, parse: Callable[[str], Any]) -> None:
    for line in typed(page):
        if line.startswith("lider ") and "…" not in line:
            if line.startswith("lider --"):
                assert line in ("lider --install-completion", "lider --show-completion")
            else:
                parse(line)


def test_continued_lines_and_the_lines_after_them_are_read(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    indented = "    lider show \\\n        runs/x    # why\n\n    lider list\n"
    page.write_text(f"Do:\n\n{indented}\n```sh\nlider runs\n```\n")
    assert sorted(typed(page)) == ["lider list", "lider runs", "lider show runs/x"]


def test_every_shell_line_of_readme_is_known() -> None:
    """Every line of a shell block in README is run here, or known to be tested elsewhere."""
    text = (ROOT / "README.md").read_text()
    lines = [line.strip() for block in blocks(text, "") for line in block.splitlines()]
    known = ("lider ", *NOT_OURS)
    assert not [line for line in lines if line and not line.startswith(known)]
    assert len(typed(ROOT / "README.md")) >= 10
    assert len(list(blocks(text, "python"))) == 1


def everything(lider: Lider, page: Path, until: str = "\0") -> None:
    """Run a page's commands from top to bottom, in an empty folder with the files it names."""
    for name, content in FILE.findall(page.read_text()):
        Path(name).write_text(content)
    for line in typed(page, until):
        if not line.startswith((*NOT_OURS, *ELSEWHERE)):
            code, _, err = lider(*shlex.split(line)[1:])
            assert code == 0, f"{line}: {err}"


@pytest.fixture(autouse=True)
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LIDER_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("liderlab.runs.doctor.ROOM", 0)


def test_readme(lider: Lider) -> None:
    everything(lider, ROOT / "README.md")
    assert Path("runs/lider/result.json").is_file()
    assert Path("report.html").is_file()


def test_a_broken_command_would_be_noticed(lider: Lider, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Do this:\n\n    lider list methods\n    lider list metods    # wrong\n")
    with pytest.raises(AssertionError, match="lider list metods: lider: unknown list"):
        everything(lider, page)


YOURS = """
import torch
from torch.nn.functional import cross_entropy
from torch.optim import SGD
from liderlab.backbones import BACKBONES

torch.manual_seed(0)
model = BACKBONES.load("resnet18")(4, (3, 16, 16), width=8)
first_task_loader = [(torch.rand(8, 3, 16, 16), torch.arange(8) % 4)]
memory_x, memory_y = torch.rand(6, 3, 16, 16), torch.arange(6) % 4
"""  # the reader's own code


def test_three_lines_in_your_own_loop() -> None:
    """One text on every page that shows it; it runs, and the targets learn."""
    pages = ["README.md", "docs/index.md", "docs/own-loop.md", "docs/methods/lider.md"]
    snippet, *others = [next(blocks((ROOT / page).read_text(), "python")) for page in pages]
    assert all(other == snippet for other in others)
    names: dict[str, Any] = {}
    exec(YOURS, names)
    exec(snippet, names)
    before = names["lider"].targets.detach().clone()
    names["loss"].backward()
    names["optimizer"].step()
    assert not before.equal(names["lider"].targets)


def test_quickstart(lider: Lider) -> None:
    everything(lider, ROOT / "docs/index.md")
    assert Path("report.html").is_file()


def test_own_data(lider: Lider, capsys: pytest.CaptureFixture[str]) -> None:
    page = ROOT / "docs/own-data.md"
    for number, name in enumerate(("cat", "dog", "fish", "owl")):
        Path("photos", name).mkdir(parents=True)
        for image in range(1, 6):
            colour = (60 * number, 20 * image, 90)
            Image.new("RGB", (40, 30), colour).save(f"photos/{name}/{image}.jpg")
    everything(lider, page)
    for block in blocks(page.read_text(), "python"):
        exec(block, {})
    del BENCHMARKS["mine"]  # which the page has added to this process
    assert 0 <= float(capsys.readouterr().out.splitlines()[-1]) <= 100
    assert Path("runs/mine/result.json").is_file()


@pytest.mark.slow
def test_streams(lider: Lider) -> None:
    everything(lider, ROOT / "docs/streams.md", until="## Go on with new classes")
    assert Path("runs/names/result.json").is_file()


@pytest.mark.parametrize(
    ("page", "examples"),
    [("own-loop", ["own_loop"]), ("extending", ["custom_method", "custom_regularizer"])],
)
def test_a_pages_code_is_the_example(page: str, examples: list[str]) -> None:
    found = list(blocks((ROOT / f"docs/{page}.md").read_text(), "python"))
    assert found[-len(examples) :] == [
        (ROOT / f"examples/{name}.py").read_text() for name in examples
    ]


@pytest.mark.usefixtures("fresh_registries")
def test_own_classes(lider: Lider) -> None:
    shutil.copy(ROOT / "examples/custom_method.py", "custom_method.py")
    everything(lider, ROOT / "docs/extending.md")
    assert Path("runs/mine/result.json").is_file()
    assert Path("runs/mine-2/result.json").is_file()


def test_looking_at_runs(lider: Lider) -> None:
    small = {"benchmark": "synthetic", "backbone": {"width": 8}, "training": {"epochs": 1}}
    for name, regularizers in (("er-ace", {}), ("er-ace-lider", {"lider": {}})):
        run(make_config(small, {"regularizers": regularizers}), f"runs/{name}")
    page = ROOT / "docs/report.md"
    everything(lider, page)
    Path("report.html").unlink()
    for block in blocks(page.read_text(), "python"):
        exec(block, {})
    assert Path("report.html").is_file()


@pytest.mark.slow
def test_sweep(lider: Lider) -> None:
    pytest.importorskip("optuna", reason="needs Optuna: pip install 'liderlab[search]'")
    everything(lider, ROOT / "docs/scaling.md", until="## Engines")
    assert len(list(Path("runs/sweep/runs").iterdir())) == 8
    assert Path("runs/best/result.json").is_file()


@pytest.mark.parametrize(
    "title", ["own-data.md", "own-loop.md", "extending.md", "resume.md", "scaling.md"]
)
def test_how_to_pages_are_found_under_how_to(title: str) -> None:
    site = (ROOT / "mkdocs.yml").read_text()
    how_to = site.partition("  - How to:\n")[2].partition("\n  - ")[0]
    assert f": {title}\n" in how_to + "\n"
    assert f"docs/{title}" in (ROOT / "README.md").read_text()
