"""Differences between seed groups in words, and the rows that are best beyond doubt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...functional.statistics import ConfidenceInterval
from ..glossary import METRICS, SETTINGS
from ..run_records import proper_names
from ..seed_groups import RegularizerPair, SeedGroup, seed_difference

Best = dict[str, list[str]]
"""Metrics in which a group is distinguishably the best of its setting, by evaluation setting."""


def distinguishable(difference: ConfidenceInterval | None) -> bool:
    """Whether the 95 % interval of a difference excludes 0.

    >>> distinguishable(ConfidenceInterval(1.2, 0.4, 0.01, 3))
    True
    """
    half = difference.half if difference else None
    return difference is not None and half is not None and abs(difference.mean) > half


def gain_sentence(
    gain: ConfidenceInterval, added: Sequence[str], plain: str, where: str, also: Sequence[str]
) -> str:
    """The gain in final average accuracy by one regulariser or several.

    >>> gain_sentence(ConfidenceInterval(1.2, 3.5, 0.3, 3), ["LiDER"], "er-ace", "split-digits", [])
    'LiDER adds 1.2 ± 3.5 points to er-ace on split-digits: not distinguishable from none with 3 seeds.'
    >>> gain_sentence(ConfidenceInterval(-2.0, 0.5, 0.01, 4), ["SAM", "oEWC"], "er", "x", ["training.lr"])
    'SAM and oEWC take 2.0 ± 0.5 points from er on x: distinguishable from none with 4 seeds. The runs also differ in training.lr.'
    """  # noqa: E501
    verb, link = ("take", "from") if gain.mean < 0 else ("add", "to")
    names, one = " and ".join(added), "s" * (len(added) == 1)
    rest = f" The runs also differ in {', '.join(also)}." if also else ""
    if gain.mean == 0 and gain.half == 0:
        same = f"change{one} nothing for {plain} on {where}"
        return f"{names} {same}: the same final average accuracy with all {gain.n} seeds.{rest}"
    size = f"{abs(gain.mean):.1f}" + ("" if gain.half is None else f" ± {gain.half:.1f}")
    if gain.n == 0:
        verdict = "the runs have no common seed, so there is no interval"
    elif gain.n == 1:
        verdict = "one seed cannot tell this from none"
    else:
        known = "" if distinguishable(gain) else "not "
        verdict = f"{known}distinguishable from none with {gain.n} seeds"
    return f"{names} {verb}{one} {size} points {link} {plain} on {where}: {verdict}.{rest}"


def pair_sentence(group: SeedGroup, pair: RegularizerPair, setting: str, where: str) -> str | None:
    """`gain_sentence` of a group and its pair; None without finished runs."""
    gain = seed_difference(group.values(setting, "faa"), pair.without.values(setting, "faa"))
    if gain is None:
        return None
    added = proper_names(pair.added)
    return gain_sentence(gain, added, full_label(pair.without), where, pair.also)


def leader_sentence(leader: SeedGroup, rivals: Sequence[SeedGroup], setting: str) -> str:
    """The group with the best final average accuracy, and the rivals it cannot be told from."""
    values = leader.values(setting, "faa")
    close = [full_label(r) for r in rivals if not _better(leader, r, setting, "faa")]
    start = f"{full_label(leader)} has the highest final average accuracy of its setting, "
    start += f"{sum(values.values()) / len(values):.1f} %: "
    if not close:
        return f"{start}distinguishable from all others."
    share = "any" if len(close) == len(rivals) else f"{len(close)}"
    names = " and ".join(close) if len(close) < 3 else f"{share} of the {len(rivals)} others"
    return f"{start}not distinguishable from {names}."


def best_of_settings(groups: Sequence[SeedGroup]) -> tuple[list[Best], list[dict[str, str]]]:
    """For each group the metrics that it wins, and a sentence where it leads in FAA.

    A group wins if it differs from every other group of its setting, seed by seed. The upper bound
    joint does not compete.
    """
    best: list[Best] = [{setting: [] for setting in SETTINGS} for _ in groups]
    leads: list[dict[str, str]] = [{} for _ in groups]
    for members in _rivals(groups):
        for setting in SETTINGS:
            for metric, fact in METRICS.items():
                known = [i for i in members if groups[i].values(setting, metric)]
                if len(known) < 2:
                    continue
                means = {i: _mean(groups[i], setting, metric) * fact.better for i in known}
                first = max(known, key=means.__getitem__)
                others = [groups[i] for i in known if i != first]
                if all(_better(groups[first], other, setting, metric) for other in others):
                    best[first][setting].append(metric)
                if metric == "faa":
                    leads[first][setting] = leader_sentence(groups[first], others, setting)
    return best, leads


def full_label(group: SeedGroup) -> str:
    return f"{group.label} ({group.note})" if group.note else group.label


def _better(first: SeedGroup, other: SeedGroup, setting: str, metric: str) -> bool:
    found = seed_difference(first.values(setting, metric), other.values(setting, metric))
    return found is not None and distinguishable(found) and found.mean * METRICS[metric].better > 0


def _mean(group: SeedGroup, setting: str, metric: str) -> float:
    values = group.values(setting, metric).values()
    return sum(values) / len(values)


def _rivals(groups: Sequence[SeedGroup]) -> Iterable[list[int]]:
    found: dict[tuple[object, ...], list[int]] = {}
    for index, group in enumerate(groups):
        if group.first.method != "joint":
            found.setdefault(group.setting, []).append(index)
    return found.values()
