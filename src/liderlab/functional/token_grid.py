"""Tokens of a transformer as positions on a grid."""

import math


def token_grid(tokens: int, like: tuple[int, int]) -> tuple[int, int]:
    """The largest grid of the proportions of `like` with at most so many tokens; (0, 0) if none.

    >>> token_grid(65, (32, 32)), token_grid(50, (4, 8)), token_grid(1, (1, 2))
    ((8, 8), (5, 10), (0, 0))
    """
    common = math.gcd(*like)
    across, along = like[0] // common, like[1] // common
    times = math.isqrt(tokens // (across * along))
    return times * across, times * along
