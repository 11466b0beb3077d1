"""Reviews for the tests of the comment and the annotations: hostile texts, and many changes."""

from msgspec.structs import replace

from quota_ops.model.code_host import Repository
from quota_ops.model.errors import InvalidInput, Refused
from quota_ops.model.finding import Finding, Location, Problem
from quota_ops.model.plans.guard import GuardFinding
from quota_ops.model.runs.outcome import Status
from quota_ops.model.runs.review import BaseFiles, ClusterReview, Links, Review, Unjudged
from quota_ops.report.outline.formats import escape_text
from tests.unit.report_sample import ALICE_RAISED, PLAN, PLANNED, answered
from tests.unit.test_report_hostile import report_of

HEAD, BASE = "a" * 40, "b" * 40
CODE_HOST = "https://github.example/o/r/blob"
REPOSITORY = Repository.parse("https://github.example/o/r")


def review_of(name: str) -> Review:
    """Return a review with `name` wherever a person, a broker or a file can put text."""
    report = report_of(name)
    finding = Finding("QO101", name, None, name, name, Location(name, 3, 1))
    path = escape_text(name)  # Git and the reader allow no other
    problem = Problem(path, 1, 1, name, name, name)
    base = BaseFiles(PLAN.policy, {}, (), name)
    plan = (
        replace(PLAN, differences=report.plan.differences, guards=report.plan.guards)
        if (report.plan)
        else None
    )
    changed = ClusterReview(
        name,
        f"desired_state/{path}",
        replace(report, plan=plan, findings=(finding,), applied=()),
        frozenset(row.id for row in (plan.differences[:3] if plan else ())),
        base=base,
        error=InvalidInput(name, name),
        unjudged=(Unjudged("the cluster was not queried", name, name),),
        brokers=3,
    )
    invalid = ClusterReview(f"{name} 2", f"desired_state/{path}", problems=(problem,) * 30)
    removed = ClusterReview(f"{name} 3", f"desired_state/{path}", base=base, is_removed=True)
    links = Links(REPOSITORY, HEAD, BASE)
    return Review((changed, invalid, removed), BASE, HEAD, links, (problem,))


def large_review(changes: int, clusters: int = 1, owner: str = "team") -> Review:
    """Return a review of clusters with so many changes each, of which a guard blocks all."""
    rows = tuple(
        ALICE_RAISED._replace(entity=f"user=user-{one}", owner=f"{owner}-{one % 50}", line=one + 1)
        for one in range(changes)
    )
    plan = replace(PLAN, differences=rows, guards=(GuardFinding("takeover", "all of them"),))
    report = replace(PLANNED, plan=plan, validated=answered(Status.REFUSED, *rows, message="no"))
    own = frozenset(row.id for row in rows)
    folder = "desired_state/demo"
    error = Refused("the broker rejects them")
    found = (
        ClusterReview(f"demo-{one}", folder, report, own, error=error) for one in range(clusters)
    )
    return Review(tuple(found), BASE, HEAD, Links(REPOSITORY, HEAD, BASE))
