"""Guards tried on plans of the history."""

from typing import Any

from msgspec.structs import replace

from quota_ops.model.history.backtest import (
    count_stopped_then,
    count_unknown,
    judge_plans,
    list_plans,
)
from quota_ops.model.history.history import HistoryRow
from quota_ops.model.plans.policy import GuardThresholds, Policy
from quota_ops.report.outline.layout import plain
from quota_ops.report.screens.backtest import backtest_screen, blocked_json

POLICY = Policy("demo", "MkU3OEVBNTcwNTJENDM2Qg", "demo")
NOTHING: dict[str, Any] = dict.fromkeys(HistoryRow._fields)


def end(at: str, *rows: dict[str, Any], **run: Any) -> list[HistoryRow]:
    """Return the rows of a look with these quotas."""
    values = NOTHING | {"cluster": "demo", "run": at, "ended": at, "revision": 1, "mode": "look"}
    quota = {"key": "producer_byte_rate", "action": "set", "kind": "pending", "owner": "team"}
    of_run = HistoryRow(**values | {"declared": 40, "owned": 50} | run)
    return [of_run, *(HistoryRow(**values | quota | row) for row in rows)]


def cleared(number: int) -> dict[str, Any]:
    """Return a row that is cleared; etl owns 30 of the 50 managed rows."""
    name = {"entity": f"user=u{number}", "owner": "etl", "owned": 30}
    return name | {"kind": "removed", "action": "clear", "actual": 5e6}


RAISED = {"entity": "user=a", "actual": 1e6, "desired": 5e7, "owned": 20}
HARMLESS = {"entity": "user=b", "actual": 1e6, "desired": 2e6, "owned": 20}
ENDS = [
    *end("2026-11-01", *map(cleared, range(8)), blocked_by="removals"),
    *end("2026-11-02", *map(cleared, range(8))),
    *end("2026-11-03", RAISED, HARMLESS, overridden="raise,went_back", commit="4f1c2e9"),
    *end("2026-11-04", declared=None),
    *end("2026-11-05", {"entity": "user=x", "action": "report", "kind": "drifted"}),
]


def test_plans_of_the_same_writes_are_one() -> None:
    """A plan counts once, however many runs found it; runs without writes do not count."""
    assert [(plan.first.run, plan.runs, len(plan.writes)) for plan in list_plans(ENDS)] == [
        ("2026-11-01", 2, 8),
        ("2026-11-03", 1, 2),
    ]


def test_runs_of_one_second_are_in_the_order_of_their_numbers() -> None:
    """A plan and the run that applied it are one, whatever the names of the runs are."""
    ends: list[HistoryRow] = []
    for number, (name, quota) in enumerate((("c", cleared(1)), ("b", RAISED), ("a", RAISED))):
        run = {"run": name, "sequence": number}
        ends += end("2026-11-01", quota | run, **run)

    assert [(plan.first.run, plan.runs) for plan in list_plans(ends)] == [("c", 1), ("b", 2)]


def test_the_numbers_of_the_policy_decide() -> None:
    """The same plans, with the guards of two policies, by the counts of the ledger back then."""
    plans = list_plans(ENDS)
    found = judge_plans(plans, POLICY)

    assert [
        (row.finding.guard, row.finding.rows, row.finding.share, row.owners) for row in found
    ] == [("removals", 8, 16.0, (("etl", 8),)), ("raise", 1, None, (("team", 1),))]
    loose = GuardThresholds(removals_share=16, raise_factor=50)
    assert judge_plans(plans, replace(POLICY, guards=loose)) == ()


def test_the_screen_of_a_backtest() -> None:
    """How often each guard would have blocked comes first, then each plan and what it did then."""
    plans = list_plans(ENDS)
    blocked = judge_plans(plans, POLICY)

    shown = plain(backtest_screen(plans, blocked, "2026-11-01", "cluster.yaml"))
    lines = [" ".join(one.split()) for one in shown.splitlines()]
    assert lines[0] == "2 plans since 2026-11-01; the guards of cluster.yaml would have blocked 2."
    assert "removals 1 8 16 %" in lines
    assert "2026-11-01 00:00 UTC demo 2026-11-01 2 8 removals 8 etl 8 blocked" in lines
    assert "2026-11-03 00:00 UTC demo 2026-11-03 1 2 raise 1 team 1 overridden" in lines
    assert blocked_json(blocked[1])["owners"] == [{"owner": "team", "rows": 1}]
    assert blocked_json(blocked[1])["commit"] == "4f1c2e9"
    assert "would rise to more than 10 times; planned from commit 4f1c2e9" in shown
    assert [one.partition(": ")[0] for one in shown.splitlines()[-3:]] == [
        "Not tried",
        "blast_radius is not tried on 2 of 2 plans",
        "The guards of limits are tried on the values of rows only in 2 of 2 plans",
    ]
    assert "Guards that are not tried blocked 1 plan at the time." in shown
    none = plain(backtest_screen(plans, (), "2026-11-01", "cluster.yaml"))
    assert (
        "would have blocked none.\n\nNot tried: above_ceiling, would_throttle, unprotected, "
        in none
    )


def test_guards_of_clients_are_tried_with_what_the_runs_recorded() -> None:
    """A new row that cuts clients, and clients that lose, block; runs of one plan count once."""
    new = {"entity": "user=a", "desired": 1e6, "owned": 20, "cut": 60.0}
    lifted = new | {"cut": 0.0, "rise": 11.0, "unlimited": True, "foreign": "search"}
    found = judge_plans(list_plans(end("2026-11-01", lifted)), POLICY)
    assert [row.finding.guard for row in found] == ["raise", "unlimited", "foreign_owner"]
    old = {"entity": "user=b", "desired": 1e6, "owned": 20}
    plans = list_plans(
        [
            *end("2026-11-01", new, clients=1000, losing=99),
            *end("2026-11-02", new, clients=1000, losing=300),
            *end("2026-11-03", new),
            *end("2026-11-04", old, blocked_by="blast_radius"),
        ]
    )
    many = GuardThresholds(cut_share=50, blast_radius=200, blast_radius_share=100)
    found = judge_plans(plans, replace(POLICY, guards=many))

    assert [(row.plan.runs, row.finding.guard, row.owners) for row in found] == [
        (3, "cut", (("team", 1),)),
        (3, "blast_radius", ()),
    ]
    assert found[1].finding.message == ("300 clients would or may get less, more than 200")
    assert count_unknown(plans) == (1, 1)
    assert count_stopped_then(plans) == 1
    few = GuardThresholds(cut_share=60, blast_radius=300, blast_radius_share=30)
    assert judge_plans(plans, replace(POLICY, guards=few)) == ()
    share = judge_plans(plans, replace(POLICY, guards=replace(few, blast_radius_share=29)))
    assert [(row.finding.guard, row.finding.share) for row in share] == [("blast_radius", 30.0)]
