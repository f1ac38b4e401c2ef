"""A small convolutional network."""

from torch import Tensor, nn

from ..errors import check_numbers


class ConvNet(nn.Module):
    """Four 3x3 convolutions with BatchNorm and ReLU, halving the map at the second and fourth.

    An 8x8 image still has 2x2 positions at the end, so that every stage has positions to compare.
    """

    def __init__(self, classes: int, image_shape: tuple[int, int, int], *, width: int = 32) -> None:
        super().__init__()
        check_numbers(width=width, at_least=1, at_most=2**20, whole=True)
        channels = [image_shape[0], width, width, 2 * width, 2 * width]
        for i, stride in enumerate((1, 2, 1, 2)):
            convolution = nn.Conv2d(
                channels[i], channels[i + 1], 3, stride=stride, padding=1, bias=False
            )
            self.add_module(
                f"block{i + 1}", nn.Sequential(convolution, nn.BatchNorm2d(channels[i + 1]))
            )
        self.fc = nn.Linear(channels[-1], classes)
        self.taps = {f"block{i}": f"block{i}" for i in range(1, 5)}  # blocks end before the ReLU

    def features(self, x: Tensor) -> Tensor:
        for name in self.taps:
            x = self.get_submodule(name)(x).relu()
        return x.mean((2, 3))

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.features(x))
