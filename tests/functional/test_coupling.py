"""The gradients written by hand, against autograd through the plain definition; float64."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from coupling_oracle import top_singular_value, unit
from liderlab.functional.coupling import Side, averaging, batch_coupling, spatial_coupling
from liderlab.functional.singular import product_vector

MAPS = {
    "equal": ((4, 4, 4), (4, 4, 4)),
    "channels and size halve": ((3, 6, 6), (6, 3, 3)),
    "nothing divides": ((4, 5, 7), (6, 3, 4)),
    "later map larger one way": ((4, 3, 8), (6, 6, 3)),
    "fewer positions than channels": ((12, 4, 4), (16, 2, 2)),
}
LAYOUTS = {"channels first": torch.contiguous_format, "channels last": torch.channels_last}


def maps(case: str, layout: str) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    made = []
    for shape in MAPS[case]:
        noise = torch.randn(3, *shape, generator=generator, dtype=torch.float64)
        common = 2 * torch.rand(1, shape[0], 1, 1, generator=generator, dtype=torch.float64)
        made.append((noise + common).to(memory_format=LAYOUTS[layout]).requires_grad_())
    return made


def plain_spatial(earlier: Tensor, later: Tensor, iterations: int | None) -> Tensor:
    n, _, h, w = later.shape
    channels = F.adaptive_avg_pool1d(later.flatten(2).mT, earlier.shape[1])
    a, b = unit(earlier, 1), unit(channels.mT.reshape(n, -1, h, w), 1)
    size = min(a.shape[2], b.shape[2]), min(a.shape[3], b.shape[3])
    a, b = (F.adaptive_avg_pool2d(feature, size).flatten(2) for feature in (a, b))
    return top_singular_value(a, b, iterations, tol=0.0)


def plain_batch(earlier: Tensor, later: Tensor, iterations: int | None) -> Tensor:
    a, b = (unit(feature.flatten(1), 1).mT for feature in (earlier, later))
    return top_singular_value(a, b, iterations, tol=0.0)


FORMS = {"spatial": (spatial_coupling, plain_spatial), "batch": (batch_coupling, plain_batch)}


@pytest.mark.parametrize("iterations", [None, 300])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", MAPS)
@pytest.mark.parametrize("form", FORMS)
def test_value_and_gradient_are_those_of_the_plain_definition(form, case, layout, iterations):
    written, plain = FORMS[form]
    inputs = maps(case, layout)
    ours, theirs = written(*inputs, iterations, 0.0), plain(*inputs, iterations)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=0)
    weights = torch.arange(1.0, 1 + ours.numel(), dtype=torch.float64).reshape(ours.shape)
    for a, b in zip(
        torch.autograd.grad((weights * ours).sum(), inputs),
        torch.autograd.grad((weights * theirs).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("form", FORMS)
def test_gradients_keep_the_layout_of_the_maps(form):
    for layout, memory_format in LAYOUTS.items():
        inputs = maps("equal", layout)
        value = FORMS[form][0](*inputs, 10, 0.0).sum()
        for gradient in torch.autograd.grad(value, inputs):
            assert gradient.is_contiguous(memory_format=memory_format)


@pytest.mark.parametrize("form", FORMS)
def test_a_map_that_needs_no_gradient_gets_none(form):
    earlier, later = maps("channels and size halve", "channels last")
    both = torch.autograd.grad(FORMS[form][0](earlier, later, 10, 0.0).sum(), (earlier, later))
    one = FORMS[form][0](earlier.detach(), later, 10, 0.0).sum()
    assert torch.equal(torch.autograd.grad(one, later)[0], both[1])
    other = FORMS[form][0](earlier, later.detach(), 10, 0.0).sum()
    assert torch.equal(torch.autograd.grad(other, earlier)[0], both[0])


@pytest.mark.parametrize("form", FORMS)
def test_backward_under_autocast_keeps_the_precision(form):
    inputs = [x.detach().float().requires_grad_() for x in maps("nothing divides", "channels last")]
    plain = torch.autograd.grad(FORMS[form][0](*inputs, 10, 0.0).sum(), inputs)
    value = FORMS[form][0](*inputs, 10, 0.0).sum()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        within = torch.autograd.grad(value, inputs)
    assert all(torch.equal(a, b) for a, b in zip(plain, within, strict=True))


@pytest.mark.parametrize("form", FORMS)
def test_a_second_derivative_is_refused_rather_than_wrong(form):
    inputs, weight = maps("equal", "channels last"), torch.ones((), requires_grad=True)
    value = weight * FORMS[form][0](*inputs, 10, 0.0).sum()
    (gradient, _) = torch.autograd.grad(value, inputs, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


@pytest.mark.parametrize("size", [(3, 3), (4, 2), (7, 5)])
def test_spreading_is_the_adjoint_of_averaging(size):
    generator = torch.Generator().manual_seed(1)
    feature = torch.randn(2, 3, 7, 5, generator=generator, dtype=torch.float64)
    side = Side(feature, 3, size)
    numbers = torch.randn(2, 35, 1, generator=generator, dtype=torch.float64)
    others = torch.randn(2, size[0] * size[1], 1, generator=generator, dtype=torch.float64)
    inside = (side.average(numbers) * others).sum()
    torch.testing.assert_close(inside, (numbers * side.spread(others)).sum())


@pytest.mark.parametrize(("inputs", "outputs"), [(6, 3), (7, 3), (3, 7), (5, 5), (4, 1)])
def test_averaging_is_adaptive_pooling(inputs, outputs):
    x = torch.randn(2, inputs, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    pooled = F.adaptive_avg_pool1d(x[None], outputs)[0]
    torch.testing.assert_close(x @ averaging(inputs, outputs, x.dtype, x.device), pooled)


@pytest.mark.parametrize("ranks", [(6, 6), (2, 6), (6, 2), (2, 3)])
def test_product_vector_is_the_leading_eigenvector(ranks):
    generator = torch.Generator().manual_seed(3)
    factors = [torch.randn(6, rank, generator=generator, dtype=torch.float64) for rank in ranks]
    first, second = (factor @ factor.mT for factor in factors)
    vector = product_vector(first, second)
    largest = torch.linalg.eigvals(first @ second).real.max()
    torch.testing.assert_close(first @ second @ vector, largest * vector, rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(vector.norm(), torch.ones((), dtype=torch.float64))
