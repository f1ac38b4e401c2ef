"""`lider list`."""

import json


def test_lists(lider) -> None:
    code, out, _ = lider("list")
    assert code == 0
    assert all(name in out for name in ("er-ace", "split-digits", "resnet18", "lider"))
    assert max(map(len, out.splitlines())) <= 80
    code, out, _ = lider("list", "methods", "--json")
    methods = {row["name"]: row for row in json.loads(out)}
    assert methods["er-ace"]["year"] == 2022
    assert methods["er-ace"]["policy"] == "reservoir"
    code, out, _ = lider("list", "--json")
    assert set(json.loads(out)) == {"methods", "benchmarks", "backbones", "regularizers"}
