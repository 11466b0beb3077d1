"""`release` promises only what will happen, given other holds, `protect` and Git."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from quota_ops.desired.export.one_off import OneOff
from quota_ops.desired.read import Desired
from quota_ops.model.plans.hold import Hold
from quota_ops.model.plans.policy import DriftPolicy, Policy
from quota_ops.model.quotas.filter import EntityFilter, FilterPart, Match
from quota_ops.model.quotas.rows import DesiredRow, LedgerRow
from quota_ops.model.runs.adoption import Adoption
from quota_ops.report.outline.layout import plain
from quota_ops.report.screens.adoption import format_adopted, format_released, released_screen
from quota_ops.report.screens.holds import describe_released, hold_screen

NOW = datetime(2026, 11, 21, 10, tzinfo=UTC)
ALICE = EntityFilter((FilterPart("user", Match.EXACT, "alice"),))
ANY_USER = EntityFilter((FilterPart("user", Match.ANY),))
ANY_CLIENT = EntityFilter((FilterPart("client-id", Match.ANY),))
FOLLOW = "Runs follow Git again. quota-ops plan demo shows what the next one changes."


def hold(who: EntityFilter, hours: int = 1) -> Hold:
    """Return a hold by anna of that length."""
    return Hold(who, NOW + timedelta(hours=hours), "anna", "INC-31", NOW)


def words(
    who: EntityFilter, *lasting: Hold, known: bool = True, managed: bool = False, **policy: Any
) -> list[str]:
    """Return the text after a release."""
    of = Policy("demo", "id", "demo", **policy)
    return list(describe_released(of, who, lasting, is_declared=known, is_managed=managed))


def test_a_hold_that_covers_it_still_holds_it() -> None:
    """No run writes what a wider hold covers, and nothing else is promised."""
    assert words(ALICE, hold(ANY_CLIENT), hold(ANY_USER, 1), hold(ANY_USER, 2)) == [
        "No run writes it before 2026-11-21 12:00 UTC, unless user=<any> is released too."
    ]


def test_a_hold_on_some_of_them_is_named() -> None:
    """After a release of all users, those that are still held or protected are named."""
    assert words(ANY_USER, hold(ALICE), protect=(ALICE,)) == [
        "cluster.yaml protects user=alice: no run ever writes it.",
        "user=alice is still held until 2026-11-21 11:00 UTC by anna: INC-31.",
        FOLLOW,
    ]


PROTECTED = "cluster.yaml protects user=<any>: no run ever writes it."


def test_who_is_protected_is_never_written() -> None:
    """A release of a protected user promises no write, under a wider hold too."""
    assert words(ALICE, protect=(ANY_USER,)) == [PROTECTED]
    assert words(ALICE, hold(ANY_USER), protect=(ANY_USER,)) == [PROTECTED]


def test_a_hold_promises_only_what_follows() -> None:
    """After a hold a protected row is still not written, and a longer hold still applies."""
    made, longer = hold(ALICE), hold(ANY_USER, 3)

    def after(*lasting: Hold, **fields: Any) -> list[str]:
        screen = hold_screen(
            Policy("demo", "id", "demo", **fields), made, lasting, None, is_known=True
        )
        return [
            "".join(span.text for span in part) for part in screen[1:] if isinstance(part, tuple)
        ]

    assert after(made) == [
        "Until then, runs leave it unchanged and report it.",
        f"After that, r{FOLLOW[1:]}",
    ]
    assert after(made, longer) == [
        f"Runs leave it unchanged and report it, and user=<any> is {longer.text}."
    ]
    assert after(made, longer, protect=(ANY_USER,)) == [PROTECTED, "It is reported, held or not."]
    assert after(made, drift=DriftPolicy.REPORT)[-1] == (
        "After that, runs apply changes in Git, and only report values that were changed outside "
        "Git, because of drift: report. quota-ops plan demo shows both."
    )


def test_what_git_does_not_know_is_not_promised() -> None:
    """A name that Git does not declare is reported, or cleared if a run wrote it."""
    clears = "Git declares no entity of that name: the next reconcile clears "
    unless = ", unless a guard blocks it or it needs approval."
    assert words(ALICE, known=False, managed=True) == [
        f"{clears}its managed quotas{unless} Others are reported.",
        FOLLOW,
    ]
    assert words(ALICE, known=False, clear_unmanaged=True) == [
        f"{clears}every quota of it in scope{unless}",
        FOLLOW,
    ]
    assert words(ALICE, known=False) == [
        "Git declares no entity of that name: quotas that the cluster stores for it are reported.",
        FOLLOW,
    ]
    assert words(ALICE) == [FOLLOW]


ROW = DesiredRow("id", "user=alice", "producer_byte_rate", 7.0, "team", None, "team.yaml", 3)
OUT = LedgerRow("id", "user=alice", "producer_byte_rate", 5.0, "verified", *(None,) * 3, "", "")
UNLESS = ", unless a guard blocks it or it needs approval"


def git(
    *declared: DesiredRow,
    known: Sequence[LedgerRow] = (),
    holds: Sequence[Hold] = (),
    why: str | None = None,
    **policy: Any,
) -> OneOff:
    """Return the comparison with these declared rows."""
    return OneOff(Desired(Policy("demo", "id", "demo", **policy), declared, 1), known, holds, why)


def test_a_row_that_left_the_ledger_is_not_cleared_where_no_plan_may() -> None:
    """clear_unmanaged clears neither protected rows nor, until its end, held ones."""
    held = hold(ANY_USER)
    protected: dict[str, Any] = {"protect": (ANY_USER,)}

    assert [
        format_released(OUT, git(clear_unmanaged=True, **given))
        for given in (protected, {**protected, "holds": [held]}, {"holds": [held]}, {})
    ] == [
        "runs leave it alone (protected)",
        "runs leave it alone (protected)",
        f"Git does not declare it: no reconcile clears it while it is {held.text}",
        f"Git does not declare it: the next reconcile clears it{UNLESS}",
    ]
    assert format_released(OUT, git()) == "Git does not declare it; runs leave it alone"
    past = format_released(OUT._replace(state="cleared"), git())
    assert past == "no longer remembered: if the value comes back, no run is named"


PAUSED = "paused: a move"


def test_no_reconcile_is_promised_while_nothing_may_be_written() -> None:
    """A pause, a freeze or a hold prevents the write after an adoption or release."""
    held = [hold(ANY_USER)]
    differs = Adoption("user=alice", "producer_byte_rate", 5.0, ROW, None)
    same, while_paused = ROW._replace(value=5.0), "while the cluster is paused: a move"

    assert [
        format_adopted(adoption, git(*declared, known=[OUT], why=why, holds=holds))
        for adoption, declared, why, holds in (
            (differs, [ROW], None, ()),
            (differs, [ROW], PAUSED, ()),
            (differs, [ROW], PAUSED, held),
            (differs, [], PAUSED, ()),
            (differs, [same], PAUSED, held),
            (differs._replace(refusal="protected"), [], PAUSED, held),
        )
    ] == [
        f"team.yaml:3 declares 7 B/s: the next reconcile sets it{UNLESS}",
        f"team.yaml:3 declares 7 B/s: no reconcile of these files sets it {while_paused}",
        f"team.yaml:3 declares 7 B/s: no reconcile sets it while it is {held[0].text}",
        (
            "Git does not declare it, and the ledger has this value: "
            f"no reconcile of these files clears it {while_paused}"
        ),
        "as team.yaml:3 declares",
        "not adopted: protected",
    ]
    assert [
        format_released(OUT, git(*rows, why=why))
        for rows, why in (([same], None), ([same], PAUSED), ([ROW], None))
    ] == [
        "as team.yaml:3 declares: the next reconcile manages it",
        f"as team.yaml:3 declares: no reconcile of these files manages it {while_paused}",
        "team.yaml:3 declares 7 B/s: guard takeover blocks the run that would set it",
    ]
    policy = Policy("demo", "id", "demo", paused="a move")
    told = describe_released(policy, ALICE, (), is_declared=True, standstill="paused: a move")
    assert list(told) == [
        "demo is paused: a move: nothing is written before that ends.",
        f"After that, r{FOLLOW[1:]}",
    ]


@pytest.mark.parametrize(
    ("states", "released"),
    [
        (("verified", "intended"), "1 quota released"),
        (("verified", "cleared", "cleared"), "1 quota released, 2 earlier values forgotten"),
        (("cleared",), "0 quotas released, 1 earlier value forgotten"),
    ],
)
def test_only_managed_quotas_count_as_released(states: tuple[str, ...], released: str) -> None:
    """Values that the ledger only remembers are forgotten: no quota is given up with them."""
    rows = [
        LedgerRow("id", "user=alice", "producer_byte_rate", 5.0, state, *(None,) * 3, "", "")
        for state in states
    ]
    heading, *_ = plain(released_screen("demo", [(row, "") for row in rows])).split("\n")
    assert heading == f"demo: {released}; the cluster was not changed"
