"""A review of a branch: the lines that it links, what blocks, its new findings, its exit code."""

from msgspec.structs import replace

from quota_ops.model.code_host import Repository
from quota_ops.model.errors import Unreachable
from quota_ops.model.finding import Finding, Location, Problem
from quota_ops.model.plans.guard import GuardFinding
from quota_ops.model.quotas.rows import DesiredRow, Key
from quota_ops.model.runs.review import (
    BaseFiles,
    ClusterReview,
    Later,
    LaterChange,
    Links,
    Review,
    Unjudged,
    list_later_changes,
)
from tests.unit.report_sample import PLAN, PLANNED

FILE = "desired_state/demo"
UNREACHABLE = ClusterReview("far", FILE, error=Unreachable("no broker responds"))
REMOVED = ClusterReview("old", FILE, is_removed=True)
TWICE = (GuardFinding("cut", "alice"), GuardFinding("cut", "bob"), GuardFinding("lost", "carol"))
BLOCKED = ClusterReview(
    "demo", FILE, replace(PLANNED, plan=replace(PLAN, guards=TWICE), findings=())
)
PROBLEM = Problem("README", 1, 1, "is no cluster")


def test_a_link_leads_to_a_line_of_a_commit() -> None:
    """A link names the commit at the head, or else that of the merge base."""
    links = Links(Repository("https://code.example/{commit}/{path}#L{line}"), "a1", "b2")
    assert links.find_line("c.yaml", 7) == "https://code.example/a1/c.yaml#L7"
    assert links.find_line("c.yaml", 7, at_base=True) == "https://code.example/b2/c.yaml#L7"


def test_a_guard_that_blocks_twice_is_named_once() -> None:
    """The names of the blocking guards are in the order in which they blocked."""
    assert BLOCKED.blocking == ("cut", "lost")
    assert (REMOVED.blocking, REMOVED.findings) == ((), ())


def test_only_new_findings_are_the_doing_of_a_branch() -> None:
    """One that the merge base has too is old, wherever its line is now; a silenced one is none.

    Without an entity, two of one code differ by what they concern, for example two unused profiles.
    """
    old = Finding("QO101", None, None, "old", "", Location("a.yaml", 1, 1), subject="silver")
    moved = old._replace(place=Location("a.yaml", 9, 1))
    new = old._replace(subject="gold")
    silenced = old._replace(code="QO103", silenced="agreed")
    report = replace(PLANNED, findings=(moved, new, silenced))
    known = frozenset({old.identity})
    assert ClusterReview("demo", FILE, report, known_findings=known).findings == (new,)


def test_what_was_not_checked_concerns_another_entity() -> None:
    """What was not checked is new where the branch declares an entity that the merge base lacks.

    A finding about a line of cluster.yaml, or about all limits of a key, is not.
    """
    unchecked = Finding("QO204", None, None, "unchecked", "")
    placeholder = Finding("QO122", None, None, "", "", Location("cluster.yaml", 4, 1))
    overcommitted = Finding("QO118", None, "producer_byte_rate", "", "")
    known = frozenset(finding.identity for finding in (unchecked, placeholder, overcommitted))
    report = replace(PLANNED, findings=(unchecked, placeholder, overcommitted))
    alice = Key("user=alice", "k")
    declared = {alice: DesiredRow("demo", *alice, 1.0, None, None, "a.yaml", 1)}

    def findings(*own: Key, base: BaseFiles | None) -> tuple[Finding, ...]:
        found = ClusterReview("demo", FILE, report, base=base, known_findings=known)
        return replace(found, own=frozenset(own), declared=frozenset(own)).findings

    base = BaseFiles(PLAN.policy, declared, (), FILE)
    assert findings(alice, base=base) == ()
    assert findings(alice, alice._replace(entity="user=bob"), base=base) == (unchecked,)
    assert findings(alice, base=None) == (unchecked,)


def test_the_exit_code_is_that_of_the_worst_cluster() -> None:
    """A missing comparison counts most, also beside a guard; an error more than a guard."""
    far = Unreachable.exit_code
    unjudged = replace(BLOCKED, unjudged=(Unjudged("the cluster was not queried"),))
    assert unjudged.exit_code() == unjudged.exit_code(fail_on_guards=False) == 6
    assert replace(unjudged, error=UNREACHABLE.error).exit_code() == far
    assert Review((unjudged, UNREACHABLE), "b2").exit_code() == 6
    assert [cluster.exit_code() for cluster in (REMOVED, BLOCKED, UNREACHABLE)] == [1, 1, far]
    assert BLOCKED.exit_code(fail_on_guards=False) == 0
    assert Review((REMOVED,), "b2").exit_code(fail_on_guards=False) == 0
    assert Review((REMOVED, BLOCKED), "b2").exit_code(fail_on_guards=False) == 0
    assert Review((BLOCKED, UNREACHABLE), "b2").exit_code() == far
    assert Review((BLOCKED,), "b2", problems=(PROBLEM,)).exit_code() == 2


def test_a_renamed_folder_has_its_earlier_name() -> None:
    """A folder that keeps its name, is new or is removed has none."""
    base = BaseFiles(PLAN.policy, {}, (), "demo")
    renamed = ClusterReview("orders", FILE, base=base)

    assert renamed.earlier_name == PLAN.policy.cluster
    kept = replace(renamed, cluster=PLAN.policy.cluster)
    assert [
        cluster.earlier_name for cluster in (kept, replace(renamed, is_removed=True), REMOVED)
    ] == [None] * 3


def test_what_a_branch_changes_for_a_later_time() -> None:
    """A row is listed if its later value changes; a line that moves changes nothing."""
    key = Key("user=alice", "producer_byte_rate")
    now, until = DesiredRow("demo", *key, 5.0, None, None, "a.yaml", 1), "2026-12-01T00:00:00Z"
    ends = now._replace(value=9.0, until=until, returns_to=5.0)
    falls = ends._replace(derivation="9 B/s until 1 December, then 3 B/s (a.yaml:7)")
    moved = falls._replace(derivation="9 B/s until 1 December, then 3 B/s (a.yaml:8)")
    before, after = Later(until, "5 B/s"), Later(until, "3 B/s")
    restored = LaterChange(*key, 9.0, None, before, True, False)
    changed = LaterChange(*key, 9.0, before, after, False, False)

    def compare(before: DesiredRow, after: DesiredRow) -> tuple[LaterChange, ...]:
        base = BaseFiles(PLAN.policy, {key: before}, (), FILE)
        return list_later_changes(base, {key: after}, {})

    assert compare(now, ends) == (restored,)
    assert compare(ends, falls) == (changed,)
    assert compare(falls, moved) == ()
    reviews = [ClusterReview("demo", FILE, later_changes=(one,)) for one in (restored, changed)]
    assert [review.has_new_later for review in reviews] == [False, True]
