"""The buffer guessing game: chance for who knows nothing, more for who has overfitted."""

import json

import pytest
import torch

from liderlab import analysis
from liderlab.analysis import found_in, guessing_game
from liderlab.analysis.pixels import Pixels
from liderlab.errors import UserError


def test_a_random_scorer_is_at_chance(clouds):
    x, y = clouds(2000)
    inside = torch.rand(len(y), generator=torch.Generator().manual_seed(1)) < 0.3
    generator = torch.Generator().manual_seed(2)

    def random(x):
        return torch.randn(len(x), 4, generator=generator)

    game = guessing_game(random, inside, (x, y), perturbations=2)
    assert game.auc == pytest.approx(0.5, abs=0.05)


def test_one_class_cannot_be_told_from_others(clouds):
    x, y = clouds(20)
    inside = torch.arange(20) < 10
    with pytest.raises(UserError, match="one class has no other"):
        guessing_game(lambda x: torch.zeros(len(x), 1), inside, (x, torch.zeros_like(y)))


def test_an_overfitted_memory_can_be_guessed(clouds, train):
    x, y = clouds(200, noise=0.4)
    inside = torch.arange(200) < 20
    model = train((x[inside], y[inside]), steps=300)
    game = guessing_game(model, inside, (x, y), noise=0.05)
    assert game.auc > 0.8
    assert game.scores[game.in_memory].mean() > game.scores[~game.in_memory].mean() + 0.2
    everything = guessing_game(train((x, y), steps=60), inside, (x, y), noise=0.05)
    assert everything.auc < game.auc - 0.1


def test_score_is_the_mean_margin_of_probabilities_among_the_tasks_classes():
    x = torch.tensor([[2.0, 0.0, 9.0], [0.0, 1.0, 9.0], [0.0, 0.0, 9.0]])
    y, inside = torch.tensor([0, 0, 1]), torch.tensor([True, False, False])
    game = guessing_game(lambda x: x, inside, (x, y), task_classes=range(2), perturbations=0)
    p = x[:, :2].double().softmax(1)
    assert game.scores.tolist() == pytest.approx([*(p[:2, 0] - p[:2, 1]).tolist(), 0.0])
    literal = guessing_game(
        lambda x: x, inside, (x, y), task_classes=range(2), perturbations=0, against="highest"
    )
    assert literal.scores.tolist() == pytest.approx([0.0, float(p[1, 0] - p[1, 1]), 0.0])


def test_noise_is_in_pixels_and_comes_from_the_generator():
    seen = []

    def listen(x):
        seen.append(x.clone())
        return x

    x, y = torch.zeros(500, 2), torch.zeros(500, dtype=torch.long)
    inside = torch.arange(500) < 5
    options = {"noise": 0.1, "perturbations": 4, "normalisation": Pixels(std=[0.5, 0.25])}
    results = [
        guessing_game(listen, inside, (x, y), generator=torch.Generator().manual_seed(3), **options)
        for _ in range(2)
    ]
    assert (results[0].scores == results[1].scores).all()
    spread = torch.cat(seen).std(0)
    assert spread.tolist() == pytest.approx([0.2, 0.4], rel=0.05)


def test_memory_as_inputs_is_looked_up(clouds):
    x, y = clouds(30)
    assert found_in(x[[4, 7]], x).nonzero().flatten().tolist() == [4, 7]
    pixels = (x * 255).to(torch.uint8)
    assert found_in(pixels[3:5], pixels).sum() == 2
    by_inputs = guessing_game(lambda x: x.flatten(1)[:, :4], x[:9], (x, y))
    by_mask = guessing_game(lambda x: x.flatten(1)[:, :4], torch.arange(30) < 9, (x, y))
    assert by_inputs.auc == by_mask.auc


def test_result_is_json_and_a_curve(clouds, train):
    x, y = clouds(60)
    game = guessing_game(train((x, y), steps=5), torch.arange(60) < 9, (x, y))
    tree = json.loads(json.dumps(game.to_dict()))
    assert tree["auc"] == game.auc
    area = torch.trapezoid(
        torch.tensor(tree["true_positive_rate"]), torch.tensor(tree["false_positive_rate"])
    )
    assert float(area) == pytest.approx(game.auc)


def test_refuses(clouds):
    x, y = clouds(20)
    with pytest.raises(ValueError, match="some of the data in memory"):
        guessing_game(lambda x: x, torch.ones(20, dtype=torch.bool), (x, y))
    with pytest.raises(ValueError, match="labels in 0…1"):
        guessing_game(lambda x: x, torch.arange(20) < 2, (x, y), task_classes=range(2))
    with pytest.raises(ValueError, match="unknown against"):
        guessing_game(lambda x: x, torch.arange(20) < 2, (x, y), against="all")
    with pytest.raises(ValueError, match="mask of 20"):
        guessing_game(lambda x: x, torch.ones(3, dtype=torch.bool), (x, y))
    with pytest.raises(AttributeError, match="no attribute 'guess'"):
        analysis.guess  # noqa: B018
