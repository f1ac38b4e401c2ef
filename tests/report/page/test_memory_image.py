import base64
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from liderlab.errors import UserError
from liderlab.memory import Memory, disk_rows
from liderlab.memory.buffer import Column
from liderlab.memory.policies import Reservoir
from liderlab.report.page import memory_image
from liderlab.report.page.memory_image import memory_view


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


def test_a_small_budget_shows_fewer_images_of_every_class() -> None:
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


def test_no_images_give_no_picture() -> None:
    assert memory_view({"filled": 0, "data": {}}, 1000) is None
    assert memory_view({"filled": 3, "data": {"y": torch.zeros(3)}}, 1000) is None


def filled(storage: str, folder: Path | None = None, dtype: torch.dtype = torch.uint8) -> Memory:
    """The same 200 images of 12 classes, in RAM or on disk."""
    held = memory(200, side=12, dtype=dtype)["data"]
    columns = {"x": Column(None, dtype)}
    kept = Memory(200, (3, 12, 12), columns, Reservoir(), storage=storage, folder=folder)
    kept.offer(torch.Generator().manual_seed(0), x=held["x"], y=held["y"], task=held["task"])
    return kept


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_a_memory_on_disk_looks_like_one_in_ram(tmp_path: Path, dtype: torch.dtype) -> None:
    on_disk = filled("disk", tmp_path, dtype).state_dict()
    assert on_disk["data"]["x"]["dtype"] == dtype
    in_ram = filled("ram", dtype=dtype).state_dict()
    for budget in (1_000_000, 9_000):
        assert memory_view(on_disk, budget, tmp_path) == memory_view(in_ram, budget)
    assert memory_view(on_disk, 1_000_000) is None  # without its folder


def test_only_the_images_shown_are_read_from_disk(tmp_path: Path, monkeypatch) -> None:
    state, read = filled("disk", tmp_path).state_dict(), []
    original = disk_rows.StoredRows.__getitem__

    def noting(rows: disk_rows.StoredRows, slots: torch.Tensor) -> torch.Tensor:
        read.append(len(slots))
        return original(rows, slots)

    monkeypatch.setattr(disk_rows.StoredRows, "__getitem__", noting)
    monkeypatch.setattr(memory_image, "MOST", 40)
    monkeypatch.setattr(memory_image, "AT_A_TIME", 8)
    view = memory_view(state, 1_000_000, tmp_path)
    assert view is not None
    assert sum(read) == len(view["label"]) <= 40
    assert max(read) == 8


def test_changed_rows_on_disk_are_refused(tmp_path: Path) -> None:
    kept = filled("disk", tmp_path)
    state = kept.state_dict()
    (tmp_path / "x.rows").write_bytes(bytes((tmp_path / "x.rows").stat().st_size))
    with pytest.raises(UserError, match="has changed"):
        memory_view(state, 1_000_000, tmp_path)
