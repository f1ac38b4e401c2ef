"""Half precision and compiled passes: near the plain ones, and resumed to the bit."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from liderlab.errors import UserError
from liderlab.training.events import StepDone
from liderlab.training.loop import Loop
from liderlab.training.precision import Passes, _products_crash, check_precision
from liderlab.types import Terms

Build = Callable[..., Loop]
LIDER = {"lider": {"alpha": 0.5, "beta": 0.5}}


@pytest.fixture
def fresh_compiler() -> Iterator[None]:
    """Compiled code is cached by function: no test may find another one's."""
    import torch._dynamo as dynamo

    limits = dynamo.config.recompile_limit, dynamo.config.accumulated_recompile_limit
    yield
    dynamo.reset()
    dynamo.config.recompile_limit, dynamo.config.accumulated_recompile_limit = limits


def terms_of(loop: Loop, steps: int) -> list[Terms]:
    events = (event for event in loop if isinstance(event, StepDone))
    return [{n: v.clone() for n, v in next(events).terms.items()} for _ in range(steps)]


def through_file(state: Any) -> Any:
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def assert_resumes(make: Callable[[], Loop], differences: Callable[..., list[str]]) -> None:
    """Left after any of some steps and taken up by another loop, it ends the same to the bit."""
    whole = make()
    for _ in whole:
        pass
    for steps in (1, 4):
        first, second = make(), make()
        terms_of(first, steps)
        second.load_state_dict(through_file(first.state_dict()))
        for _ in second:
            pass
        assert not differences(second.state_dict(), whole.state_dict())


@pytest.mark.parametrize(("precision", "close"), [("bfloat16", 0.05), ("float16", 0.01)])
def test_half_precision_is_near_to_whole(build: Build, precision: Any, close: float) -> None:
    """Losses and λ of the same few steps; weights and logits stay float32."""
    plain, half = (build("der++", LIDER, precision=p) for p in ("float32", precision))
    for expected, found in zip(terms_of(plain, 6), terms_of(half, 6), strict=True):
        assert found.keys() == expected.keys()
        for name, value in found.items():
            assert value.dtype == torch.float32
            torch.testing.assert_close(value, expected[name], atol=close, rtol=close)
    for loop in (plain, half):
        lider = loop.regularizers[0]
        assert lider.constants.isfinite().all()
        assert lider.constants.dtype == torch.float32
    distance = (half.regularizers[0].constants - plain.regularizers[0].constants).abs()
    assert 0 < distance.max() < close  # it is something else, and near
    assert {p.dtype for p in half.network.parameters()} == {torch.float32}
    assert half.memory.data["logits"].dtype == torch.float32


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_half_precision_resumes_to_the_bit(
    build: Build, precision: Any, differences: Callable[..., list[str]]
) -> None:
    assert_resumes(lambda: build("der++", LIDER, epochs=1, precision=precision), differences)


def test_an_overscaled_gradient_costs_a_step_and_not_the_run(build: Build) -> None:
    loop = build("er", precision="float16")
    terms_of(loop, 2)
    loop._learner._scaler.update(2.0**120)
    before = [p.detach().clone() for p in loop.network.parameters()]
    terms_of(loop, 1)
    after = list(loop.network.parameters())
    assert all(torch.equal(old, new) for old, new in zip(before, after, strict=True))
    assert loop._learner._scaler.get_scale() == 2.0**119


def test_the_scale_is_part_of_the_state(build: Build) -> None:
    first, second = (build("er", precision="float16") for _ in range(2))
    terms_of(first, 2)
    first._learner._scaler.update(1024.0)
    second.load_state_dict(through_file(first.state_dict()))
    terms_of(second, 1)
    assert second._learner._scaler.get_scale() == 1024.0


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("backend", ["eager", pytest.param("aot_eager", marks=pytest.mark.slow)])
def test_a_compiled_step_is_the_plain_step(build: Build, backend: str) -> None:
    plain, compiled = (build("er-ace", LIDER, epochs=1, compile=b) for b in (None, backend))
    for expected, found in zip(terms_of(plain, 5), terms_of(compiled, 5), strict=True):
        torch.testing.assert_close(found, expected)
    assert "lider/c_lip" in found
    for name, value in plain.network.state_dict().items():
        torch.testing.assert_close(compiled.network.state_dict()[name], value)


