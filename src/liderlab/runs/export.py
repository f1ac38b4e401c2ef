"""Export a finished run's network to one file for programs without liderlab."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Literal

import torch

from ..errors import UserError, unknown
from ..files import atomic_file, write_errors
from .load import TrainedNetwork, load

Format = Literal["torch-export", "onnx"]
SUFFIXES = {"torch-export": ".pt2", "onnx": ".onnx"}


def export(run: str | Path, file: str | Path, format: Format = "torch-export") -> TrainedNetwork:
    """Write the network of a finished run: uint8 pixels (n, C, H, W) in, scores (n, classes) out.

    The network normalises the pixels itself and takes any n. The file holds the names of the
    classes as JSON: in a torch-export the extra file `classes.json`, in ONNX the metadata entry
    `classes`.
    """
    if format not in SUFFIXES:
        raise unknown("format", format, SUFFIXES)
    if format == "onnx" and not (find_spec("onnx") and find_spec("onnxscript")):
        raise UserError("onnx is not installed: pip install 'liderlab[onnx]'")
    network = load(run)
    network.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
    example = torch.zeros(2, *network.image_shape, dtype=torch.uint8)
    write = _torch_export if format == "torch-export" else _onnx
    with write_errors(Path(file)), atomic_file(Path(file)) as opened, torch.no_grad(), _quiet():
        write(network, example, opened)
    return network


def _torch_export(network: TrainedNetwork, example: torch.Tensor, file: IO[bytes]) -> None:
    program = torch.export.export(
        network, (example,), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},)
    )
    classes = {"classes.json": json.dumps(network.names, ensure_ascii=False)}
    torch.export.save(program, file, extra_files=classes)


def _onnx(network: TrainedNetwork, example: torch.Tensor, file: IO[bytes]) -> None:
    program = torch.onnx.export(
        network,
        (example,),
        dynamo=True,
        input_names=["pixels"],
        output_names=["scores"],
        dynamic_shapes=({0: torch.export.Dim.DYNAMIC},),
        verbose=False,
    )
    assert program is not None
    model = program.model_proto
    model.metadata_props.add(key="classes", value=json.dumps(network.names, ensure_ascii=False))
    file.write(model.SerializeToString())


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporters' messages; errors are still raised."""
    exporters = logging.getLogger("torch.onnx")
    level = exporters.level
    exporters.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        exporters.setLevel(level)
