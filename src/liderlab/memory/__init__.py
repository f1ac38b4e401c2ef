"""The rehearsal memory, and the policies that decide which samples it keeps."""

from ..registry import Entry, Registry
from .buffer import Column, Memory
from .poison import Poison

POLICIES = Registry(
    "memory policy",
    {
        "reservoir": Entry(
            "liderlab.memory.policies:Reservoir",
            "every sample of the stream is kept with equal probability",
        ),
        "class-balanced": Entry(
            "liderlab.memory.policies:ClassBalanced",
            "equal quotas for all classes, a uniform sample within each",
        ),
        "greedy-balanced": Entry(
            "liderlab.memory.policies:GreedyBalanced",
            "equal quotas for all classes, first come, first kept within each",
        ),
        "herding": Entry(
            "liderlab.memory.policies:Herding",
            "exemplars nearest to their class's mean, chosen at the end of a task",
            {"from_stream": False},
        ),
    },
)

__all__ = ["POLICIES", "Column", "Memory", "Poison"]
