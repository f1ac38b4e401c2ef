"""Searches: by validation accuracy, resumable, on SQLite and PostgreSQL, several at once."""

from __future__ import annotations

import json
import math
import os
import pwd
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from liderlab.config.merging import make_config
from liderlab.errors import UserError
from liderlab.runs.folder import RunFolder
from liderlab.sweeps.hyperparameter_search import Search
from liderlab.sweeps.local_engine import LocalEngine
from liderlab.sweeps.optuna_study import OptunaStudy
from liderlab.sweeps.search_space import ValueList, ValueRange, grid_size, paper_space, read_space

optuna = pytest.importorskip("optuna", reason="needs Optuna: pip install 'liderlab[search]'")
TINY = {
    "benchmark": "synthetic",
    "backbone": {"width": 8},
    "training": {"epochs": 1},
    "method": "er",
}
GRID = {"training.lr": [0.1, 0.01], "memory.size": [12, 24]}
COMPLETE = optuna.trial.TrialState.COMPLETE
pytestmark = pytest.mark.filterwarnings("ignore:.*:optuna.exceptions.ExperimentalWarning")


def trials_of(url: str, name: str = "search") -> list[Any]:
    storage = optuna.storages.RDBStorage(url.replace("postgresql:", "postgresql+psycopg2:"))
    trials = optuna.load_study(study_name=name, storage=storage).trials
    storage.engine.dispose()
    return trials


def test_a_grid_visits_everything_once_and_writes_the_best(lider, write, tmp_path: Path) -> None:
    write("base.yaml", TINY)
    write("space.yaml", GRID)
    command = "search --config base.yaml --space space.yaml --sampler grid --workers 2 --out s"
    code, out, err = lider(*command.split())
    assert code == 0, err
    results = {}
    for number in range(4):
        result = RunFolder(tmp_path / "s/trials" / str(number)).result()
        assert result["config"]["benchmark"]["validation"] == 0.1
        config = result["config"]
        values = (config["training"]["lr"], config["memory"]["size"])
        results[values] = result["class_incremental"]["faa"]
    assert len(results) == 4
    best = yaml.safe_load((tmp_path / "s/best.yaml").read_text())
    assert out.startswith("best trials")
    assert "4 trials: 4 complete; wrote s/best.yaml. Use it with:\n" in out
    assert best["benchmark"]["validation"] is None  # the final run uses the test images
    assert results[best["training"]["lr"], best["memory"]["size"]] == max(results.values())
    use = shlex.split(out.splitlines()[-1])
    assert use == ["lider", "run", "--config", "s/best.yaml"]
    code, _, err = lider(*use[1:], "--out", "final")
    assert code == 0, err
    code, again, err = lider(*command.split())  # nothing left to do
    assert (code, again) == (0, out)
    assert "trial" not in err
    code, out, _ = lider(*command.split(), "--json")
    tree = json.loads(out)
    assert code == 0
    assert tree["config"] == best
    assert tree["accuracy"] == max(results.values())
    assert tree["importances"].keys() <= {"training.lr", "memory.size"}
    tried = [trial["values"] for trial in tree["trials"]]
    assert {(v["training.lr"], v["memory.size"]) for v in tried} == set(results)
    assert {trial["state"] for trial in tree["trials"]} == {"complete"}
    code, _, err = lider(*command.split(), "--set", "seed=3")
    assert code == 2
    assert "another configuration" in err


def test_importances_are_those_of_the_fields_that_matter(tmp_path: Path) -> None:
    space = {"training.lr": ValueList((0.1, 0.01)), "memory.size": ValueList((12, 24))}
    studies = [OptunaStudy(f"sqlite:///{tmp_path}/{n}.db", n, space, "here") for n in ("a", "b")]
    for study in studies:
        study.sample_by("grid", 0, 4)
    for number in range(4):
        trial = studies[0].ask(4)
        studies[0].tell(trial, 60.0 if trial.values["training.lr"] == 0.1 else 20.0)
        assert (number == 3) == bool(studies[0].importances())
        studies[1].tell(studies[1].ask(4), 50.0)
    found = studies[0].importances()
    assert found["training.lr"] > 0.9  # of a forest, fitted to four points
    assert sum(found.values()) == pytest.approx(1)
    assert studies[1].importances() == {}  # all are equally good


