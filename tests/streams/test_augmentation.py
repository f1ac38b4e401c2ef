"""The batched crop and flip against a loop over images, pixel by pixel."""

from itertools import pairwise

import pytest
import torch
from scipy.stats import chi2
from torch import Tensor

from liderlab.streams.augmentation import Augment

MEAN, STD = [0.2, 0.5, 0.7], [0.3, 0.25, 0.4]


def images(n: int, height: int = 5, width: int = 7) -> Tensor:
    """Within a channel of an image all pixels differ, and no pixel is 0."""
    base = 1 + torch.arange(height * width).reshape(1, 1, height, width)
    shift = torch.arange(3).reshape(1, 3, 1, 1) * 40 + torch.arange(n).reshape(n, 1, 1, 1) % 90
    return (base + shift).to(torch.uint8)


def normalised(image: Tensor) -> Tensor:
    """Normalise one image channel by channel, by the formula."""
    return torch.stack(
        [(channel.double() / 255 - m) / s for channel, m, s in zip(image, MEAN, STD, strict=True)]
    )


def pad_crop_flip(image: Tensor, padding: int, top: int, left: int, flip: bool) -> Tensor:
    """Pad one image with zeros, cut out a window, and perhaps mirror it."""
    channels, height, width = image.shape
    canvas = torch.zeros(channels, height + 2 * padding, width + 2 * padding, dtype=image.dtype)
    canvas[:, padding : padding + height, padding : padding + width] = image
    window = canvas[:, top : top + height, left : left + width]
    return window.flip(2) if flip else window


def find(
    view: Tensor, image: Tensor, padding: int, flips: tuple[bool, ...]
) -> tuple[int, int, bool]:
    """The one window whose normalised pixels are those of the view."""
    places = range(2 * padding + 1)
    found = [
        (top, left, flip)
        for top in places
        for left in places
        for flip in flips
        if torch.allclose(
            normalised(pad_crop_flip(image, padding, top, left, flip)), view.double(), atol=1e-5
        )
    ]
    assert len(found) == 1, f"{len(found)} windows look like the view"
    return found[0]


@pytest.mark.parametrize(("padding", "flip"), [(0, True), (2, False), (2, True), (4, True)])
def test_each_image_is_one_window_of_itself(padding: int, flip: bool) -> None:
    raw = images(20)
    seen = Augment(MEAN, STD, padding=padding, flip=flip).sample(
        20, torch.Generator().manual_seed(1)
    )(raw)
    windows = [
        find(view, image, padding, (False, True) if flip else (False,))
        for view, image in zip(seen, raw, strict=True)
    ]
    assert len(set(windows)) > min(5, 2 * padding + 1)  # each image has its own
    assert {mirrored for *_, mirrored in windows} == ({False, True} if flip else {False})


def test_windows_and_flips_are_equally_likely() -> None:
    n, padding = 4000, 1
    raw = torch.zeros(n, 3, 5, 6, dtype=torch.uint8)
    raw[:, :, 2, 2] = 255  # one white pixel gives the window away
    view = Augment([0.0] * 3, [1.0] * 3, padding=padding, flip=True)
    moved = view.sample(n, torch.Generator().manual_seed(0))(raw)
    places = moved[:, 0].flatten(1).argmax(1)
    counts = torch.bincount(places, minlength=30).double()
    expected = torch.zeros(5, 6, dtype=torch.float64)
    expected[1:4, 1:4] += n / 18
    expected[1:4, 2:5] += n / 18
    possible = expected.flatten() > 0
    assert (counts[~possible] == 0).all()
    statistic = float(
        ((counts - expected.flatten()) ** 2)[possible].div(expected.flatten()[possible]).sum()
    )
    assert statistic < chi2.ppf(1 - 1e-6, int(possible.sum()) - 1)


def test_without_augmentation_it_only_normalises() -> None:
    raw = images(3)
    expected = torch.stack([normalised(image) for image in raw])
    for augment in (
        Augment(MEAN, STD, padding=3, flip=True).sample(3, None),
        Augment(MEAN, STD).sample(3, torch.Generator()),
    ):
        assert augment(raw).dtype == torch.float32
        assert torch.allclose(augment(raw).double(), expected, atol=1e-6)


def test_a_view_applied_again_is_the_same_view() -> None:
    raw = images(20)
    view = Augment(MEAN, STD, padding=2, flip=True).sample(20, torch.Generator())
    assert torch.equal(view(raw), view(raw))
    assert torch.equal(view(raw), view(raw.float()))
    doubled = view(raw.double())
    assert doubled.dtype == torch.float64
    assert torch.allclose(doubled, view(raw).double(), atol=1e-5)


def test_a_view_is_differentiable_for_float_pixels() -> None:
    raw = images(2, 3, 4).double().requires_grad_()
    view = Augment(MEAN, STD, padding=1, flip=True).sample(2, torch.Generator().manual_seed(2))
    assert torch.autograd.gradcheck(lambda pixels: view(pixels), (raw,))


def test_equal_generators_give_equal_views_and_views_differ() -> None:
    raw, augment = images(20), Augment(MEAN, STD, padding=2, flip=True)
    first, again = (augment.sample(20, torch.Generator().manual_seed(4))(raw) for _ in range(2))
    assert torch.equal(first, again)
    generator = torch.Generator().manual_seed(4)
    views = [augment.sample(20, generator)(raw) for _ in range(3)]
    assert not any(torch.equal(a, b) for a, b in pairwise(views))


def test_an_empty_batch_stays_empty_and_draws_nothing() -> None:
    generator = torch.Generator().manual_seed(0)
    before = generator.get_state()
    view = Augment(MEAN, STD, padding=2, flip=True).sample(0, generator)
    assert view(images(0)).shape == (0, 3, 5, 7)
    assert torch.equal(generator.get_state(), before)


def test_the_given_pixels_are_not_modified() -> None:
    raw = images(5)
    before = raw.clone()
    Augment(MEAN, STD, padding=2, flip=True).sample(5, torch.Generator())(raw)
    assert torch.equal(raw, before)
