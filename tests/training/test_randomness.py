"""Generators by name: reproducible, independent of each other, and part of the checkpoint."""

import io

import torch

from liderlab.training.randomness import Generators, derive


def draw(generator: torch.Generator, n: int = 5) -> list[float]:
    return torch.rand(n, generator=generator).tolist()


def test_a_seed_is_a_function_of_its_key_alone() -> None:
    # Fixed for all time: a change would change every run ever made.
    assert derive(0, "initial weights") == 2629503928701552557
    keys = [(0, "a"), (1, "a"), (0, "b"), (0, "a", 0), (0, "a", 1), (0, ("a", 1)), ("0", "a")]
    seeds = [derive(*key) for key in keys]
    assert len(set(seeds)) == len(keys)
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_names_and_seeds_give_different_streams() -> None:
    drawn = [draw(Generators(seed)(name)) for seed in (0, 1) for name in ("replay", "memory")]
    assert len({tuple(values) for values in drawn}) == 4
    assert draw(Generators(1)("replay")) == drawn[2]


def test_draws_from_one_generator_do_not_shift_another() -> None:
    generators = Generators(0)
    draw(generators("augment"), 1000)
    torch.rand(10)
    assert draw(generators("replay")) == draw(Generators(0)("replay"))


def test_a_name_always_gives_the_same_generator() -> None:
    generators = Generators(0)
    assert generators("replay") is generators("replay")
    first, second = draw(generators("replay")), draw(generators("replay"))
    assert first != second
    assert first + second == draw(Generators(0)("replay"), 10)


def test_a_keyed_generator_starts_anew_every_time() -> None:
    generators = Generators(0)
    key = ("order", 1, 0, 2)
    assert draw(generators.keyed(*key)) == draw(generators.keyed(*key))
    assert draw(generators.keyed(*key)) != draw(generators.keyed("order", 1, 0, 3))
    assert generators.state_dict() == {}


def test_state_goes_through_a_file_with_every_name_where_it_was() -> None:
    generators = Generators(3)
    for name in ("replay", "memory"):
        draw(generators(name), 7)
    file = io.BytesIO()
    torch.save(generators.state_dict(), file)
    file.seek(0)
    again = Generators(3)
    draw(again("replay"), 2)
    draw(again("augment"), 2)  # a name that the saved run has not used yet
    again.load_state_dict(torch.load(file, weights_only=True))
    for name in ("replay", "memory", "augment"):
        assert draw(again(name)) == draw(generators(name))
