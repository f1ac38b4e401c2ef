"""The estimators against the explicit matrix, in float64."""

import math
from itertools import pairwise

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from coupling_oracle import top_singular_value, unit
from liderlab.functional import singular
from liderlab.functional.coupling import EPS, inverse_norm
from liderlab.functional.lipschitz import batch_lipschitz, spatial_lipschitz
from liderlab.functional.singular import power_iteration

MAPS = {
    "equal": ((6, 5, 5), (6, 5, 5)),
    "channels divide": ((3, 8, 8), (12, 8, 8)),
    "channels do not divide": ((4, 7, 7), (10, 7, 7)),
    "one channel more": ((6, 4, 4), (7, 4, 4)),
    "fewer channels later": ((8, 6, 6), (3, 3, 3)),
    "half the channels later": ((8, 6, 6), (4, 6, 6)),
    "fewer positions than channels": ((16, 3, 3), (32, 2, 2)),
    "as many positions as channels": ((9, 6, 6), (9, 3, 3)),
    "odd sizes": ((5, 7, 5), (9, 3, 4)),
    "later map larger": ((4, 3, 3), (8, 6, 6)),
    "later map larger by a fraction": ((4, 3, 3), (8, 5, 4)),
    "later map larger one way": ((4, 3, 8), (6, 6, 3)),
    "one row of positions": ((4, 1, 6), (8, 1, 3)),
    "later map of one position": ((4, 4, 4), (6, 1, 1)),
    "earlier map of one position": ((4, 1, 1), (6, 3, 3)),
    "one channel": ((1, 4, 4), (3, 4, 4)),
    "one channel later": ((3, 4, 4), (1, 4, 4)),
}
BATCHES = {
    "more samples than features": (12, (3,), (5,)),
    "fewer samples than features": (4, (30,), (20,)),
    "in between": (8, (20,), (5,)),
    "maps": (5, (3, 4, 4), (6, 2, 2)),
    "two samples": (2, (7,), (9,)),
    "one feature": (6, (1,), (4,)),
}
ITERATIONS = [None, 1000]


