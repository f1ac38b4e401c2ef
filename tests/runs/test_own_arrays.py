"""A run on the user's own arrays, in a process that does not have them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import liderlab
from liderlab import Images, add_benchmark, run
from liderlab.config.merging import make_config
from liderlab.config.schema import RunConfig
from liderlab.errors import UserError
from liderlab.runs.folder import RunFolder
from liderlab.streams import BENCHMARKS


def arrays(n: int, seed: int) -> Images:
    rng = np.random.default_rng(seed)
    return Images(rng.integers(0, 256, (n, 8, 8, 3), dtype=np.uint8), np.arange(n) % 4)


def register(seed: int = 0) -> None:
    add_benchmark("mine", arrays(16, seed), arrays(8, 1), tasks=2, names=["a", "b", "c", "d"])


def config() -> RunConfig:
    small = {"backbone": {"width": 8}, "training": {"epochs": 1}, "checkpoint_every": 1}
    return make_config({"benchmark": "mine", "method": "er", **small})


@pytest.fixture
def known() -> Iterator[None]:
    register()
    yield
    BENCHMARKS.pop("mine", None)


@pytest.fixture
def elsewhere(known: None, tmp_path: Path) -> Path:
    """The folder of a finished run; the arrays are forgotten, as in another process."""
    run(config(), tmp_path / "run")
    del BENCHMARKS["mine"]
    return tmp_path / "run"


def test_a_network_loads_from_its_folder_alone(elsewhere: Path) -> None:
    network = liderlab.load(elsewhere)
    assert network.names == ["a", "b", "c", "d"]
    assert set(network.predict(arrays(8, 1).x)) <= set(network.names)


def test_show_and_predict(elsewhere: Path, lider: Any) -> None:
    from PIL import Image

    code, out, err = lider("show", str(elsewhere))
    assert code == 0, err
    assert "er on mine" in out.replace("\n", " ")
    Image.new("RGB", (8, 8)).save("a.png")
    code, out, err = lider("predict", str(elsewhere), "a.png")
    assert code == 0, err
    assert out.split("\t")[1] in "abcd"


class Crash(BaseException):
    """Stands for a killed process."""


def begin(folder: Path) -> None:
    def crash(*_: Any) -> None:
        if RunFolder(folder).checkpoints.files():
            raise Crash

    with pytest.raises(Crash):
        run(config(), folder, listener=crash, progress=False)


@pytest.mark.usefixtures("known")
def test_resuming_without_the_arrays_says_what_to_do(lider: Any, tmp_path: Path) -> None:
    begin(tmp_path / "run")
    del BENCHMARKS["mine"]
    code, _, err = lider("resume", "run")
    assert code == 2
    assert err.count("\n") == 1
    assert "add_benchmark('mine', …)" in err
    assert "existing='resume'" in err
    register()
    run(config(), tmp_path / "run", existing="resume")  # as the message suggests
    assert RunFolder(tmp_path / "run").finished


@pytest.mark.usefixtures("known")
def test_a_new_run_needs_the_arrays(elsewhere: Path) -> None:
    with pytest.raises(UserError, match="unknown benchmark 'mine'"):
        config()
