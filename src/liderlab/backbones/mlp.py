"""A multi-layer perceptron."""

from torch import Tensor, nn

from ..errors import check_numbers


class MLP(nn.Module):
    """Two hidden layers of `width` units with ReLU.

    Its maps have no positions: use LiDER's `batch` or `jacobian` estimator.
    """

    def __init__(
        self, classes: int, image_shape: tuple[int, int, int], *, width: int = 100
    ) -> None:
        super().__init__()
        check_numbers(width=width, at_least=1, at_most=2**20, whole=True)
        channels, height, image_width = image_shape
        self.hidden1 = nn.Linear(channels * height * image_width, width)
        self.hidden2 = nn.Linear(width, width)
        self.fc = nn.Linear(width, classes)
        self.taps = {"hidden1": "hidden1", "hidden2": "hidden2"}

    def features(self, x: Tensor) -> Tensor:
        return self.hidden2(self.hidden1(x.flatten(1)).relu()).relu()

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.features(x))
