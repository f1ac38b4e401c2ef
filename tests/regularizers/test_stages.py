"""Stages: wrappers, names, and stages found with an example."""

import pytest
import torch
from torch import Tensor, nn

from liderlab.backbones.convnet import ConvNet
from liderlab.backbones.network import Network
from liderlab.backbones.resnet import resnet18
from liderlab.regularizers.stages import evaluating, find_stages, tapped_module, unwrap


class ForeignResNet(nn.Module):
    """Children in the manner of torchvision's ResNets, defined in another order than they run."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(16, 5)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.layer3 = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.conv1 = nn.Conv2d(3, 4, 3, stride=2, padding=1)
        self.bn1 = nn.BatchNorm2d(4)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(2)
        self.layer1 = nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.ReLU())
        self.layer2 = nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(self.avgpool(x).flatten(1))


class FeaturesAndClassifier(nn.Module):
    """In the manner of VGG: two big Sequentials."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 8, 3, padding=1),
            nn.ReLU(inplace=True),
        )
        self.avgpool = nn.AdaptiveAvgPool2d(2)
        self.classifier = nn.Sequential(nn.Linear(32, 8), nn.ReLU(), nn.Linear(8, 5))

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


class SharedActivation(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 8, 3)
        self.relu, self.pool = nn.ReLU(), nn.MaxPool2d(2)

    def forward(self, x: Tensor) -> Tensor:
        return self.pool(self.relu(self.conv2(self.pool(self.relu(self.conv1(x)))))).mean((2, 3))


EXAMPLE = torch.rand(2, 3, 16, 16, generator=torch.Generator().manual_seed(0))


def test_stages_are_the_last_of_equally_shaped_children_in_running_order():
    assert find_stages(ForeignResNet(), EXAMPLE) == ["relu", "layer1", "layer2", "layer3"]


def test_a_single_child_that_makes_all_maps_is_opened():
    model = FeaturesAndClassifier()
    assert find_stages(model.features, EXAMPLE) == ["1", "2", "4"]
    assert find_stages(model, EXAMPLE) == ["features.1", "features.2", "features.4"]
    tiny = EXAMPLE[..., :2, :2]  # features ends at 1x1, which the pooling blows up to 2x2
    assert find_stages(model, tiny) == ["features.1"]


def test_one_of_two_children_with_maps_is_not_opened():
    body = nn.Sequential(nn.Conv2d(4, 8, 3, stride=2), nn.Conv2d(8, 8, 3, stride=2))
    network = nn.Sequential(nn.Conv2d(3, 4, 3, stride=2), body)
    assert find_stages(network, torch.zeros(2, 3, 32, 32)) == ["0", "1"]


def test_patches_in_one_column_are_the_first_stage_of_a_transformer():
    class Patches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.proj, self.gate = nn.Conv2d(3, 8, 4, stride=4), nn.AdaptiveAvgPool2d(1)

        def forward(self, x: Tensor) -> Tensor:
            x = self.proj(x)
            return (x * self.gate(x)).flatten(2).mT  # the gate is a map of one position

    class Block(nn.Module):
        """A map of its own inside is no stage."""

        def __init__(self) -> None:
            super().__init__()
            self.mix, self.fc = nn.Conv2d(8, 8, 1), nn.Linear(8, 8)

        def forward(self, x: Tensor) -> Tensor:
            return self.fc(self.mix(x.mT[..., None])[..., 0].mT)

    class Transformer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = Patches()
            self.blocks = nn.Sequential(*[Block() for _ in range(2)])
            self.fc = nn.Linear(8, 5)

        def forward(self, x: Tensor) -> Tensor:
            return self.fc(self.blocks(self.embed(x)).mean(1))

    found = find_stages(Transformer(), torch.zeros(2, 3, 16, 4))
    assert found == ["embed.proj", "blocks.0", "blocks.1"]


def test_blocks_are_the_longest_row_of_siblings():
    """Not blocks of two parts of the network together."""

    class TwoParts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.ModuleList(nn.Sequential(nn.Linear(8, 8)) for _ in range(2))
            self.second = nn.ModuleList(nn.Sequential(nn.Linear(8, 8)) for _ in range(3))

        def forward(self, x: Tensor) -> Tensor:
            x = x.flatten(2).mT
            for block in (*self.first, *self.second):
                x = block(x)
            return x.mean(1)

    found = find_stages(TwoParts(), torch.zeros(2, 8, 4, 4))
    assert found == ["second.0", "second.1", "second.2"]


