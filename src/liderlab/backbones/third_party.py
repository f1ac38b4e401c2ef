"""Networks that are not ours: timm's, torchvision's, anybody's nn.Module."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any, cast

from torch import Tensor, nn

from ..errors import UserError


class Foreign(nn.Module):
    """Any network whose last linear layer gives one logit per class, as a backbone.

    features(x): what that layer sees. It has no `taps`: LiDER looks for its stages itself, and
    takes their output as it is.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self._head = last_linear(network)

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, self.network(x))

    def features(self, x: Tensor) -> Tensor:
        seen: list[Tensor] = []
        layer = self.network.get_submodule(self._head)
        handle = layer.register_forward_pre_hook(lambda module, args: seen.append(args[0]))
        try:
            self.network(x)
        finally:
            handle.remove()
        return seen[-1].flatten(1)


def as_backbone(network: nn.Module) -> nn.Module:
    """The network itself if it is one of ours (it has taps), else wrapped.

    >>> network = nn.Sequential(nn.Flatten(), nn.Linear(12, 3))
    >>> as_backbone(network).features(Tensor(2, 3, 2, 2)).shape
    torch.Size([2, 12])
    """
    return network if hasattr(network, "taps") else Foreign(network)


def last_linear(network: nn.Module) -> str:
    """The path of the last linear layer: the classifier."""
    names = [name for name, module in network.named_modules() if isinstance(module, nn.Linear)]
    if not names:
        raise ValueError("Expected a network that ends in a linear layer, but it has none.")
    return names[-1]


def maker(family: str, model: str) -> Callable[..., nn.Module]:
    """What makes the model of that name, from a package that may not be installed."""

    def make(classes: int, image_shape: tuple[int, int, int]) -> nn.Module:
        return Foreign(_MAKERS[family](model, classes, image_shape))

    return make


def _timm(model: str, classes: int, image_shape: tuple[int, int, int]) -> nn.Module:
    timm = _package("timm", model)
    return _made(
        "timm", model, timm.create_model, model, num_classes=classes, in_chans=image_shape[0]
    )


def _torchvision(model: str, classes: int, image_shape: tuple[int, int, int]) -> nn.Module:
    models = _package("torchvision", model).models
    if image_shape[0] != 3:
        raise UserError(f"torchvision:{model} takes colour images, not {image_shape[0]} channel(s)")
    return _made("torchvision", model, models.get_model, model, weights=None, num_classes=classes)


_MAKERS = {"timm": _timm, "torchvision": _torchvision}


def _package(family: str, model: str) -> ModuleType:
    try:
        package = import_module(family)
        import_module(f"{family}.models")
    except (
        ImportError,
        RuntimeError,
    ) as error:  # torchvision's that does not fit torch: the latter
        missing = isinstance(error, ModuleNotFoundError)
        reason = "" if missing else f" ({str(error).splitlines()[0]})"
        raise UserError(
            f"{family}:{model} needs the package {family}{reason}: pip install {family}"
        ) from None
    return package


def _made(
    family: str, model: str, make: Callable[..., Any], *args: Any, **options: Any
) -> nn.Module:
    try:
        return cast(nn.Module, make(*args, **options))
    except (RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{family} cannot make {model!r}: {reason}") from None
