"""Names and shapes of parameters are torchvision's, so that its published files load.

They are written here by torchvision's rules, independently of our classes, and checked once more by
the numbers of parameters that torchvision publishes for 1000 classes.
"""

from collections.abc import Iterator

import pytest
import torch

from liderlab.backbones import BACKBONES

Shapes = Iterator[tuple[str, tuple[int, ...]]]

# name: (parameters with 1000 classes, entries of the state dict)
PUBLISHED = {
    "resnet18": (11_689_512, 122),
    "resnet50": (25_557_032, 320),
    "efficientnet-b0": (5_288_548, 360),
    "efficientnet-b1": (7_794_184, 508),
    "efficientnet-b2": (9_109_994, 508),
    "efficientnet-b3": (12_233_232, 574),
    "efficientnet-b4": (19_341_616, 706),
    "efficientnet-b5": (30_389_784, 854),
    "efficientnet-b6": (43_040_704, 986),
    "efficientnet-b7": (66_347_960, 1200),
}
# Channels of stem, stages 1 … 7 and head, then blocks of the stages.
EFFICIENTNETS = {
    "b0": ([32, 16, 24, 40, 80, 112, 192, 320, 1280], [1, 2, 2, 3, 3, 4, 1]),
    "b1": ([32, 16, 24, 40, 80, 112, 192, 320, 1280], [2, 3, 3, 4, 4, 5, 2]),
    "b2": ([32, 16, 24, 48, 88, 120, 208, 352, 1408], [2, 3, 3, 4, 4, 5, 2]),
    "b3": ([40, 24, 32, 48, 96, 136, 232, 384, 1536], [2, 3, 3, 5, 5, 6, 2]),
    "b4": ([48, 24, 32, 56, 112, 160, 272, 448, 1792], [2, 4, 4, 6, 6, 8, 2]),
    "b5": ([48, 24, 40, 64, 128, 176, 304, 512, 2048], [3, 5, 5, 7, 7, 9, 3]),
    "b6": ([56, 32, 40, 72, 144, 200, 344, 576, 2304], [3, 6, 6, 8, 8, 11, 3]),
    "b7": ([64, 32, 48, 80, 160, 224, 384, 640, 2560], [4, 7, 7, 10, 10, 13, 4]),
}
EXPANSIONS = (1, 6, 6, 6, 6, 6, 6)
KERNELS = (3, 3, 5, 3, 5, 5, 3)


def options(name: str) -> dict[str, str]:
    return {"stem": "imagenet"} if name.startswith("resnet") else {}


def shapes_of(name: str) -> dict[str, tuple[int, ...]]:
    with torch.device("meta"):
        network = BACKBONES.load(name)(1000, (3, 224, 224), **options(name))
    return {key: tuple(value.shape) for key, value in network.state_dict().items()}


def batch_norm(name: str, n: int) -> Shapes:
    for part in ("weight", "bias", "running_mean", "running_var"):
        yield f"{name}.{part}", (n,)
    yield f"{name}.num_batches_tracked", ()


def resnet50() -> Shapes:
    yield "conv1.weight", (64, 3, 7, 7)
    yield from batch_norm("bn1", 64)
    before = 64
    for layer, blocks in enumerate((3, 4, 6, 3), start=1):
        n = 64 * 2 ** (layer - 1)
        for block in range(blocks):
            prefix = f"layer{layer}.{block}"
            convolutions = [(n, before, 1, 1), (n, n, 3, 3), (4 * n, n, 1, 1)]
            for i, shape in enumerate(convolutions, start=1):
                yield f"{prefix}.conv{i}.weight", shape
                yield from batch_norm(f"{prefix}.bn{i}", shape[0])
            if block == 0:
                yield f"{prefix}.downsample.0.weight", (4 * n, before, 1, 1)
                yield from batch_norm(f"{prefix}.downsample.1", 4 * n)
            before = 4 * n
    yield "fc.weight", (1000, 2048)
    yield "fc.bias", (1000,)


def efficientnet(channels: list[int], blocks: list[int]) -> Shapes:
    def layer(name: str, shape: tuple[int, ...]) -> Shapes:
        yield f"{name}.0.weight", shape
        yield from batch_norm(f"{name}.1", shape[0])

    stem, *outputs, head = channels
    yield from layer("features.0", (stem, 3, 3, 3))
    before = stem
    table = zip(outputs, blocks, EXPANSIONS, KERNELS, strict=True)
    for stage, (after, count, expansion, kernel) in enumerate(table, start=1):
        for block in range(count):
            prefix, inner, place = f"features.{stage}.{block}.block", expansion * before, 0
            if expansion > 1:
                yield from layer(f"{prefix}.0", (inner, before, 1, 1))
                place = 1
            yield from layer(f"{prefix}.{place}", (inner, 1, kernel, kernel))
            squeezed = before // 4
            yield f"{prefix}.{place + 1}.fc1.weight", (squeezed, inner, 1, 1)
            yield f"{prefix}.{place + 1}.fc1.bias", (squeezed,)
            yield f"{prefix}.{place + 1}.fc2.weight", (inner, squeezed, 1, 1)
            yield f"{prefix}.{place + 1}.fc2.bias", (inner,)
            yield from layer(f"{prefix}.{place + 2}", (after, inner, 1, 1))
            before = after
    yield from layer("features.8", (head, before, 1, 1))
    yield "classifier.1.weight", (1000, head)
    yield "classifier.1.bias", (1000,)


def test_resnet50() -> None:
    assert shapes_of("resnet50") == dict(resnet50())


@pytest.mark.parametrize("variant", EFFICIENTNETS)
def test_efficientnet(variant: str) -> None:
    expected = list(efficientnet(*EFFICIENTNETS[variant]))
    assert list(shapes_of(f"efficientnet-{variant}").items()) == expected  # in order, too


@pytest.mark.parametrize("name", PUBLISHED)
def test_as_many_parameters_as_published(name: str) -> None:
    parameters, entries = PUBLISHED[name]
    with torch.device("meta"):
        network = BACKBONES.load(name)(1000, (3, 224, 224), **options(name))
    assert sum(p.numel() for p in network.parameters()) == parameters
    assert len(network.state_dict()) == entries


def test_the_imagenet_stem_quarters_the_map() -> None:
    network = BACKBONES.load("resnet18")(10, (3, 64, 64), width=2, stem="imagenet")
    shapes = []
    for path in network.taps.values():
        network.get_submodule(path).register_forward_hook(
            lambda module, args, output: shapes.append(tuple(output.shape[1:]))
        )
    network(torch.zeros(2, 3, 64, 64))
    assert shapes == [(2, 32, 32), (2, 16, 16), (4, 8, 8), (8, 4, 4), (16, 2, 2)]


def test_the_bottleneck_strides_in_its_3x3() -> None:
    block = BACKBONES.load("resnet50")(10, (3, 64, 64), width=2).get_submodule("layer2.0")
    assert block.conv1.stride == (1, 1)  # type: ignore[union-attr]
    assert block.conv2.stride == (2, 2)  # type: ignore[union-attr]


def test_an_unknown_stem_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown stem 'imagnet': did you mean 'imagenet'"):
        BACKBONES.load("resnet18")(10, (3, 8, 8), stem="imagnet")