def test_one_block_is_no_row():
    block = nn.Sequential(nn.Linear(16, 16))
    network = nn.Sequential(nn.Flatten(2), block, nn.Flatten(), nn.Linear(128, 5))
    assert find_stages(network, torch.zeros(2, 8, 4, 4)) == []


@pytest.mark.parametrize("size", [(2, 1), (1, 2)])
def test_two_positions_are_enough_for_a_map(size: tuple[int, int]):
    network = nn.Sequential(nn.Conv2d(3, 4, 1), nn.AdaptiveAvgPool2d(size), nn.AdaptiveAvgPool2d(1))
    assert find_stages(network, torch.zeros(2, 3, 4, 4)) == ["0", "1"]


def test_a_wrapped_backbone_is_opened():
    stages = find_stages(Network(ForeignResNet()), EXAMPLE)
    assert stages == [f"backbone.{name}" for name in ("relu", "layer1", "layer2", "layer3")]


def test_a_module_that_runs_twice_is_no_stage():
    assert find_stages(SharedActivation(), EXAMPLE) == ["conv1", "conv2"]


def test_nothing_is_found_where_there_are_no_maps():
    assert find_stages(nn.Sequential(nn.Flatten(), nn.Linear(768, 5)), EXAMPLE) == []


def test_stages_of_the_parent_remain_if_its_children_have_none():
    class Reshaping(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(256, 16)

        def forward(self, x: Tensor) -> Tensor:
            return self.linear(x.flatten(2)).unflatten(2, (4, 4))

    assert find_stages(nn.Sequential(Reshaping()), EXAMPLE) == ["0"]


def test_finding_stages_changes_nothing():
    model = ForeignResNet()
    model.bn1.eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    random_state = torch.get_rng_state()
    find_stages(model, EXAMPLE)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), random_state)
    assert not any(module._forward_hooks for module in model.modules())
    assert model.training
    assert not model.bn1.training


def test_hooks_are_removed_when_the_network_fails():
    model = ForeignResNet()
    with pytest.raises(RuntimeError):
        find_stages(model, torch.zeros(2, 7, 16, 16))
    assert not any(module._forward_hooks for module in model.modules())
    assert model.training


def test_evaluating_restores_every_mode_also_after_an_error():
    model = ForeignResNet()
    model.layer1.eval()
    modes = [module.training for module in model.modules()]
    with evaluating(model):
        assert not any(module.training for module in model.modules())
        assert not torch.is_grad_enabled()
    assert [module.training for module in model.modules()] == modes
    with pytest.raises(RuntimeError), evaluating(model):
        model(torch.zeros(2, 7, 16, 16))
    assert [module.training for module in model.modules()] == modes
    assert torch.is_grad_enabled()


# Names


def test_own_backbones_name_the_tensor_before_the_relu():
    model = resnet18(10, (3, 16, 16), width=8)
    assert tapped_module(model, "stem") is model.bn1
    assert tapped_module(model, "layer2") is model.layer2[-1].sum
    assert tapped_module(Network(model), "layer2") is model.layer2[-1].sum
    small = ConvNet(10, (3, 16, 16), width=4)
    assert tapped_module(small, "block3") is small.block3


def test_any_module_can_be_named():
    model = resnet18(10, (3, 16, 16), width=8)
    assert tapped_module(model, "layer1.0.conv1") is model.layer1[0].conv1
    foreign = ForeignResNet()
    assert tapped_module(foreign, "layer1") is foreign.layer1


def test_an_unknown_stage_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"'layer9'; it has fc, .*layer3, conv1"):
        tapped_module(ForeignResNet(), "layer9")
    with pytest.raises(ValueError, match="it has stem, layer1"):
        tapped_module(resnet18(10, (3, 16, 16), width=8), "layer9")


# Wrappers


def test_unwrap_finds_the_network_below_wrappers():
    model = ForeignResNet()
    assert unwrap(model) is model
    compiled = torch.compile(model, backend="eager")
    assert unwrap(compiled) is model
    assert unwrap(nn.DataParallel(compiled)) is model


def test_a_child_called_module_is_no_wrapper_if_it_has_siblings():
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module, self.head = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3)

    own = Own()
    assert unwrap(own) is own
