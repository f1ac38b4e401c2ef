import base64
from io import BytesIO
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from liderlab.report.sprite import memory_view


def memory(
    n: int = 30, channels: int = 3, side: int = 8, dtype: torch.dtype = torch.uint8, **more: Any
) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(0, 256, (n, channels, side, side), generator=generator).to(dtype)
    y = torch.arange(n) % 5
    return {"filled": n, "data": {"x": x, "y": y, "task": y // 2, **more}}


def picture(view: dict[str, Any]) -> np.ndarray:
    return np.array(Image.open(BytesIO(base64.b64decode(view["picture"].partition(",")[2]))))


@pytest.mark.parametrize("channels", [1, 3])
def test_every_image_is_where_its_label_says(channels: int) -> None:
    held = memory(channels=channels)
    view = memory_view(held, 1_000_000)
    assert view is not None
    assert view["picture"].startswith("data:image/png")
    sheet = picture(view).reshape(*picture(view).shape[:2], channels)
    order = sorted(
        range(30), key=lambda i: (int(held["data"]["task"][i]), int(held["data"]["y"][i]))
    )
    for place, i in enumerate(order):
        row, column = divmod(place, view["columns"])
        tile = sheet[8 * row : 8 * row + 8, 8 * column : 8 * column + 8]
        assert np.array_equal(tile, held["data"]["x"][i].permute(1, 2, 0).numpy())
        assert view["label"][place] == held["data"]["y"][i]
        assert view["task"][place] == held["data"]["task"][i]


def test_too_much_becomes_less_of_every_class() -> None:
    held = memory(600, side=16)
    whole, part = memory_view(held, 10_000_000), memory_view(held, 60_000)
    assert whole is not None
    assert part is not None
    assert len(whole["label"]) == 600
    assert len(part["picture"]) <= 60_000
    counts = np.bincount(part["label"])
    assert len(counts) == 5
    assert counts.min() == counts.max() < 120
    assert part["total"] == 600
    least = memory_view(held, 0)
    assert least is not None
    assert sorted(least["label"]) == [0, 1, 2, 3, 4]


def test_marks_and_pixels_out_of_range() -> None:
    marks = {"poisoned": torch.arange(30) % 2 == 0, "edits": torch.arange(30)}
    held = memory(dtype=torch.float32, **marks)
    held["data"]["x"] += 300  # GMED may edit beyond white
    view = memory_view(held, 1_000_000)
    assert view is not None
    assert picture(view)[:8, :8].min() == 255
    assert sorted(view["edits"]) == list(range(30))
    assert sum(view["poisoned"]) == 15
    large = memory_view(memory(4, side=200), 1_000_000)
    assert large is not None
    assert (large["width"], large["height"]) == (64, 64)


def test_nothing_to_show() -> None:
    assert memory_view({"filled": 0, "data": {}}, 1000) is None
    assert memory_view({"filled": 3, "data": {"y": torch.zeros(3)}}, 1000) is None
