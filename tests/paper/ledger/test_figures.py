"""The figures show what the records say."""

import io
from dataclasses import replace

import pytest
from PIL import Image

from liderlab.analysis.figure_style import small_png
from liderlab.paper.ledger.figures import (
    PRINTED,
    draw_all,
    draw_analyses,
    draw_curves,
    draw_summary,
)
from liderlab.paper.ledger.ledger_document import assemble
from liderlab.paper.ledger.record import Curves
from liderlab.paper.studies.cases import Case
from liderlab.report.page.ledger_markdown import as_markdown

ALONE = Case("cifar100", 500, "er-ace")
LIDER = Case("cifar100", 500, "er-ace", "lider", "controlled")
CURVES = Curves(
    step=[10, 20, 30],
    constants={"layer1": [None, 0.5, 0.4], "layer2": [0.9, 0.8, 0.7]},
    targets={"layer1": [0.6, 0.5, 0.5], "layer2": [0.9, 0.9, 0.9]},
    borders=[15, 30],
)
GAME = {
    "scale": "cpu",
    "auc": 0.7,
    "in_memory": 5,
    "samples": 50,
    "false_positive_rate": [0.0, 1.0],
    "true_positive_rate": [0.0, 1.0],
}
SURFACE = {
    "scale": "cpu",
    "tasks": [0, 1],
    "areas": {"memory": [90.0, 80.0], "others": [85.0, 60.0]},
}
CONSTANTS = {
    "scale": "cpu",
    "constants": {"constants": {"layer1": 0.5, "layer2": 0.7}, "mean": 0.6},
}


@pytest.fixture
def records(record):
    analyses = {
        "guessing-game": GAME,
        "decision-surface": SURFACE | {"samples": {"memory": 5}},
        "lipschitz-vs-buffer": CONSTANTS,
    }
    runs = [record(replace(ALONE, seed=s), v) for s, v in enumerate((20.0, 22.0))]
    runs += [record(replace(LIDER, seed=s), v, curves=CURVES) for s, v in enumerate((21.0, 25.0))]
    runs[0] = runs[0].model_copy(update={"analyses": analyses})
    return [*runs, record(Case("cifar100", None, "joint"), 60.0, ff=None)]


def test_bars_of_the_summary_are_the_means(records) -> None:
    figure = draw_summary(records, assemble(records))
    left, right = figure.axes
    assert [bar.get_height() for bar in left.patches] == [21.0, 23.0]
    dots = sorted(y for line in left.lines if line.get_marker() == "o" for y in line.get_ydata())
    assert dots == [20.0, 21.0, 22.0, 25.0]
    level = [line for line in left.lines if line.get_label() == "Joint"]
    assert list(level[0].get_ydata()) == [60.0, 60.0]
    assert figure.texts[1].get_text().endswith("1…2 seeds")  # joint has one
    gain = [c for c in right.containers if c.get_label() == "LiDER's gain, paired by seed"]
    assert list(gain[0].lines[0].get_xdata()) == [2.0]
    printed = [line for line in right.lines if line.get_label() == PRINTED]
    assert list(printed[0].get_xdata()) == [1.95]


def test_curves_have_a_panel_per_stage_and_their_borders(records) -> None:
    figure = draw_curves(records)
    assert [axes.get_title() for axes in figure.axes] == ["layer1", "layer2"]
    first = figure.axes[0].lines
    assert list(first[0].get_ydata()) == [0.5, 0.4]  # nothing before the first replay
    assert list(first[1].get_ydata()) == [0.6, 0.5, 0.5]
    assert list(first[2].get_xdata()) == [15, 15]


def test_analyses_are_labelled_with_their_auc(records) -> None:
    left, right = draw_analyses(assemble(records)).axes
    assert left.get_legend_handles_labels()[1] == ["ER-ACE: 0.700"]
    assert [list(line.get_ydata()) for line in right.lines] == [[90.0, 80.0], [85.0, 60.0]]


def test_all_figures_are_small_and_on_the_page(records) -> None:
    ledger = assemble(records)
    figures = draw_all(records, ledger)
    assert len(figures) == 3
    page = as_markdown(ledger, figures=figures)
    for name, figure in figures.items():
        assert f"]({name})" in page
        data = small_png(figure)
        assert len(data) < 150_000
        assert Image.open(io.BytesIO(data)).width > 400
    assert "AUC 0.700, 5 of 50 in memory" in page
    assert "rehearsed 80.0 %, not rehearsed 60.0 %" in page
    assert "λ on the memory: layer1 0.500, layer2 0.700; mean 0.600" in page
    assert "| Joint | 60.00 (1) | – | – | – | – | 73.29, – | 20.0 |" in page


def test_without_records_there_is_nothing_to_draw() -> None:
    assert draw_all([], assemble([])) == {}
