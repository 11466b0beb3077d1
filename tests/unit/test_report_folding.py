"""A change of a profile: shown once, with the quotas that it moves."""

from msgspec.structs import replace

from quota_ops.report.outline.layout import plain
from quota_ops.report.review.comment import as_comment
from quota_ops.report.screens.plan import plan_screen
from tests.unit.report_sample import ALICE_RAISED, PLAN, PLANNED
from tests.unit.review_sample import large_review

GOLD = "profile gold (cluster.yaml:5)"
MOVED = [
    ALICE_RAISED._replace(entity=f"user={name}", derivation=f"list of 5, {GOLD}", reason=None)
    for name in "abcde"
]
OTHER = ALICE_RAISED._replace(entity="user=f", before=1024.0, derivation=GOLD)


def test_a_plan_shows_a_changed_profile_once() -> None:
    """Rows with equal values of one profile are one line; others stay rows of the table."""
    plan = replace(PLAN, differences=(*MOVED, OTHER, ALICE_RAISED))
    report = replace(PLANNED, plan=plan, validated=())

    lines = plain(plan_screen(report)).splitlines()

    fold = f"  {GOLD}  producer_byte_rate  10 MiB/s -> 15 MiB/s  +50 %  5 quotas: user=a, user=b,"
    assert lines[2] == f"{fold} user=c and 2 more"
    rows = [line.split()[1] for line in lines if line.strip().startswith("pending")]
    assert sorted(rows) == ["user=alice", "user=f"]


def test_two_rows_of_a_profile_stay_rows() -> None:
    """So few rows are as short as a line about them."""
    report = replace(PLANNED, plan=replace(PLAN, differences=tuple(MOVED[:2])), validated=())

    assert GOLD in plain(plan_screen(report)).splitlines()[3]
    assert "2 quotas" not in plain(plan_screen(report))


def test_a_comment_shows_a_changed_profile_once() -> None:
    """The comment of a review has a sentence about the profile, and the other rows in its table."""
    review = large_review(1)
    cluster = review.clusters[0]
    assert cluster.report is not None
    own = frozenset(row.id for row in (*MOVED, OTHER))
    report = replace(cluster.report, plan=replace(PLAN, differences=(*MOVED, OTHER)), applied=())
    found = replace(cluster, report=replace(report, validated=()), own=own, declared=own)

    comment = as_comment(replace(review, clusters=(found,)))

    values = "producer_byte_rate 10 MiB/s → **15 MiB/s** for 5 quotas"
    assert f"\n\n`{GOLD}`: {values}: `user=a`, `user=b`, `user=c` and 2 more\n" in comment
    assert comment.count("| ↑ |") == 1