def test_a_bad_trial_is_pruned_and_never_the_best(tmp_path: Path) -> None:
    base = make_config(TINY, {"training": {"epochs": 8}, "threads": 1})
    said: list[str] = []

    def search(trials: int, **space: ValueList) -> Search:
        spaces = {name.replace("_", "."): choice for name, choice in space.items()}
        options = {"validation": 0.25, "prune_after": 2}
        found = Search(base, spaces, tmp_path / "s", trials, **options)
        found.run(LocalEngine(1), 1, said.append)
        return found

    search(2, memory_size=ValueList((24, 25)))
    best = search(3, training_lr=ValueList((1e-9,))).best()
    assert ["pruned" in line for line in said] == [False, False, True]
    assert "training.lr 1e-09: pruned after task" in said[2]
    assert best[1].training.lr == 0.1


@pytest.mark.usefixtures("inline_engine")
def test_another_list_of_values_is_refused_and_the_folder_stays_usable(
    lider, write, tmp_path: Path
) -> None:
    write("base.yaml", {**TINY, "threads": 1})
    write("few.yaml", {"training.lr": [0.03, 0.1]})
    write("many.yaml", {"training.lr": [0.03, 0.1, 0.2]})
    search = ["search", "--config", "base.yaml", "--workers", "1", "--out", "my search"]
    search += ["--set", "benchmark.validation=0.3"]
    code, out, err = lider(*search, "--space", "few.yaml", "--trials", "1")
    assert code == 0, err
    best = yaml.safe_load(Path("my search/best.yaml").read_text())
    assert best["benchmark"]["validation"] is None
    trial = RunFolder(tmp_path / "my search/trials/0").result()
    assert trial["config"]["benchmark"]["validation"] == 0.3
    assert "lider run --config 'my search/best.yaml'" in out
    code, _, err = lider(*search, "--space", "many.yaml", "--trials", "2")
    assert (code, err.count("\n")) == (2, 1)
    assert "chooses training.lr from other values: choose another --out" in err
    code, _, err = lider(*search, "--space", "few.yaml", "--trials", "2", "--study", "other")
    assert (code, err.count("\n")) == (2, 1)
    assert "my search holds the study 'search': choose another --out" in err
    code, _, err = lider(*search, "--space", "few.yaml", "--trials", "2")
    assert code == 0, err
    assert "trial 1" in err


@pytest.mark.parametrize(
    ("field", "values"),
    [("training.lr", [0.1, -1]), ("benchmark.tasks", {"low": 2, "high": 7})],
)
def test_a_value_that_runs_refuse_is_found_before_the_first_trial(
    lider, write, tmp_path: Path, field: str, values: Any
) -> None:
    write("base.yaml", TINY)
    write("space.yaml", {"memory.size": [12, 24], field: values})
    command = "search --config base.yaml --space space.yaml --out s"
    code, out, err = lider(*command.split())
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert not (tmp_path / "s").exists()


@pytest.mark.usefixtures("inline_engine")
def test_a_grid_that_goes_on_visits_the_points_that_are_left(lider, write, tmp_path: Path) -> None:
    write("base.yaml", {**TINY, "threads": 1})
    rates = [0.01, 0.02, 0.04, 0.08, 0.16]
    write("space.yaml", {"training.lr": rates})
    command = "search --config base.yaml --space space.yaml --sampler grid --workers 1 --out s"
    for trials in (1, 2, 5):
        code, _, err = lider(*command.split(), "--trials", str(trials))
        assert code == 0, err
    tried = trials_of(f"sqlite:///{tmp_path / 's/search.db'}")
    assert sorted(trial.params["training.lr"] for trial in tried) == rates


