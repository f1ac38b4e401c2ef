"""Every figure says what it shows: axes with units, a legend with every label."""

from io import BytesIO

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from liderlab.analysis import (
    DecisionSurface,
    GuessingGame,
    HessianSpectrum,
    LipschitzBound,
    Robustness,
    SurfaceHistory,
    ToyBoundaries,
    WeightPerturbation,
    plots,
)
from liderlab.analysis import figure_style as style

LABELS = ("ER-ACE", "ER-ACE + LiDER")
RNG = np.random.default_rng(0)


def game(auc: float) -> GuessingGame:
    rate = np.linspace(0, 1, 11)
    return GuessingGame(auc, np.zeros(2), np.array([True, False]), rate, rate ** (1 / auc - 1))


def surface(width: float) -> DecisionSurface:
    steps = np.linspace(-0.1, 0.1, 11)
    height = width - np.hypot(*np.meshgrid(steps, steps)) * 20
    right = 100.0 * (height > 0)
    return DecisionSurface(steps, height, right, np.array([right.mean()]))


def history(shrink: float) -> SurfaceHistory:
    groups = {"in memory": 1.5, "others": 0.7}
    return SurfaceHistory(
        {name: [surface(start * shrink**t) for t in range(3)] for name, start in groups.items()}
    )


def attacked(drop: float) -> Robustness:
    epsilons = np.array([0, 1, 2, 4]) / 255
    return Robustness(epsilons, dict.fromkeys(("fgsm", "pgd"), 80 - drop * 255 * epsilons))


def shaken(rise: float) -> WeightPerturbation:
    sigmas = np.array([0, 0.01, 0.02])
    loss = 0.2 + rise * sigmas[:, None] * RNG.uniform(0.8, 1.2, (3, 5))
    return WeightPerturbation(sigmas, loss, 90 - 10 * loss, "absolute")


def toy() -> ToyBoundaries:
    axis = np.linspace(-1, 1, 9)
    regions = np.stack([np.tile(np.arange(9) // 5, (9, 1)), np.tile(np.arange(9) // 3, (9, 1))])
    points = RNG.uniform(-1, 1, (6, 2))
    labels = np.arange(6) % 3
    accuracy = np.array([[90.0, np.nan], [80.0, 85.0]])
    steady = np.full(regions.shape, 0.8)
    return ToyBoundaries(axis, axis, regions, steady, accuracy, [points] * 2, [labels] * 2)


def by_label(first, second):
    return dict(zip(LABELS, (first, second), strict=True))


BOUNDS = by_label(
    *(LipschitzBound({"conv1": a, "fc": 2.0}, 2 * a, float(np.log10(2 * a))) for a in (3.0, 1.5))
)
SPECTRA = by_label(
    *(HessianSpectrum(np.array([9.0, 4, 1]) * a, 30 * a, 2.0, 100) for a in (1.0, 0.5))
)
EFFICIENCY = by_label(
    {"B0": (40.0, 1e9, 90.0), "B1": (45.0, 2e9, 60.0)},
    {"B0": (50.0, 1.2e9, 80.0), "B1": (52.0, 2.3e9, 50.0)},
)

FIGURES = {
    "guessing game": lambda: plots.draw_guessing_game(by_label([game(0.8), game(0.7)], game(0.6))),
    "area kept": lambda: plots.draw_area_kept(by_label(history(0.6), history(0.9))),
    "robustness": lambda: plots.draw_robustness(by_label([attacked(9), attacked(11)], attacked(5))),
    "weight perturbation": lambda: plots.draw_weight_perturbation(by_label(shaken(30), shaken(9))),
    "hessian": lambda: plots.draw_hessian(SPECTRA),
    "bound": lambda: plots.draw_lipschitz_bound(BOUNDS),
    "over buffer": lambda: plots.draw_over_buffer(
        [100, 500, 2000], by_label([9, 5, 3], [4, 3, 2.5]), "bound ∏‖W‖", log=True
    ),
    "efficiency": lambda: plots.draw_efficiency(EFFICIENCY),
}
PICTURES = {
    "surface": lambda: plots.draw_decision_surface(surface(1.0)),
    "surface history": lambda: plots.draw_surface_history(by_label(history(0.6), history(0.9))),
    "toy": lambda: plots.draw_toy(by_label(toy(), toy())),
}


def written(figure: Figure) -> str:
    """All its text, after having drawn it."""
    figure.savefig(BytesIO(), format="png", dpi=40)
    return "\n".join(text.get_text() for text in figure.findobj(Text))


@pytest.mark.parametrize("name", FIGURES)
def test_lines_have_labelled_axes_and_differ_in_more_than_colour(name):
    figure = FIGURES[name]()
    text = written(figure)
    assert all(label in text for label in LABELS)
    for axes in figure.axes:
        assert axes.get_xlabel() or all(tick.get_text() for tick in axes.get_xticklabels())
        assert axes.get_ylabel() or axes.get_shared_y_axes().joined(axes, figure.axes[0])
        styles = [
            (line.get_linestyle(), line.get_marker())
            for line in axes.get_lines()
            if any(line.get_label().startswith(label) for label in LABELS)
        ]
        assert len(set(styles)) == len(styles)


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_say_what_they_show(name):
    text = written(PICTURES[name]())
    if name == "toy":
        assert "accuracy 82.5 %" in text
        assert "class 2" in text
    else:
        assert "FGSM direction j" in text
        assert "random direction i" in text
        assert "S (difference of logits)" in text


def test_a_band_is_one_standard_deviation_over_runs():
    figure = plots.draw_robustness({"a": [attacked(8), attacked(12)]})
    band = figure.axes[0].collections[0].get_paths()[0].vertices
    at_four = band[np.isclose(band[:, 0], 4)][:, 1]
    assert np.ptp(at_four) == pytest.approx(2 * np.std([48, 32], ddof=1))


def test_a_method_has_one_hue_and_dashes_with_a_regulariser():
    looks = [style.line_style(9, label) for label in ("DER++", "der++ + LiDER (70.1)", "joint")]
    assert looks[0]["color"] == looks[1]["color"] == style.METHOD_COLOURS["der++"]
    assert [look["ls"] for look in looks] == ["-", "--", "-"]
    assert looks[2]["color"] not in style.COLOURS


def test_a_heading_stands_above_the_panels_and_no_figure_is_wider_than_a_page():
    figure = style.new_figure(20, 3)
    axes = figure.subplots()
    axes.set_title("panel")
    style.add_heading(figure, "A title", ["split-digits", "scale smoke", "3 seeds"])
    figure.draw_without_rendering()
    title, facts = figure.texts
    assert facts.get_text() == "split-digits · scale smoke · 3 seeds"
    boxes = [text.get_window_extent() for text in (facts, axes.title)]
    assert boxes[0].y0 >= boxes[1].y1
    first_line = title.get_window_extent().y1 - 1.3 * title.get_fontsize() * figure.dpi / 72
    assert boxes[0].y1 <= first_line + 3
    assert figure.get_figwidth() == style.PAGE
