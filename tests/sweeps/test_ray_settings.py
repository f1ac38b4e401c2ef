"""The settings with which Ray is started, seen by a stand-in for it."""

import os
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from liderlab.sweeps.ray_engine import RayEngine

VARIABLE = "RAY_USAGE_STATS_ENABLED"


@pytest.mark.parametrize(("given", "wanted"), [(None, "0"), ("1", "1")])
def test_ray_sends_nothing_to_its_makers_unless_asked_to(
    monkeypatch: pytest.MonkeyPatch, given: str | None, wanted: str
) -> None:
    seen: list[tuple[Any, ...]] = []

    def init(address: str, include_dashboard: bool | None, **_: object) -> None:
        seen.append((os.environ.get(VARIABLE), address, include_dashboard))

    ray = SimpleNamespace(init=init, remote=lambda **_: lambda function: function)
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    os.environ.pop(VARIABLE, None)
    if given:
        os.environ[VARIABLE] = given
    RayEngine()
    assert seen == [(wanted, "local", False)]  # a cluster of its own, without a web page
