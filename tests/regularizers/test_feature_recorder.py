"""Recording maps: the right values, whole passes, and no trace afterwards."""

import copy
import gc
import io
import pickle

import pytest
import torch
from torch import Tensor, nn

from liderlab.backbones.resnet import resnet18
from liderlab.regularizers.feature_recorder import INPUT, FeatureRecorder


def network() -> nn.Sequential:
    """An in-place ReLU behind the BatchNorm."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Conv2d(3, 4, 3),
            nn.BatchNorm2d(4),
            nn.ReLU(inplace=True),
            nn.Dropout(0.5, inplace=True),
            nn.Conv2d(4, 5, 3),
        )


def inputs(n: int = 2, seed: int = 0) -> Tensor:
    return torch.rand(n, 3, 8, 8, generator=torch.Generator().manual_seed(seed))


def test_records_input_and_stages_pass_by_pass():
    model, recorder = network().eval(), FeatureRecorder()
    recorder.attach(model, [INPUT, "1", "4"])
    model(inputs())  # not recorded
    with recorder.recording() as passes:
        outputs = [model(inputs(2)), model(inputs(3, seed=1))]
    model(inputs())
    assert [list(features) for features in passes] == [[INPUT, "1", "4"]] * 2
    for features, x, output in zip(passes, (inputs(2), inputs(3, 1)), outputs, strict=True):
        assert torch.equal(features[INPUT], x)
        assert torch.equal(features["1"], model[1](model[0](x)))
        assert torch.equal(features["4"], output)
        assert features["1"].requires_grad


def test_a_chain_without_input_does_not_record_it():
    class Keyed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)

        def forward(self, batch: dict[str, Tensor]) -> Tensor:
            return self.conv(batch["image"])

    model, recorder = Keyed(), FeatureRecorder()
    recorder.attach(model, ["conv"])
    with recorder.recording() as passes:
        model({"image": inputs()})
        model(batch={"image": inputs()})
    assert [list(features) for features in passes] == [["conv"], ["conv"]]

    recorder.attach(model, [INPUT, "conv"])
    with (
        pytest.raises(TypeError, match="as the first argument, but got dict"),
        recorder.recording(),
    ):
        model({"image": inputs()})
    with pytest.raises(TypeError, match="argument, but got NoneType"), recorder.recording():
        model(batch={"image": inputs()})


@pytest.mark.parametrize("mode", [True, False])
def test_in_place_layers_behind_a_tap_do_not_change_the_record(mode):
    model, recorder = network(), FeatureRecorder()
    recorder.attach(model, [INPUT, "1"])
    for training in (not mode, mode, mode, not mode):  # dropout works in place in one of them only
        model.train(training)
        with recorder.recording() as passes:
            model(inputs())
        expected = model[1](model[0](inputs()))
        assert (expected < 0).any()
        assert torch.equal(passes[0]["1"], expected)


def test_changing_the_input_does_not_change_the_record():
    class Normalising(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.conv(x.sub_(0.5))

    model, recorder = Normalising(), FeatureRecorder()
    recorder.attach(model, [INPUT, "conv"])
    with recorder.recording() as passes:
        model(inputs())
    assert torch.equal(passes[0][INPUT], inputs())


def test_gradients_flow_through_the_record():
    model, recorder = network(), FeatureRecorder()
    recorder.attach(model, ["1", "4"])
    with recorder.recording() as passes:
        model(inputs())
    passes[0]["1"].square().sum().backward()
    assert model[0].weight.grad.abs().sum() > 0


def test_taps_of_our_resnet_are_before_the_relu():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = resnet18(10, (3, 16, 16), width=8).eval()
    recorder = FeatureRecorder()
    recorder.attach(model, list(model.taps))
    with recorder.recording() as passes:
        model(inputs())
    maps = passes[0]

    x = model.bn1(model.conv1(inputs()))
    torch.testing.assert_close(maps["stem"], x)
    for name in ("layer1", "layer2", "layer3", "layer4"):
        x = x.relu()
        for block in model.get_submodule(name):
            inside = block.bn2(block.conv2(block.bn1(block.conv1(x.relu())).relu()))
            x = inside + (x.relu() if block.downsample is None else block.downsample(x.relu()))
        torch.testing.assert_close(maps[name], x)
        assert (x < 0).any()


def test_works_in_inference_mode():
    model, recorder = network().eval(), FeatureRecorder()
    recorder.attach(model, [INPUT, "1"])
    with torch.inference_mode(), recorder.recording() as passes:
        model(inputs())
        assert (passes[0]["1"] < 0).any()


# Refusals


def test_recording_without_a_pass_is_an_error():
    model, recorder = network(), FeatureRecorder()
    recorder.attach(model, ["1"])
    with pytest.raises(RuntimeError, match="No pass was recorded"), recorder.recording():
        copy.deepcopy(model)(inputs())
    assert not recorder.on


def test_a_stage_that_does_not_run_is_an_error():
    class Skipping(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused = nn.Conv2d(3, 4, 3), nn.Conv2d(3, 4, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.used(x)

    model, recorder = Skipping(), FeatureRecorder()
    recorder.attach(model, ["used", "unused"])
    with pytest.raises(RuntimeError, match="'unused' did not run"), recorder.recording():
        model(inputs())


def test_a_stage_that_runs_twice_or_outside_a_pass_is_an_error():
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 3, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.conv(self.conv(x))

    model, recorder = Twice(), FeatureRecorder()
    recorder.attach(model, ["conv"])
    with pytest.raises(RuntimeError, match="twice in one"), recorder.recording():
        model(inputs())
    with pytest.raises(RuntimeError, match="outside a call of the network"), recorder.recording():
        model.conv(inputs())


def test_an_output_that_is_no_tensor_is_an_error():
    class Pair(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return x, x

    model, recorder = nn.Sequential(Pair()), FeatureRecorder()
    recorder.attach(model, ["0"])
    with pytest.raises(TypeError, match="a tensor from '0', but got tuple"), recorder.recording():
        model(inputs())


def test_recording_does_not_nest():
    model, recorder = network(), FeatureRecorder()
    recorder.attach(model, ["1"])
    nested = recorder.recording()
    with pytest.raises(RuntimeError, match="does not nest"), recorder.recording():
        nested.__enter__()
    assert not recorder.on


def test_an_unknown_stage_leaves_the_network_as_it_was():
    model, recorder = network(), FeatureRecorder()
    with pytest.raises(ValueError, match="'9'"):
        recorder.attach(model, ["1", "9"])
    assert hooks(model) == 0


# No trace afterwards


def hooks(model: nn.Module) -> int:
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


def test_an_exception_leaves_a_clean_state():
    model, recorder = network(), FeatureRecorder()
    recorder.attach(model, [INPUT, "1"])
    with pytest.raises(ZeroDivisionError), recorder.recording():
        model(inputs() / (1 // 0))
    with pytest.raises(RuntimeError, match="channels"), recorder.recording():
        model(torch.zeros(2, 7, 8, 8))
    assert not recorder.on
    with recorder.recording() as passes:
        model(inputs())
    assert len(passes) == 1


def test_attaching_anew_replaces_the_hooks():
    first, second, recorder = network(), network(), FeatureRecorder()
    recorder.attach(first, [INPUT, "1", "4"])
    recorder.attach(second, ["4"])
    assert hooks(first) == 0
    assert hooks(second) == 2


@pytest.mark.parametrize("how", ["deepcopy", "pickle", "torch.save"])
def test_taps_of_a_copy_are_inert(how):
    model, recorder = network().eval(), FeatureRecorder()
    recorder.attach(model, [INPUT, "1"])
    if how == "deepcopy":
        twin = copy.deepcopy(model)
    elif how == "pickle":
        twin = pickle.loads(pickle.dumps(model))
    else:
        file = io.BytesIO()
        torch.save(model, file)
        file.seek(0)
        twin = torch.load(file, weights_only=False)
    with recorder.recording() as passes:
        model(inputs())
        twin(inputs(5))
    assert len(passes) == 1
    assert len(passes[0]["1"]) == 2
    assert torch.equal(twin(inputs()), model(inputs()))


def test_the_network_does_not_keep_its_recorder_alive():
    model, recorder = network(), FeatureRecorder()
    recorder.attach(model, [INPUT, "1"])
    recorder.on = True  # would complain about everything, were it still there
    del recorder
    gc.collect()
    model[1](model[0](inputs()))
