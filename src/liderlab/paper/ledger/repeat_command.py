"""The command that repeats a case. No torch needed."""

from __future__ import annotations

import json
import shlex
from functools import cache

from ...config.diff import flat
from ...config.merging import make_config
from ..studies.cases import Case, Request, config_of
from .campaign import SETTINGS


@cache
def repeat_command(case: Case, scale: str) -> str:
    """`lider run` with the case's preset and the values that the case changes.

    >>> repeat_command(Case("cifar100", 500, "er-ace", "lider-stream", "controlled", seed=1), "cpu")
    'lider run --preset cifar100-500-er-ace-lider-controlled --scale cpu --seed 1 --threads 1
     --set regularizers.lider.on=stream'
    """
    config = config_of(case, Request(scale, threads=1), SETTINGS)
    if config.preset is None:  # a stand-in has no preset
        return f"lider ledger measure --scale {scale} --seeds {case.seed + 1}"
    start = {"preset": config.preset, "scale": scale, "seed": case.seed, "threads": 1}
    words = ["lider", "run"]
    for option, value in start.items():
        words += [f"--{option}", str(value)]
    base = make_config(start)
    for name in config.regularizers:
        if name not in base.regularizers:
            words += ["--regularizer", name]
    before = flat(base.model_dump(mode="json"))
    for key, value in flat(config.model_dump(mode="json")).items():
        if value != before.get(key):
            words += ["--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
    return shlex.join(words)
