"""The rehearsal memory and the policies that decide what it keeps."""

from ..registry import Entry, Registry
from .memory import Column, Memory

POLICIES = Registry(
    "memory policy",
    {
        "reservoir": Entry(
            "liderlab.memory.policies:Reservoir",
            "every sample of the stream is kept with equal probability",
        ),
        "class-balanced": Entry(
            "liderlab.memory.policies:ClassBalanced",
            "equal shares for all classes, a uniform sample within each",
        ),
    },
)

__all__ = ["POLICIES", "Column", "Memory"]
