"""LiDER with the local estimator, and on a transformer's tokens."""

import copy
from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

from liderlab import LiDER
from liderlab.functional.lipschitz import spatial_lipschitz
from liderlab.regularizers.jacobian_pass import stage_maps


def convnet() -> nn.Sequential:
    """BatchNorm that is not in its initial state, activations in place, dropout."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Conv2d(2, 4, 3, padding=1),
            nn.BatchNorm2d(4),
            nn.ReLU(inplace=True),
            nn.Dropout(0.5),
            nn.Conv2d(4, 6, 3, stride=2, padding=1),
            nn.SiLU(inplace=True),
            nn.Flatten(),
            nn.Linear(24, 3),
        )
        nn.init.uniform_(model[1].running_var, 0.5, 2.0)
        nn.init.uniform_(model[1].running_mean, -0.5, 0.5)
    return model.double()


class TinyViT(nn.Module):
    """Patches by a convolution, a class token, pre-norm encoder layers."""

    def __init__(self, side: int = 8, patch: int = 2, width: int = 12, depth: int = 2) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.place = nn.Parameter(0.1 * torch.randn(1, (side // patch) ** 2 + 1, width))
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 3, 24, 0.1, "gelu", batch_first=True, norm_first=True)
            for _ in range(depth)
        )
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 5)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.patches(x).flatten(2).mT
        tokens = torch.cat([self.token.expand(len(x), -1, -1), tokens], 1) + self.place
        for block in self.blocks:
            tokens = block(tokens)
        return self.head(self.norm(tokens)[:, 0])


def vit() -> TinyViT:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return TinyViT()


def images(n: int = 3, channels: int = 2, side: int = 4) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(n, channels, side, side, generator=generator, dtype=torch.float64)


def dense_constants(model: nn.Sequential, x: Tensor) -> Tensor:
    """(n, 2): σ₁ of the Jacobians input → "1" and "1" → "4", written out, in eval mode."""
    model.eval()
    columns, points = [], x
    for part in (model[:2], model[2:5]):
        jacobians = [
            torch.autograd.functional.jacobian(
                lambda z, part=part: part(z[None].clone())[0], point, create_graph=True
            )
            for point in points
        ]
        matrices = [j.reshape(-1, points[0].numel()) for j in jacobians]
        columns.append(torch.stack([torch.linalg.svdvals(m)[0] for m in matrices]))
        points = part(points.clone())
    return torch.stack(columns, 1)


# The local estimator


def test_penalty_and_its_gradient_are_those_of_the_dense_jacobians():
    model = convnet()
    lider = LiDER(model, ["1", "4"], 0.2, 0.7, estimator="jacobian", iterations=None)
    lider.calibrate([images(5)])
    c = dense_constants(model, images(5)).mean(0).detach().float()  # targets are float32
    model.train()
    with torch.random.fork_rng(), lider.watch():
        model(images())
    weights = [model[0].weight, model[1].weight, model[4].weight]
    ours = lider.penalty()
    gradient = torch.autograd.grad(ours, weights)
    λ = dense_constants(model, images())
    theirs = 0.2 * (λ - c).abs().mean() + 0.7 * λ.mean()
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-8)
    for a, b in zip(gradient, torch.autograd.grad(theirs, weights), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-7)
        assert a.abs().max() > 1e-4


def test_later_passes_do_not_change_its_gradient():
    """They move BatchNorm's running statistics, which the pass in eval mode has worked with."""
    gradients = []
    for another in (False, True):
        model = convnet().float().train()
        lider = LiDER(model, ["1", "4"], estimator="jacobian")
        with torch.random.fork_rng(), lider.watch():
            model(images().float())
        penalty = lider.penalty()
        if another:
            with torch.random.fork_rng():
                model(2 + 3 * images().float())
        gradients.append(torch.autograd.grad(penalty, model[0].weight)[0])
    assert torch.equal(*gradients)
    assert gradients[0].abs().max() > 1e-4


def test_its_pass_leaves_modes_statistics_hooks_and_randomness_alone():
    model = convnet().train()
    model[3].eval()
    before = copy.deepcopy(model.state_dict())
    modes = [module.training for module in model.modules()]
    state = torch.random.get_rng_state()
    maps = stage_maps(model, ["input", "1", "4"], images())
    assert list(maps) == ["input", "1", "4"]
    assert [module.training for module in model.modules()] == modes
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert torch.equal(state, torch.random.get_rng_state())
    assert not any(module._forward_hooks for module in model.modules())


def test_rows_choose_the_samples():
    model = convnet().eval()
    lider = LiDER(model, ["1", "4"], estimator="jacobian", tol=0.0)
    lider.calibrate([images(2)])
    with lider.watch(torch.tensor([False, True, True])):
        model(images())
    chosen = lider.constants
    with lider.watch():
        model(images()[1:])
    torch.testing.assert_close(chosen, lider.constants)


