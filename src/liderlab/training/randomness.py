"""The random generators of a run."""

from __future__ import annotations

import hashlib

import torch

from ..types import State


def derive(*key: object) -> int:
    """A seed for every key, the same on every machine.

    >>> derive(0, "init") == derive(0, "init") != derive(1, "init")
    True
    """
    digest = hashlib.sha256(repr(key).encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1  # torch takes seeds below 2⁶³


class Generators:
    """Named generators, each with its own seed: draws from one do not shift those of another."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._named: dict[str, torch.Generator] = {}

    def __call__(self, name: str) -> torch.Generator:
        """The run's generator of that name; its state is part of the checkpoint."""
        if name not in self._named:
            self._named[name] = self.keyed(name)
        return self._named[name]

    def keyed(self, *key: object) -> torch.Generator:
        """A fresh generator, a pure function of the seed and the key."""
        return torch.Generator().manual_seed(derive(self.seed, *key))

    def seed_dropout(self, *key: object) -> None:
        """Seed torch's default generators, from which dropout draws; each step has its own seed."""
        seed = derive(self.seed, *key)
        torch.default_generator.manual_seed(seed)
        if torch.cuda.is_initialized():
            torch.cuda.manual_seed_all(seed)

    def rewind(self, state: State) -> None:
        """Set every generator back to an earlier `state_dict()`, also those made since then."""
        for name, generator in self._named.items():
            generator.set_state(state[name] if name in state else self.keyed(name).get_state())

    def state_dict(self) -> State:
        return {name: generator.get_state() for name, generator in self._named.items()}

    def load_state_dict(self, state: State) -> None:
        self._named = {}
        for name, value in state.items():
            self(name).set_state(value)
