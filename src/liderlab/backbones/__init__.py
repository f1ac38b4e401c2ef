"""Plain networks: one file each, listed here. Each maps images to one logit per class.

A backbone also has `features(x)`, what its last layer sees, and `taps`: for every stage, the module
whose output is that stage's map before its last ReLU.
"""

from ..registry import Entry, Registry

BACKBONES = Registry(
    "backbone",
    {
        "mlp": Entry("liderlab.backbones.mlp:MLP", "two hidden layers, for tiny images"),
        "convnet-small": Entry(
            "liderlab.backbones.convnet:ConvNet", "four convolutions, for small images"
        ),
        "resnet18": Entry(
            "liderlab.backbones.resnet:resnet18",
            "ResNet18 with the CIFAR stem; width 64 is the paper's",
        ),
    },
)
