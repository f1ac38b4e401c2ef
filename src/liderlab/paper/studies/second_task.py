"""A run at the beginning of its second task, when there is rehearsal: a place to measure steps."""

from __future__ import annotations

from collections.abc import Iterator

from ...config.schema import RunConfig
from ...training.events import StepDone

ENDLESS = 10**6


def steps_of_second_task(config: RunConfig) -> Iterator[StepDone]:
    """The steps of the second task, without end. The first task is trained here, for one epoch."""
    from ...runs.build import build, completed

    loop = build(completed(config)).loop
    loop._epochs = 1
    for event in loop:
        if not isinstance(event, StepDone):
            break  # the first task has ended
    loop._epochs = ENDLESS
    return (event for event in loop if isinstance(event, StepDone))