def random(*shape: int, seed: int = 0, offset: float = 0.0) -> Tensor:
    """Noise; an offset per channel adds a common direction, and so a gap after σ₁."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(*shape, generator=generator, dtype=torch.float64)
    one = (1, shape[1], *[1] * (len(shape) - 2))
    return noise + offset * torch.rand(one, generator=generator, dtype=torch.float64)


def maps(case: str, n: int = 3, offset: float = 0.0) -> tuple[Tensor, Tensor]:
    earlier, later = MAPS[case]
    return random(n, *earlier, offset=offset), random(n, *later, seed=1, offset=offset)


def batches(case: str, offset: float = 0.0) -> tuple[Tensor, Tensor]:
    n, earlier, later = BATCHES[case]
    return random(n, *earlier, offset=offset), random(n, *later, seed=1, offset=offset)


# The oracles: explicit averaging matrices, explicit M


def averaging(inputs: int, outputs: int) -> Tensor:
    """(outputs, inputs): output i is the mean of inputs ⌊i·in/out⌋ … ⌈(i+1)·in/out⌉ − 1."""
    matrix = torch.zeros(outputs, inputs, dtype=torch.float64)
    for i in range(outputs):
        window = slice(i * inputs // outputs, math.ceil((i + 1) * inputs / outputs))
        matrix[i, window] = 1 / (window.stop - window.start)
    return matrix


def spatial_matrices(earlier: Tensor, later: Tensor) -> Tensor:
    """(n, C, C): the transmitting matrix of every sample."""
    matrices = []
    for a, b in zip(earlier, later, strict=True):
        b = torch.einsum("cd,dhw->chw", averaging(len(b), len(a)), b)
        a, b = (x / (x.square().sum(0).sqrt() + EPS) for x in (a, b))
        height, width = (min(sizes) for sizes in zip(a.shape[1:], b.shape[1:], strict=True))
        a, b = (
            torch.einsum(
                "ph,chw,qw->cpq",
                averaging(x.shape[1], height),
                x,
                averaging(x.shape[2], width),
            ).flatten(1)
            for x in (a, b)
        )
        matrices.append(a @ b.T / (height * width))
    return torch.stack(matrices)


def batch_matrix(earlier: Tensor, later: Tensor) -> Tensor:
    """(d_k, d_{k−1}): F_kᵀ F_{k−1} / B."""
    a, b = earlier.flatten(1), later.flatten(1)
    a, b = (x / (x.square().sum(1, keepdim=True).sqrt() + EPS) for x in (a, b))
    return b.T @ a / len(a)


def top(matrix: Tensor) -> Tensor:
    return torch.linalg.svdvals(matrix)[..., 0]


def top_of_tm(matrix: Tensor) -> Tensor:
    """The largest eigenvalue of TM = MᵀM (Eq. 6)."""
    return torch.linalg.eigvalsh(matrix.mT @ matrix)[..., -1]


# Values


@pytest.mark.parametrize("iterations", ITERATIONS)
@pytest.mark.parametrize("offset", [0.0, 1.0])
@pytest.mark.parametrize("case", MAPS)
def test_spatial_is_the_top_singular_value_of_the_explicit_matrix(case, offset, iterations):
    earlier, later = maps(case, offset=offset)
    matrices = spatial_matrices(earlier, later)
    options = {"iterations": iterations, "tol": 0.0}
    ours = spatial_lipschitz(earlier, later, **options)
    assert ours.shape == (3,)
    torch.testing.assert_close(ours, top(matrices), rtol=1e-6, atol=0)
    squared = spatial_lipschitz(earlier, later, reading="eigenvalue", **options)
    torch.testing.assert_close(squared, top_of_tm(matrices), rtol=1e-6, atol=0)


@pytest.mark.parametrize("iterations", ITERATIONS)
@pytest.mark.parametrize("offset", [0.0, 1.0])
@pytest.mark.parametrize("case", BATCHES)
def test_batch_is_the_top_singular_value_of_the_explicit_matrix(case, offset, iterations):
    earlier, later = batches(case, offset=offset)
    matrix, b = batch_matrix(earlier, later), len(earlier)
    options = {"iterations": iterations, "tol": 0.0}
    ours = batch_lipschitz(earlier, later, **options)
    assert ours.shape == ()
    torch.testing.assert_close(ours, top(matrix), rtol=1e-6, atol=0)
    squared = batch_lipschitz(earlier, later, reading="eigenvalue", **options)
    torch.testing.assert_close(squared, top_of_tm(matrix), rtol=1e-6, atol=0)
    printed = batch_lipschitz(earlier, later, reading="eigenvalue", divide=False, **options)
    torch.testing.assert_close(printed, top_of_tm(matrix * b), rtol=1e-6, atol=0)


@pytest.mark.parametrize("shape", [(9, 4), (4, 9), (5, 5)])
@pytest.mark.parametrize("positions", [3, 7, 30])
@pytest.mark.parametrize("iterations", ITERATIONS)
def test_top_singular_value_on_every_side(shape, positions, iterations):
    a, b = random(2, shape[0], positions), random(2, shape[1], positions, seed=1)
    ours = top_singular_value(a, b, iterations, tol=0.0)
    torch.testing.assert_close(ours, top(a @ b.mT / positions), rtol=1e-6, atol=0)


@pytest.mark.parametrize("estimator", [spatial_lipschitz, batch_lipschitz])
@pytest.mark.parametrize("iterations", [None, 1, 10])
def test_lies_between_zero_and_one_and_ignores_scale(estimator, iterations):
    for seed in range(20):
        earlier = random(4, 5, 4, 4, seed=seed, offset=seed % 3).float()
        later = random(4, 7, 3, 3, seed=100 + seed, offset=seed % 5).float().relu()
        value = estimator(earlier, later, iterations=iterations)
        assert (value > 0).all()
        assert (value <= 1).all()
        scaled = estimator(1000 * earlier, 0.01 * later, iterations=iterations)
        torch.testing.assert_close(scaled, value, rtol=1e-4, atol=0)
    same = torch.ones(4, 5, 3, 3)
    torch.testing.assert_close(
        estimator(same, same, iterations=iterations).max(), torch.tensor(1.0), rtol=0, atol=1e-5
    )


def test_power_iteration_approaches_from_below():
    earlier, later = maps("odd sizes")
    exact = top(spatial_matrices(earlier, later))
    errors = [
        (exact - spatial_lipschitz(earlier, later, iterations=i, tol=0.0)) / exact
        for i in (1, 2, 4, 8, 16, 32)
    ]
    for worse, better in pairwise(errors):
        assert (better >= -1e-12).all()
        assert (better <= worse + 1e-12).all()
    assert errors[0].max() > 0.01  # it had something to improve


def test_each_sample_is_estimated_on_its_own():
    earlier, later = maps("channels do not divide", n=4)
    together = spatial_lipschitz(earlier, later, tol=0.0)
    alone = [spatial_lipschitz(earlier[i : i + 1], later[i : i + 1], tol=0.0) for i in range(4)]
    torch.testing.assert_close(together, torch.cat(alone), rtol=1e-12, atol=0)


def test_channels_last_gives_the_same():
    earlier, later = maps("channels divide")
    other = (x.to(memory_format=torch.channels_last) for x in (earlier, later))
    torch.testing.assert_close(spatial_lipschitz(*other), spatial_lipschitz(earlier, later))


# Gradients


@pytest.mark.parametrize("iterations", [None, 60])
@pytest.mark.parametrize("reading", ["singular", "eigenvalue"])
@pytest.mark.parametrize(
    ("earlier", "later"),
    [((3, 3, 2), (5, 2, 2)), ((6, 2, 2), (4, 1, 2)), ((3, 2, 1), (6, 3, 2))],
    ids=["channels do not divide", "fewer positions than channels", "later map larger"],
)
def test_spatial_gradcheck(earlier, later, reading, iterations):
    inputs = [random(1, *earlier, offset=4.0), random(1, *later, seed=1, offset=4.0)]
    inputs = [x.requires_grad_() for x in inputs]

    def function(earlier: Tensor, later: Tensor) -> Tensor:
        return spatial_lipschitz(earlier, later, reading=reading, iterations=iterations, tol=0.0)

    gap = torch.linalg.svdvals(spatial_matrices(*inputs))
    assert (gap[:, 1] < 0.8 * gap[:, 0]).all()
    assert torch.autograd.gradcheck(function, inputs)


@pytest.mark.parametrize("iterations", [None, 60])
@pytest.mark.parametrize("case", ["more samples than features", "fewer samples than features"])
def test_batch_gradcheck(case, iterations):
    inputs = [x.requires_grad_() for x in batches(case, offset=3.0)]

    def function(earlier: Tensor, later: Tensor) -> Tensor:
        return batch_lipschitz(earlier, later, iterations=iterations, tol=0.0)

    gap = torch.linalg.svdvals(batch_matrix(*inputs))
    assert gap[1] < 0.8 * gap[0]
    assert torch.autograd.gradcheck(function, inputs)


@pytest.mark.parametrize("iterations", ITERATIONS)
@pytest.mark.parametrize("case", MAPS)
def test_spatial_gradient_is_that_of_the_svd(case, iterations):
    inputs = [x.requires_grad_() for x in maps(case, offset=0.5)]
    value = spatial_lipschitz(*inputs, iterations=iterations, tol=0.0).sum()
    ours = torch.autograd.grad(value, inputs)
    exact = torch.autograd.grad(top(spatial_matrices(*inputs)).sum(), inputs)
    torch.testing.assert_close(ours, exact, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("iterations", ITERATIONS)
@pytest.mark.parametrize("case", BATCHES)
def test_batch_gradient_is_that_of_the_svd(case, iterations):
    inputs = [x.requires_grad_() for x in batches(case, offset=0.5)]
    value = batch_lipschitz(*inputs, iterations=iterations, tol=0.0)
    ours = torch.autograd.grad(value, inputs)
    exact = torch.autograd.grad(top(batch_matrix(*inputs)), inputs)
    torch.testing.assert_close(ours, exact, rtol=1e-5, atol=1e-7)


def test_why_the_gram_product_is_not_differentiated():
    """A Rayleigh quotient of G_{k−1} G_k: the right value, and a gradient far off."""
    inputs = [x.requires_grad_() for x in batches("fewer samples than features", offset=0.5)]
    exact = torch.autograd.grad(top(batch_matrix(*inputs)), inputs)

    units = [unit(x, dim=1) for x in inputs]
    product = (units[0] @ units[0].T) @ (units[1] @ units[1].T)
    q = power_iteration(product.detach(), 4000)
    naive = (q.T @ product @ q).sqrt().squeeze() / len(q)
    torch.testing.assert_close(naive, top(batch_matrix(*inputs)), rtol=1e-6, atol=0)
    wrong = torch.autograd.grad(naive, inputs)

    def distance(gradients: tuple[Tensor, ...]) -> float:
        away = sum((a - b).square().sum() for a, b in zip(gradients, exact, strict=True))
        return (away / sum(b.square().sum() for b in exact)).sqrt().item()

    right = torch.autograd.grad(batch_lipschitz(*inputs, iterations=4000, tol=0.0), inputs)
    assert distance(wrong) > 0.1
    assert distance(right) < 1e-5


def test_repeated_top_value_has_a_finite_subgradient():
    maps = torch.eye(4, dtype=torch.float64).reshape(1, 4, 2, 2).requires_grad_()
    for iterations in (None, 10):
        value = spatial_lipschitz(maps, maps, iterations=iterations)
        torch.testing.assert_close(value, torch.full_like(value, 0.25), rtol=1e-6, atol=0)
        (gradient,) = torch.autograd.grad(value.sum(), maps)
        assert gradient.isfinite().all()


# The edges


@pytest.mark.parametrize("iterations", [None, 10])
@pytest.mark.parametrize("estimator", [spatial_lipschitz, batch_lipschitz])
def test_zero_features_give_zero_and_no_gradient(estimator, iterations):
    earlier = torch.zeros(3, 4, 4, 4, requires_grad=True)
    later = random(3, 6, 2, 2).float().requires_grad_()
    for pair in ((earlier, later), (later, earlier), (earlier, 2 * earlier)):
        value = estimator(*pair, iterations=iterations).sum()
        assert value == 0
        for gradient in torch.autograd.grad(value, [earlier, later], allow_unused=True):
            assert gradient is None or (gradient == 0).all()


@pytest.mark.parametrize("iterations", [None, 10])
def test_zero_positions_receive_no_gradient(iterations):
    earlier, later = (x.float() for x in maps("equal"))
    earlier[0, :, :2] = 0
    later[1, :, 3] = 0
    inputs = [earlier.requires_grad_(), later.requires_grad_()]
    value = spatial_lipschitz(*inputs, iterations=iterations)
    a, b = torch.autograd.grad(value.sum(), inputs)
    assert a.isfinite().all()
    assert b.isfinite().all()
    assert (a[0, :, :2] == 0).all()
    assert (b[1, :, 3] == 0).all()
    assert (a[0, :, 2:] != 0).all()
    exact = top(spatial_matrices(earlier.double(), later.double()))
    if iterations is None:
        torch.testing.assert_close(value.double(), exact, rtol=1e-5, atol=0)


@pytest.mark.parametrize("iterations", [None, 10])
def test_zero_samples_receive_no_gradient(iterations):
    inputs = [random(4, 5).float(), random(4, 6, seed=1).float()]
    inputs[0][1] = 0
    inputs[1][2] = 0
    inputs = [x.requires_grad_() for x in inputs]
    a, b = torch.autograd.grad(batch_lipschitz(*inputs, iterations=iterations), inputs)
    assert a.isfinite().all()
    assert b.isfinite().all()
    assert (a[1] == 0).all()
    assert (b[2] == 0).all()
    assert (a[0] != 0).any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("case", ["channels divide", "channels do not divide", "odd sizes"])
def test_half_precision_is_computed_in_float32(case, dtype):
    """Against float64 on the very values that half precision holds."""
    earlier, later = (x.to(dtype) for x in maps(case, offset=1.0))
    exact = top(spatial_matrices(earlier.double(), later.double()))
    for iterations in (None, 300):
        inputs = [earlier.clone().requires_grad_(), later.clone().requires_grad_()]
        value = spatial_lipschitz(*inputs, iterations=iterations)
        assert value.dtype == torch.float32
        torch.testing.assert_close(value.double(), exact, rtol=1e-5, atol=0)
        for gradient in torch.autograd.grad(value.sum(), inputs):
            assert gradient.dtype == dtype
            assert gradient.isfinite().all()
    value = batch_lipschitz(earlier, later, iterations=None)
    exact = top(batch_matrix(earlier.double(), later.double()))
    assert value.dtype == torch.float32
    torch.testing.assert_close(value.double(), exact, rtol=1e-5, atol=0)


def test_large_half_precision_values_do_not_overflow():
    earlier = torch.full((2, 64, 4, 4), 60000.0, dtype=torch.float16)
    torch.testing.assert_close(spatial_lipschitz(earlier, earlier), torch.ones(2))
    torch.testing.assert_close(batch_lipschitz(earlier, earlier), torch.ones(()))


@pytest.mark.parametrize("estimator", [spatial_lipschitz, batch_lipschitz])
def test_autocast_does_not_lower_the_precision(estimator):
    earlier, later = (x.float() for x in maps("odd sizes"))
    plain = estimator(earlier, later)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        within = estimator(earlier, later)
    assert within.dtype == torch.float32
    assert torch.equal(within, plain)


@pytest.mark.parametrize("iterations", [None, 10])
def test_constant_maps_of_one_sample_are_one(iterations):
    earlier, later = torch.full((1, 4, 3, 3), 2.0), torch.full((1, 8, 3, 3), 5.0)
    inputs = [earlier.requires_grad_(), later.requires_grad_()]
    value = spatial_lipschitz(*inputs, iterations=iterations)
    torch.testing.assert_close(value, torch.ones(1))
    for gradient in torch.autograd.grad(value.sum(), inputs):
        assert gradient.abs().max() < 1e-6  # it cannot grow


def test_one_position_in_the_later_map_leaves_the_later_stage_without_gradient():
    inputs = [x.requires_grad_() for x in maps("later map of one position")]
    a, b = torch.autograd.grad(spatial_lipschitz(*inputs).sum(), inputs)
    assert a.abs().max() > 1e-3
    assert b.abs().max() < 1e-7


def test_one_channel_leaves_no_gradient():
    inputs = [(x + x.sign())[:, :1].requires_grad_() for x in maps("one channel")]
    for gradient in torch.autograd.grad(spatial_lipschitz(*inputs).sum(), inputs):
        assert gradient.abs().max() < 1e-6


def test_no_samples_give_no_estimates():
    assert spatial_lipschitz(torch.zeros(0, 3, 4, 4), torch.zeros(0, 3, 4, 4)).shape == (0,)


@pytest.mark.parametrize(
    ("earlier", "later", "says"),
    [
        ((2, 3, 1, 1), (2, 6, 1, 1), "more than one position"),
        ((2, 3), (2, 6), r"\(n, C, H, W\)"),
        ((2, 3, 8, 8), (2, 6, 4, 4, 4), r"tokens \(n, N, D\)"),
        ((2, 3, 8, 2), (2, 3, 6), "fill a grid of the proportions 4:1"),
        ((2, 3, 4, 4), (3, 3, 4, 4), "same samples"),
    ],
)
def test_wrong_maps_are_refused(earlier, later, says):
    with pytest.raises(ValueError, match=says):
        spatial_lipschitz(torch.ones(earlier), torch.ones(later))


@pytest.mark.parametrize(
    ("earlier", "later", "says"),
    [
        ((1, 3), (1, 3), "at least two samples"),
        ((2, 3), (3, 3), "same samples"),
        ((3,), (3,), r"\(B, …\)"),
    ],
)
def test_wrong_batches_are_refused(earlier, later, says):
    with pytest.raises(ValueError, match=says):
        batch_lipschitz(torch.ones(earlier), torch.ones(later))


def test_an_unknown_reading_is_refused():
    with pytest.raises(ValueError, match="did you mean 'singular'"):
        batch_lipschitz(torch.eye(2), torch.eye(2), reading="singulr")


def test_the_last_tokens_fill_a_grid_beside_a_map():
    """Of 9 tokens beside a map of 4x8, the last 8 are 2x4 patches, row by row."""
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randn(2, 9, 3, dtype=torch.float64, generator=generator)
    image = torch.randn(2, 2, 4, 8, dtype=torch.float64, generator=generator)
    patches = torch.empty(2, 3, 2, 4, dtype=torch.float64)
    for row in range(2):
        for column in range(4):
            patches[:, :, row, column] = tokens[:, 1 + 4 * row + column]
    for order in (1, -1):
        found, expected = (spatial_lipschitz(*(image, x)[::order]) for x in (tokens, patches))
        torch.testing.assert_close(found, expected)


# The iteration itself


@pytest.mark.parametrize("shape", [(9, 4, 7), (4, 9, 7), (9, 7, 4)])
def test_the_iteration_is_on_the_smallest_side(shape, monkeypatch):
    """(P, N), (Q, N): which of P, Q and N is the smallest changes the time, not the result."""
    sides, iterate = [], singular.power_iteration

    def recorded(matrix, *arguments):
        sides.append(matrix.shape[-1])
        return iterate(matrix, *arguments)

    monkeypatch.setattr(singular, "power_iteration", recorded)
    first, second, positions = shape
    a, b = torch.randn(first, positions), torch.randn(second, positions)
    singular.top_vectors(a, b, 10, 0.0)
    assert sides == [4]


class Products(TorchFunctionMode):
    """Counts matrix products."""

    count = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.count += function in (torch.Tensor.matmul, torch.Tensor.__matmul__)
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize(("tol", "fewest", "most"), [(0.0, 500, 500), (1e-6, 5, 100)])
def test_tol_stops_early_and_zero_does_not(tol, fewest, most):
    matrix = torch.diag(torch.tensor([1.0, 0.7, 0.5])).expand(2, 3, 3)
    with Products() as products:
        vector = power_iteration(matrix, 500, tol)
    assert fewest <= products.count <= most
    torch.testing.assert_close((matrix @ vector).norm(dim=1), torch.ones(2, 1), rtol=1e-5, atol=0)


def test_the_start_is_fixed_and_without_symmetry():
    start = 1 + 0.5 * torch.arange(1, 6).double().cos()
    found = power_iteration(torch.eye(5, dtype=torch.float64), 1)
    torch.testing.assert_close(found[:, 0], start / start.norm())


@pytest.mark.parametrize("tol", [1e-2, 1e-3, 1e-4])
def test_it_stops_once_the_root_of_the_eigenvalue_changes_by_a_fraction_tol(tol):
    """A small change of the root is half that of the eigenvalue."""
    matrix = torch.diag(torch.linspace(1, 2, 9, dtype=torch.float64))
    vector, before, steps = power_iteration(torch.eye(9, dtype=torch.float64), 1), 0.0, 0
    while True:
        image = matrix @ vector
        value, steps = image.norm().item(), steps + 1
        vector = image / value
        if abs(value - before) <= 2 * tol * value:
            break
        before = value
    with Products() as products:
        found = power_iteration(matrix, 10_000, tol)
    assert products.count == steps > 3
    torch.testing.assert_close(found, vector)


def test_a_column_beside_one_position_is_estimated():
    """Only if both maps have one position is the estimate always one."""
    column, point = torch.rand(2, 3, 4, 1).double(), torch.rand(2, 5, 1, 1).double()
    for maps_of in ((column, point), (point, column)):
        assert (spatial_lipschitz(*maps_of) < 1).all()


def test_a_zero_matrix_takes_one_step():
    with Products() as products:
        vector = power_iteration(torch.zeros(3, 3), 500, 1e-6)
    assert products.count == 1
    assert not vector.any()


def test_a_vector_as_short_as_the_limit_counts_as_zero():
    assert inverse_norm(torch.tensor([0.0, EPS, 2.0])).tolist() == [0, 0, 0.5]


def test_the_slowest_matrix_of_the_batch_decides():
    matrices = torch.stack([torch.diag(torch.tensor([1.0, r])) for r in (0.1, 0.97)]).double()
    vectors = power_iteration(matrices, 10_000, tol=1e-12)
    torch.testing.assert_close(
        (matrices @ vectors).norm(dim=1), torch.ones(2, 1).double(), rtol=1e-10, atol=0
    )


def test_nothing_is_random():
    earlier, later = maps("odd sizes")
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = spatial_lipschitz(earlier, later), batch_lipschitz(earlier, later)
    exact = spatial_lipschitz(earlier, later, iterations=None)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    second = spatial_lipschitz(earlier, later), batch_lipschitz(earlier, later)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert torch.equal(exact, spatial_lipschitz(earlier, later, iterations=None))