@pytest.mark.usefixtures("fresh_compiler")
def test_a_compiled_method_may_go_back_twice(build: Build) -> None:
    plain, compiled = (build("gmed", epochs=1, compile=b) for b in (None, "aot_eager"))
    for expected, found in zip(terms_of(plain, 3), terms_of(compiled, 3), strict=True):
        torch.testing.assert_close(found, expected)


@pytest.mark.usefixtures("fresh_compiler")
def test_a_compiled_step_may_be_perturbed_and_projected(build: Build) -> None:
    sam = {"sam": {"rho": 0.1}}
    plain, compiled = (build("a-gem", sam, epochs=1, compile=b) for b in (None, "aot_eager"))
    for expected, found in zip(terms_of(plain, 5), terms_of(compiled, 5), strict=True):
        torch.testing.assert_close(found, expected)
    for name, value in plain.network.state_dict().items():
        torch.testing.assert_close(compiled.network.state_dict()[name], value)


@pytest.mark.usefixtures("fresh_compiler")
def test_passes_run_compiled(build: Build) -> None:
    graphs: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    torch._dynamo.register_backend(backend, name="counting")
    try:
        loop = build("er", compile="counting")
        terms_of(loop, 4)
    finally:
        del torch._dynamo.backends.registry._BACKENDS["counting"]
    assert len(graphs) == 1  # one shape so far, compiled once


@pytest.mark.slow
@pytest.mark.usefixtures("fresh_compiler")
def test_compiled_runs_resume_to_the_bit(
    build: Build, differences: Callable[..., list[str]]
) -> None:
    assert_resumes(lambda: build("er-ace", LIDER, epochs=1, compile="aot_eager"), differences)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")  # inductor's own
@pytest.mark.usefixtures("fresh_compiler")
def test_inductor_is_near_and_resumes_to_the_bit(
    build: Build, differences: Callable[..., list[str]]
) -> None:
    plain, compiled = (build("er-ace", LIDER, compile=b) for b in (None, "inductor"))
    for expected, found in zip(terms_of(plain, 11), terms_of(compiled, 11), strict=True):
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-3)
    assert_resumes(lambda: build("er-ace", LIDER, epochs=1, compile="inductor"), differences)


def test_replaced_parameters_are_used_in_the_same_precision() -> None:
    network = nn.Linear(3, 2)
    other = {"weight": torch.ones(2, 3)}
    x = torch.full((1, 3), 1.001)
    assert Passes(network).with_parameters(other, x).dtype == torch.float32
    exact, rounded = (Passes(network, p).with_parameters(other, x) for p in ("float32", "bfloat16"))
    assert rounded.dtype == torch.float32
    assert 0 < (exact - rounded).abs().max() < 0.02


def test_an_unknown_backend_is_one_sentence() -> None:
    with pytest.raises(UserError, match=r"compile backend 'inductr'.*did you mean 'inductor'"):
        Passes(nn.Linear(2, 2), compile="inductr")


def test_a_precision_that_the_device_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = torch.device("cpu")
    for precision in ("float32", "bfloat16", "float16"):
        check_precision(precision, cpu)

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("unsupported dtype")

    monkeypatch.setattr(torch, "autocast", refuse)
    with pytest.raises(UserError, match="cpu cannot train in float16: choose --precision float32"):
        check_precision("float16", cpu)


def test_a_processor_that_stops_at_half_precision_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    crashing = tmp_path / "python"
    crashing.write_text("#!/bin/sh\nkill -ILL $$\n")
    crashing.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(crashing))
    _products_crash.cache_clear()
    with pytest.raises(UserError, match="ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16"):
        check_precision("bfloat16", torch.device("cpu"))
    _products_crash.cache_clear()