@pytest.mark.usefixtures("inline_engine")
def test_values_that_do_not_go_together_are_a_failed_trial(lider, write, tmp_path: Path) -> None:
    write("base.yaml", {**TINY, "threads": 1})
    write("space.yaml", {"memory.storage": ["ram", "disk"], "memory.device": [None, "cpu"]})
    command = "search --config base.yaml --space space.yaml --sampler grid --workers 1 --out s"
    code, _, err = lider(*command.split())
    assert code == 0, err
    assert err.count("failed: a memory on disk has no device") == 1
    states = [trial.state.name for trial in trials_of(f"sqlite:///{tmp_path / 's/search.db'}")]
    assert sorted(states) == ["COMPLETE"] * 3 + ["FAIL"]


@pytest.mark.usefixtures("inline_engine")
def test_a_search_fails_if_all_its_trials_failed(lider, write) -> None:
    write("base.yaml", {**TINY, "threads": 1})
    write("space.yaml", {"training.lr": [1e30]})
    command = "search --config base.yaml --space space.yaml --trials 1 --workers 1 --out s"
    code, out, err = lider(*command.split())
    assert (code, out) == (1, "")
    assert "no trial has finished" in err


@pytest.mark.slow
def test_an_interrupted_search_resumes_its_trial(start, write, wait_until, tmp_path) -> None:
    write("base.yaml", {**TINY, "training": {"epochs": 30}, "checkpoint_every": 20})
    write("space.yaml", {"training.lr": [0.1, 0.2]})
    command = "search --config base.yaml --space space.yaml --trials 2 --workers 1 --out s"
    first = start(*command.split())
    folder = RunFolder(tmp_path / "s/trials/0")
    wait_until(lambda: folder.checkpoints.files() or first.poll() is not None, "a checkpoint")
    first.send_signal(signal.SIGTERM)
    output, _ = first.communicate()
    assert first.returncode == 143, output
    assert "go on with: lider search" in output
    assert not folder.finished
    values = folder.config().training.lr
    again = start(*command.split())
    output, _ = again.communicate()
    assert again.returncode == 0, output
    assert folder.finished
    assert folder.result()["config"]["training"]["lr"] == values
    trials = trials_of(f"sqlite:///{tmp_path / 's/search.db'}")
    assert [trial.state for trial in trials] == [COMPLETE] * 2
    assert trials[0].params["training.lr"] == values


def test_the_papers_space() -> None:
    space = paper_space(make_config({"preset": "cifar100-500-der++-lider"}))
    assert set(space) == {
        "training.lr",
        "method.alpha",
        "method.beta",
        "regularizers.lider.alpha",
        "regularizers.lider.beta",
    }
    assert {0.03, 0.1} <= set(space["training.lr"].values)
    assert grid_size(space) > 1
    plain = paper_space(make_config({"preset": "cifar100-500-er-ace"}))
    assert list(plain) == ["training.lr"]


@pytest.mark.parametrize(
    ("tree", "says"),
    [
        ({}, "empty"),
        ({"training.lr": 0.1}, "list of values"),
        ({"training.lr": [0.1, 0.1]}, "listed twice"),
        ({"training.milestones": [[1], [2]]}, "plain values"),
        ({"training.lr": {"low": 1, "high": 0}}, "low < high"),
        ({"training.lr": {"low": 0, "high": 1, "log": True}}, "above 0"),
        ({"training.lr": {"low": 0.1, "high": math.inf}}, "finite"),
        ({"training.lr": {"low": -math.inf, "high": 0.1}}, "finite"),
        ({"training.epochs": {"low": 1, "high": 10**400}}, "finite"),
        ({"training.lr": {"low": 0, "hihg": 1}}, "did you mean 'high'"),
    ],
)
def test_a_bad_space_is_refused(tree: dict, says: str) -> None:
    with pytest.raises(UserError, match=says):
        read_space(tree)


