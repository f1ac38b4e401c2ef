from rich.console import Console

from liderlab.report.terminal.result_tables import accuracy_tables, method_table, metric_table

RESULT = {
    "class_incremental": {
        "faa": 70.0,
        "ff": 30.0,
        "bwt": -30.0,
        "fwt": None,
        "aia": 80.0,
        "accuracy_matrix": [[90.0, None], [60.0, 80.0]],
    },
    "task_incremental": {"faa": 95.0, "ff": 1.0, "bwt": -1.0, "fwt": 5.0, "aia": 97.0},
}
WORSE = {"class_incremental": {"faa": 60.0, "ff": None}}


def printed(table: object) -> str:
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(table)
    console.file.close()
    return console.export_text()


def test_method_table_shows_mean_and_deviation_in_80_columns() -> None:
    text = printed(method_table({"a": [RESULT, WORSE], "b": [WORSE]}))
    assert "65.00 ± 7.07" in text
    assert "30.00" in text
    assert "–" in text
    assert max(len(line) for line in text.splitlines()) <= 80


def test_metrics_and_matrix() -> None:
    assert "70.00" in printed(metric_table(RESULT))
    text = printed(accuracy_tables(RESULT))
    assert "90.0" in text
    assert "on 2" in text


def test_twenty_tasks_are_read_in_80_columns() -> None:
    matrix = [[100.0 if i <= t else None for i in range(20)] for t in range(20)]
    result = {"class_incremental": {"accuracy_matrix": matrix}}
    text = printed(accuracy_tables(result))
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "…" not in text
    assert text.count("100.0") == 210
