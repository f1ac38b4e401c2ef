"""`make wheel`: the wheel works in an environment of its own, away from the repository."""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]


def try_wheel(folder: Path) -> None:
    """torch is borrowed from this environment, not installed again: it is large."""
    wheel = max(folder.glob("liderlab-*.whl"), key=lambda file: file.stat().st_mtime)
    with tempfile.TemporaryDirectory() as away:
        home = Path(away)
        venv.create(home / "venv", with_pip=False)
        binaries = home / "venv" / "bin"
        site = next((home / "venv" / "lib").glob("python3*")) / "site-packages"
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
        subprocess.run([*pip, "--target", str(site), str(wheel.absolute())], check=True)
        own = next(path for path in map(Path, sys.path) if (path / "torch").is_dir())
        (site / "borrowed.pth").write_text(f"{own}\n")
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        python = [str(binaries / "python"), "-m", "liderlab"]
        code = "import liderlab; print(liderlab.__file__)"
        where = subprocess.run(
            [str(binaries / "python"), "-c", code],
            cwd=home,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert where.startswith(str(site)), f"imported {where}"
        for command in (
            ["list", "presets", "cifar100"],
            ["ledger", "--table", "faa"],
            ["run", "--benchmark", "synthetic", "--method", "er-ace", "--lider", "--buffer", "20"],
        ):
            subprocess.run([*python, *command], cwd=home, env=environment, check=True)
    print(f"{wheel} works on its own")


if __name__ == "__main__":
    try_wheel(Path(sys.argv[1]))
