"""Third-party networks: timm's, torchvision's, or any nn.Module."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, cast

from torch import Tensor, nn

from ..errors import UserError


class ThirdParty(nn.Module):
    """Wraps a network whose last linear layer gives one logit per class.

    features(x): the input of that layer. It has no `taps`: LiDER finds the stages itself, and uses
    their output, after any activation.
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
    """Return the network itself if it has `taps`, as our backbones do; else wrap it.

    >>> network = nn.Sequential(nn.Flatten(), nn.Linear(12, 3))
    >>> as_backbone(network).features(Tensor(2, 3, 2, 2)).shape
    torch.Size([2, 12])
    """
    return network if hasattr(network, "taps") else ThirdParty(network)


def last_linear(network: nn.Module) -> str:
    """The path of the last linear layer: the classifier."""
    names = [name for name, module in network.named_modules() if isinstance(module, nn.Linear)]
    if not names:
        raise ValueError("Expected a network that ends in a linear layer, but it has none.")
    return names[-1]


def maker(family: str, model: str) -> Callable[..., nn.Module]:
    """A function that makes the model of that name from timm or torchvision, if installed."""

    def make(classes: int, image_shape: tuple[int, int, int]) -> nn.Module:
        package, channels = _package(family, model), image_shape[0]
        if family == "torchvision" and channels != 3:
            raise UserError(f"{family}:{model} takes colour images, not {channels} channel(s)")
        try:
            if family == "timm":
                network = _from_timm(package.create_model, model, classes, image_shape)
            else:
                network = package.models.get_model(model, weights=None, num_classes=classes)
        except UserError:
            raise
        except (RuntimeError, ValueError, TypeError, AssertionError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise UserError(f"{family} cannot make {model!r}: {reason}") from None
        return ThirdParty(network)

    return make


def _from_timm(
    create: Callable[..., nn.Module], model: str, classes: int, image_shape: tuple[int, int, int]
) -> nn.Module:
    """A transformer is made anew if it was made for images of another size."""
    channels, *size = image_shape
    network = create(model, num_classes=classes, in_chans=channels)
    patches: Any = getattr(network, "patch_embed", None)
    made_for, patch = getattr(patches, "img_size", None), getattr(patches, "patch_size", None)
    if made_for is None or patch is None:
        return network
    if any(side % step for side, step in zip(size, patch, strict=True)):
        raise UserError(
            f"timm:{model} has patches of {patch[0]}x{patch[1]}, which do not divide images of "
            f"{size[0]}x{size[1]}: choose images of another size, or another network"
        )
    if list(made_for) == size:
        return network
    return create(model, num_classes=classes, in_chans=channels, img_size=tuple(size))


def _package(family: str, model: str) -> Any:
    try:
        import_module(f"{family}.models")
        return import_module(family)
    except (ImportError, RuntimeError) as error:  # RuntimeError: made for another torch
        missing = isinstance(error, ModuleNotFoundError)
        reason = "" if missing else f" ({str(error).splitlines()[0]})"
        raise UserError(
            f"{family}:{model} needs the package {family}{reason}: pip install {family}"
        ) from None
