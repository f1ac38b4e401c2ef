"""What `verify-resume` starts, without starting it."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from liderlab.experiments import verify
from liderlab.experiments.config import make_config
from liderlab.experiments.run import run


@pytest.mark.parametrize("given", [[], ["--checkpoint-every", "7"]], ids=["silent", "said"])
def test_how_often_to_save_is_up_to_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: list[str]
) -> None:
    started: list[list[str]] = []

    class Done:
        returncode = 0

        def wait(self) -> None:
            """It has finished."""

    def start(arguments: Sequence[str], out: Path) -> Done:
        started.append(list(arguments))
        run(make_config({"benchmark": "synthetic", "backbone": {"width": 8}}), out)
        return Done()

    monkeypatch.setattr(verify, "_start", start)
    monkeypatch.setattr(verify, "_kill", lambda process, folder, moment: True)
    verdict = verify.verify_resume(["--seed", "0", *given], 1, tmp_path, lambda text: None)
    assert (verdict.kills, verdict.runs, verdict.differences) == (1, 1, [])
    whole, killed = started
    assert whole == ["--seed", "0", *given]
    assert killed == ["--checkpoint-every", "1", "--resume", "--seed", "0", *given]  # last one wins
