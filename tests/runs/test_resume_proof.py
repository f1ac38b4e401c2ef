"""The commands of `verify-resume`, without its processes."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from liderlab.config.merging import make_config
from liderlab.runs import resume_proof
from liderlab.runs.execute import run


def test_an_interrupted_proof_kills_its_run(tmp_path: Path) -> None:
    seen: list[subprocess.Popen[bytes]] = []

    def watch() -> None:
        with resume_proof._started(["--epochs", "999"], tmp_path / "x") as process:
            seen.append(process)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watch()
    assert seen[0].returncode == -9


@pytest.mark.parametrize("given", [[], ["--checkpoint-every", "7"]], ids=["silent", "said"])
def test_the_users_checkpoint_interval_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: list[str]
) -> None:
    started: list[list[str]] = []

    class Done:
        returncode = 0

        def wait(self) -> None:
            """It has finished."""

    @contextmanager
    def start(arguments: Sequence[str], out: Path) -> Iterator[Done]:
        started.append(list(arguments))
        run(make_config({"benchmark": "synthetic", "backbone": {"width": 8}}), out)
        yield Done()

    monkeypatch.setattr(resume_proof, "_started", start)
    monkeypatch.setattr(resume_proof, "_kill", lambda process, folder, moment: True)
    verdict = resume_proof.verify_resume(["--seed", "0", *given], 1, tmp_path, lambda text: None)
    assert (verdict.kills, verdict.runs, verdict.differences) == (1, 1, [])
    whole, killed = started
    assert whole == ["--seed", "0", *given]
    assert killed == ["--checkpoint-every", "1", "--resume", "--seed", "0", *given]  # last one wins
