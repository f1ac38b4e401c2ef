"""The end of a search: the best trials, and the fields that matter."""

from io import StringIO
from typing import Any

from rich.console import Console

from liderlab.report.terminal.search_table import search_table

NAMES = ("training.lr", "regularizers.lider.alpha", "regularizers.lider.beta")


def printed(rows: list[dict[str, Any]], importances: dict[str, float]) -> list[str]:
    text = StringIO()
    Console(file=text, width=80).print(search_table(rows, importances))
    return text.getvalue().splitlines()


def trial(number: int, accuracy: float | None, state: str = "complete") -> dict[str, Any]:
    values = dict.fromkeys(NAMES, 0.123456 * (number + 1))
    return {"number": number, "state": state, "accuracy": accuracy, "values": values}


def test_the_best_come_first_and_the_most_important_field_on_top() -> None:
    rows = [trial(n, 50.0 + n) for n in range(12)] + [trial(12, None, "pruned")]
    lines = printed(rows, dict(zip(NAMES, (0.2, 0.7, 0.1), strict=True)))
    assert lines[0].split() == ["best", "trials", "11", "10", "9", "8", "importance"]
    assert lines[1].split()[-4:] == ["61.00", "60.00", "59.00", "58.00"]
    assert [line.split()[0] for line in lines[2:]] == [NAMES[1], NAMES[0], NAMES[2]]
    assert lines[2].split()[1:] == ["1.481", "1.358", "1.235", "1.111", "0.70"]
    assert len(lines) == 5
    assert max(map(len, lines)) <= 80


def test_without_importances_there_is_no_column_for_them() -> None:
    assert printed([trial(0, 50.0)], {})[0].split() == ["best", "trials", "0"]
