"""What the shares of limits of the whole cluster give rise to, once brokers are known."""

from msgspec.structs import replace

from quota_ops.findings.codes import ABOVE_CEILING, OVERCOMMITTED, STARVING
from quota_ops.findings.shares import check_shares
from quota_ops.model.finding import Finding, Location
from quota_ops.model.plans.capacity import Capacity
from quota_ops.model.plans.ceilings import Ceiling
from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.rows import DesiredRow

RATE, OTHER = "producer_byte_rate", "consumer_byte_rate"
POLICY = Policy(
    "demo",
    "MkU3OEVBNTcwNTJENDM2Qg",
    "demo",
    ceilings=(Ceiling("etl", ((RATE, 90e6),)), Ceiling("search", ((RATE, 1.0),))),
    capacity=Capacity(((RATE, 150e6), (OTHER, 1.0))),
)


def row(user: str, key: str, value: float, *, whole: float | None = None) -> DesiredRow:
    """Return a limit that the file etl.yaml declares, divided by three brokers if it is whole."""
    shared = (whole, None, None, None if whole is None else 3)
    place = ("etl", None, "etl.yaml", 3)
    return DesiredRow("A", f"user={user}", key, value, *place, None, None, None, *shared)


ROWS = (
    row("plain", RATE, 100e6),
    row("plain", OTHER, 100e6),
    row("large", RATE, 100e6, whole=300e6),
    row("small", RATE, 3e3, whole=9e3),
)
PARTIAL = Finding(OVERCOMMITTED, None, RATE, "without shares", "")
PLAIN = Finding(OVERCOMMITTED, None, OTHER, "whole", "")
KNOWN = Finding(STARVING, "user=small", RATE, "small", "")


def test_shares_are_judged_when_they_are_known() -> None:
    """A finding that could not count them is replaced, and what is known is not found again."""
    stay, new = check_shares(ROWS, [PARTIAL, PLAIN], POLICY)

    assert stay == [PLAIN]
    assert [(found.code, found.entity, found.place) for found in new] == [
        (ABOVE_CEILING, "user=large", Location("etl.yaml", 3)),
        (STARVING, "user=small", Location("etl.yaml", 3)),
        (OVERCOMMITTED, None, None),
    ]
    _, again = check_shares(ROWS, [KNOWN], replace(POLICY, capacity=None, ceilings=()))
    assert again == []


def test_nothing_is_promised_without_shares_or_beside_an_invalid_file() -> None:
    """Promises are compared only where shares belong to them, and when all files are valid."""
    assert check_shares(ROWS[:2], [PARTIAL], POLICY) == ([PARTIAL], [])
    _, partly = check_shares(ROWS, [], POLICY, is_complete=False)
    assert OVERCOMMITTED not in {found.code for found in partly}
