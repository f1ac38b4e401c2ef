"""Every entry of the registries exists, and a wrong name is answered with the right ones."""

import inspect

import pytest
from torch import nn

from liderlab.backbones import BACKBONES
from liderlab.errors import UserError
from liderlab.memory import POLICIES
from liderlab.methods import METHODS
from liderlab.methods.base import Method
from liderlab.methods.der import DER, logits_only
from liderlab.registry import ClassRegistry, Entry, Registry
from liderlab.regularizers import REGULARIZERS
from liderlab.regularizers.base import Regularizer
from liderlab.streams import BENCHMARKS

REGISTRIES = [BACKBONES, BENCHMARKS, METHODS, POLICIES, REGULARIZERS]
ENTRIES = [(registry, name) for registry in REGISTRIES for name in registry]


@pytest.mark.parametrize(
    ("registry", "name"), ENTRIES, ids=[f"{registry.kind}-{name}" for registry, name in ENTRIES]
)
def test_every_entry_has_a_target_and_a_summary(registry: Registry, name: str) -> None:
    entry = registry.entry(name)
    assert callable(entry.load())
    assert entry.summary
    assert entry.summary == entry.summary.strip().rstrip(".")
    assert len(entry.summary) <= 80  # fits a line of a listing


@pytest.mark.parametrize("name", METHODS)
def test_a_method_needs_no_argument_and_names_a_policy_that_exists(name: str) -> None:
    method = METHODS.load(name)()
    assert isinstance(method, Method)
    assert type(method) is METHODS.class_of(name)
    assert method.policy in POLICIES
    assert (method.facts()["policy"] is not None) == method.rehearsal


@pytest.mark.parametrize("name", REGULARIZERS)
def test_a_regularizer_needs_no_argument_and_can_be_switched_off(name: str) -> None:
    regularizer = REGULARIZERS.load(name)()
    assert isinstance(regularizer, Regularizer)
    assert type(regularizer) is REGULARIZERS.class_of(name)
    assert REGULARIZERS.load(name)(**regularizer.off)


def test_the_class_of_a_function_is_in_its_return_annotation() -> None:
    methods: ClassRegistry[Method] = ClassRegistry("method", "liderlab.methods", ())
    methods["annotated"] = Entry(logits_only, "")
    methods["bare"] = Entry(lambda: logits_only(), "")
    assert methods.class_of("annotated") is DER
    with pytest.raises(UserError, match="method 'bare' needs a return annotation"):
        methods.facts("bare")


@pytest.mark.parametrize("name", BACKBONES)
def test_a_backbone_is_made_from_classes_and_image_shape(name: str) -> None:
    assert isinstance(BACKBONES.load(name)(3, (3, 8, 8), width=2), nn.Module)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_takes_tasks_and_a_class_order(name: str) -> None:
    parameters = inspect.signature(BENCHMARKS.load(name)).parameters
    assert {"tasks", "class_order"} <= parameters.keys()
    assert {"classes", "tasks", "image", "defaults"} <= BENCHMARKS[name].facts.keys()


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.kind)
def test_an_unknown_name_gets_a_suggestion_and_the_allowed_names(registry: Registry) -> None:
    nearly = next(iter(registry)) + "x"
    with pytest.raises(UserError) as error:
        registry.load(nearly)
    message = str(error.value)
    assert f"unknown {registry.kind} {nearly!r}" in message
    assert f"did you mean '{next(iter(registry))}'?" in message
    assert all(name in message for name in registry)


def test_a_name_unlike_any_entry_gets_no_suggestion() -> None:
    with pytest.raises(UserError) as error:
        METHODS.load("qqqqqqqqqqqq")
    assert "did you mean" not in str(error.value)


def test_an_entry_may_hold_its_target_itself() -> None:
    registry = Registry("tool", {"max": Entry(max, "the largest"), "e": Entry("math:exp", "eˣ")})
    assert registry.load("max") is max
    assert registry.load("e")(0) == 1
