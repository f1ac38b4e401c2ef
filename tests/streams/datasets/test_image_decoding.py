"""Images of every Pillow mode keep their grey levels, or are refused."""

import os
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageMode

from liderlab.errors import UserError
from liderlab.runs.image_input import as_pixels
from liderlab.streams.datasets.image_decoding import decode
from liderlab.streams.datasets.image_folder import read_folder

GREY = np.arange(256, dtype=np.uint8).reshape(16, 16)  # every level once
WIDE = GREY.astype(np.uint16) * 257  # the same of 16 bits: 255 becomes 65535
MODES = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV")
WIDE_MODES = ("I;16", "I;16L", "I;16B", "I;16N")
REFUSED = ("I", "F", "La")


def picture(mode: str) -> Image.Image:
    if mode in WIDE_MODES:
        order = ">u2" if mode.endswith("B") else "<u2"
        return Image.frombytes(mode, (16, 16), WIDE.astype(order).tobytes())
    grey = Image.fromarray(GREY)
    if mode == "1":
        return grey.point(lambda level: 255 * (level > 127), mode="1")
    return grey.convert("LA").convert(mode) if mode in ("La", "PA") else grey.convert(mode)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("mode", MODES + WIDE_MODES)
def test_every_mode_keeps_its_grey_levels(mode: str, channels: int) -> None:
    found = decode(picture(mode), (channels, 16, 16))
    expected = 255 * (GREY > 127) if mode == "1" else GREY
    assert found.dtype == np.uint8
    assert np.array_equal(found, np.broadcast_to(expected, (channels, 16, 16)))


@pytest.mark.parametrize("mode", REFUSED)
def test_modes_without_a_known_range_are_refused(mode: str) -> None:
    with pytest.raises(UserError, match=r"cannot read an object of Image as an image: .+"):
        decode(picture(mode), (3, 16, 16))


def test_no_mode_of_pillow_is_left_out() -> None:
    """RGBa and LAB come from no file that the lab reads as a data set."""
    known = {*MODES, *WIDE_MODES, *REFUSED, "RGBa", "LAB"}
    assert set(Image.MODES) | {"PA", "La", "RGBX"} <= known
    assert {ImageMode.getmode(mode).mode for mode in known} == known


def tiff_of_12_bits(path: Path) -> None:
    """By hand, as Pillow writes none: two levels in three bytes."""
    levels = np.rint(GREY.ravel() * (4095 / 255)).astype(int)
    packed = bytearray()
    for a, b in zip(levels[::2], levels[1::2], strict=True):
        packed += bytes((a >> 4, (a & 15) << 4 | b >> 8, b & 255))
    tags = {256: 16, 257: 16, 258: 12, 259: 1, 262: 1, 273: 122, 277: 1, 278: 16, 279: len(packed)}
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
    assert len(entries) + 8 + 2 + 4 == 122
    header = b"II*\0" + struct.pack("<IH", 8, len(tags))
    path.write_bytes(header + entries + bytes(4) + packed)


def write(path: Path) -> None:
    if path.name.startswith("12"):
        tiff_of_12_bits(path)
    elif path.suffix == ".pgm":
        path.write_bytes(b"P5 16 16 65535\n" + WIDE.astype(">u2").tobytes())
    else:
        picture(path.stem).save(path)


FILES = ["I;16.png", "I;16.tif", "I;16B.tif", "16.pgm", "12.tif"]
FILES += ["L.png", "LA.png", "P.png", "RGB.png", "RGBA.png", "L.bmp", "L.gif", "CMYK.tif"]


@pytest.mark.parametrize("name", FILES)
def test_files_are_read_alike_for_training_and_for_prediction(tmp_path: Path, name: str) -> None:
    for folder, letter in (("train", "a"), ("train", "b"), ("test", "a"), ("test", "b")):
        file = tmp_path / folder / letter / name
        file.parent.mkdir(parents=True)
        write(file)
    (block,) = read_folder(tmp_path, 16).train.blocks()
    assert np.array_equal(block, np.broadcast_to(GREY, (2, 3, 16, 16)))
    assert np.array_equal(as_pixels(file, (3, 16, 16)).numpy(), block[:1])
    assert np.array_equal(as_pixels([file], (1, 16, 16)).numpy(), block[:1, :1])


@pytest.mark.parametrize("mode", ["I", "F"])
def test_a_file_of_32_bits_is_refused_by_name(tmp_path: Path, mode: str) -> None:
    picture(mode).save(tmp_path / "a.tif")
    with pytest.raises(UserError, match=r"a\.tif as an image: its .* no known range: save it with"):
        as_pixels(tmp_path / "a.tif", (3, 16, 16))


def test_a_named_pipe_is_refused(tmp_path: Path) -> None:
    """Opening it would wait for a writer for ever."""
    os.mkfifo(tmp_path / "a.png")
    for read in (as_pixels, decode):
        with pytest.raises(UserError, match=r"a\.png as an image: it is not a file"):
            read(tmp_path / "a.png", (3, 16, 16))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"there is no image .*none\.png"):
        as_pixels(tmp_path / "none.png", (3, 16, 16))