def test_a_grid_of_ranges_is_refused() -> None:
    with pytest.raises(UserError, match="not a range"):
        grid_size({"training.lr": ValueRange(0.1, 1.0)})


@pytest.mark.parametrize("url", ["nonsense", "postgresql://me:secret@127.0.0.1:1/none"])
def test_an_unusable_storage_is_one_sentence(lider, write, tmp_path: Path, url: str) -> None:
    write("space.yaml", {"training.lr": [0.1, 0.2]})
    command = ["search", "--set", "benchmark.name=synthetic", "--space", "space.yaml"]
    code, _, err = lider(*command, "--out", "s", "--storage", url)
    assert code == 2
    assert "cannot use the storage" in err
    assert "secret" not in err
    assert err.count("\n") == 1
    assert not (tmp_path / "s").exists()


@pytest.fixture
def postgres() -> Iterator[str]:
    """The URL of a new PostgreSQL server on a free port."""
    pytest.importorskip("psycopg2", reason="needs psycopg2: pip install 'liderlab[search]'")
    if not (shutil.which("initdb") and shutil.which("pg_ctl")):
        pytest.skip("no PostgreSQL server here: initdb and pg_ctl are not in PATH")
    user = None
    if os.geteuid() == 0:  # the server refuses to run as root
        try:
            user = pwd.getpwnam("nobody").pw_uid
        except KeyError:
            pytest.skip("PostgreSQL does not run as root, and there is no user nobody")
    folder = Path(tempfile.mkdtemp(prefix="liderlab-postgres-"))
    password = secrets.token_hex(16)
    (folder / "password").write_text(password)
    for path in (folder, folder / "password"):
        os.chown(path, -1 if user is None else user, -1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def call(*command: str) -> None:
        done = subprocess.run(
            command,
            user=user,
            cwd=folder,
            capture_output=True,
            text=True,
            env={**os.environ, "HOME": str(folder)},
        )
        assert done.returncode == 0, done.stdout + done.stderr

    data = str(folder / "data")
    try:
        call(*f"initdb -D {data} -U lab -A scram-sha-256 --pwfile={folder / 'password'}".split())
        options = f"-p {port} -c listen_addresses=127.0.0.1 -k {folder} -c fsync=off"
        call("pg_ctl", "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start")
        yield f"postgresql://lab:{password}@127.0.0.1:{port}/postgres"
    finally:
        if (folder / "data/postmaster.pid").exists():
            call("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")
        shutil.rmtree(folder)


@pytest.mark.slow
def test_two_searches_share_a_postgresql_server(
    postgres: str, start: Callable[..., Any], write: Callable[..., str], tmp_path: Path
) -> None:
    write("base.yaml", TINY)
    write("space.yaml", {"training.lr": {"low": 0.01, "high": 0.3, "log": True}})
    command = (
        f"search --config base.yaml --space space.yaml --trials 6 --workers 1 --storage {postgres}"
    )
    searches = [start(*command.split(), "--out", out) for out in ("one", "two")]
    for search in searches:
        output, _ = search.communicate()
        assert search.returncode == 0, output
    trials = [t for t in trials_of(postgres) if "surplus" not in t.user_attrs]
    assert len(trials) == 6
    assert all(t.state.is_finished() for t in trials)
    assert len({t.params["training.lr"] for t in trials}) == 6  # no value was tried twice
    homes = [(tmp_path / out / "home").read_text().split()[0] for out in ("one", "two")]
    assert {t.user_attrs["home"] for t in trials} <= set(homes)
    for trial in trials:
        out = ("one", "two")[homes.index(trial.user_attrs["home"])]
        config = json.loads(
            (tmp_path / out / "trials" / str(trial.number) / "result.json").read_text()
        )
        assert config["config"]["training"]["lr"] == trial.params["training.lr"]
