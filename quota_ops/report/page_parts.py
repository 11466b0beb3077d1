"""The parts of a page as plain values, in the words of `cells`; the templates lay them out."""

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from quota_ops.report.standing import Standing


class BarPart(NamedTuple):
    """A part of the bar and its line in the legend."""

    style: str
    label: str
    meaning: str
    quotas: int


MEANING = {
    Standing.IN_SYNC: "the cluster holds what Git says",
    Standing.CHANGED: "the broker took it; verify, where it ran, saw no broker hold anything else",
    Standing.PENDING: "waits to be set or cleared",
    Standing.DRIFTED: "changed on the cluster behind Git's back",
    Standing.RETURNED: "has the value of an earlier run again",
    Standing.HELD: "left as it is while a person's hold lasts",
    Standing.UNSETTLED: "refused, stale, unknown, or not read back from every broker",
    Standing.UNMANAGED: "on the cluster, and not described in Git",
    Standing.FORGOTTEN: "neither in Git nor on the cluster; only the ledger knew it",
}


@cache
def style(standing: Standing) -> str:
    """The CSS class of a standing."""
    return standing.name.lower().replace("_", "-")


def bar(count: Mapping[Standing, int]) -> tuple[BarPart, ...]:
    """The parts of the bar that are not empty; what is on neither side has no part.

    Beside what this run changed, which is in sync now too, the others were in sync before.
    """
    labels = {Standing.IN_SYNC: "in sync before"} if count.get(Standing.CHANGED) else {}
    return tuple(
        BarPart(style(standing), labels.get(standing, standing.value), MEANING[standing], number)
        for standing, number in count.items()
        if number and standing is not Standing.FORGOTTEN
    )