def test_no_chosen_row_gives_no_penalty():
    model = convnet().eval()
    lider = LiDER(model, ["1", "4"], estimator="jacobian")
    with lider.watch(torch.tensor([False, False, False])):
        model(images())
    assert lider.penalty() == 0


def test_descending_the_penalty_makes_the_network_locally_flatter():
    model = convnet().float()
    lider = LiDER(model, ["1", "4"], alpha=0.0, beta=1.0, estimator="jacobian")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    values = []
    for _ in range(8):
        with lider.watch():
            model(images().float())
        loss = lider.penalty()
        values.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert values[-1] < 0.9 * values[0]


def test_without_the_input_in_the_chain():
    model = convnet()
    lider = LiDER(model, ["1", "4"], estimator="jacobian", from_input=False, iterations=None)
    lider.calibrate([images()])
    expected = dense_constants(model, images())[:, 1:].mean(0)
    torch.testing.assert_close(lider.targets.detach().double(), expected, rtol=1e-5, atol=1e-6)


def test_stages_out_of_order_are_refused():
    lider = LiDER(convnet(), ["4", "1"], estimator="jacobian")
    with pytest.raises(ValueError, match="running order"):
        lider.calibrate([images()])


def test_it_trains_in_the_lab(build):
    options = {"estimator": "jacobian", "alpha": 0.01, "beta": 0.01, "iterations": 2}
    loop = build("er", {"lider": options}, epochs=1, size=6)
    names = {name for event in loop for name in getattr(event, "terms", {})}
    assert {"lider/c_lip", "lider/0_lip"} <= names
    assert all(bool(p.isfinite().all()) for p in loop.network.parameters())


# Tokens


def test_tokens_are_positions():
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(2, 12, d, generator=generator, dtype=torch.float64) for d in (4, 8))
    as_maps = (tokens.mT.reshape(2, -1, 3, 4) for tokens in (a, b))
    torch.testing.assert_close(spatial_lipschitz(a, b), spatial_lipschitz(*as_maps))


def test_beside_a_map_the_class_token_is_left_out():
    generator = torch.Generator().manual_seed(0)
    map_ = torch.randn(2, 4, 4, 8, generator=generator)
    tokens = torch.randn(2, 9, 8, generator=generator)  # one, and a grid of 2 x 4
    grid = tokens[:, 1:].mT.reshape(2, 8, 2, 4)
    torch.testing.assert_close(spatial_lipschitz(map_, tokens), spatial_lipschitz(map_, grid))
    torch.testing.assert_close(spatial_lipschitz(grid, map_), spatial_lipschitz(tokens, map_))


@pytest.mark.parametrize("estimator", ["spatial", "batch", "jacobian"])
def test_a_vision_transformer_can_be_regularised(estimator):
    model = vit()
    stages = ["patches", "blocks.0", "blocks.1"]
    lider = LiDER(model, stages, alpha=0.0, beta=1.0, estimator=estimator)
    x = images(4, channels=3, side=8).float()
    lider.calibrate([x])
    model.eval()  # the maps by hand come without dropout
    with lider.watch():
        model(x)
    if estimator == "spatial":
        maps = [m.detach() for m in stage_maps(model, ["input", *stages], x).values()]
        assert [m.dim() for m in maps] == [4, 4, 3, 3]
        by_hand = torch.stack([spatial_lipschitz(a, b).mean() for a, b in pairwise(maps)])
        torch.testing.assert_close(lider.constants, by_hand)
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05 if estimator == "jacobian" else 0.5)
    values = []
    with torch.random.fork_rng():
        torch.manual_seed(0)
        for _ in range(6):
            with lider.watch():
                model(x)
            loss = lider.penalty()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            values.append(loss.item())
    touched = [
        p.grad is not None and bool(p.grad.abs().max() > 0) for p in model.blocks.parameters()
    ]
    assert sum(touched) > len(touched) / 2
    assert values[-1] < 0.98 * values[0]


def test_local_constant_of_an_encoder_layer_is_the_dense_jacobians():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(6, 2, 8, 0.0, "gelu", batch_first=True).double()
    model = nn.Sequential(layer)
    x = torch.randn(2, 4, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    lider = LiDER(model, ["0"], estimator="jacobian", iterations=200, tol=1e-9)
    lider.calibrate([x])
    one = [torch.autograd.functional.jacobian(lambda z: model.eval()(z[None])[0], row) for row in x]
    truth = torch.stack([torch.linalg.svdvals(j.reshape(24, 24))[0] for j in one]).mean()
    torch.testing.assert_close(lider.targets[0].detach().double(), truth, rtol=1e-5, atol=1e-6)


def test_stages_of_a_transformer_are_found():
    lider = LiDER(vit())
    lider.calibrate([images(4, channels=3, side=8).float()])
    assert lider.stages == ["patches", "blocks.0", "blocks.1"]
