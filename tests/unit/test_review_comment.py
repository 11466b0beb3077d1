"""The comment and the annotations of a review: hostile texts, and limits of platforms."""

import json
import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from quota_ops.model.finding import Finding, Location
from quota_ops.model.plans.capacity import Capacity
from quota_ops.model.plans.ceilings import Ceiling
from quota_ops.model.plans.effect import ClassEffect, Effect, Limit
from quota_ops.model.plans.guard import GuardFinding
from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.difference import Kind
from quota_ops.model.quotas.rows import DesiredRow
from quota_ops.model.runs.review import BaseFiles, ClusterReview, Review
from quota_ops.model.usage.usage import UsagePolicy
from quota_ops.report.markdown.approval_form import format_body
from quota_ops.report.outline.formats import escape_text
from quota_ops.report.outline.policy_changes import compare_policies
from quota_ops.report.review.annotations import (
    Annotation,
    Level,
    as_code_quality,
    as_sarif,
    as_workflow_commands,
    list_annotations,
)
from quota_ops.report.review.comment import GITHUB_LIMIT, MARKER, as_comment
from tests.unit.report_sample import ALICE_RAISED, PLAN, PLANNED
from tests.unit.review_sample import CODE_HOST, large_review, review_of
from tests.unit.test_report_hostile import NAMES, tokens

OWN_HTML = re.compile(
    r"<br>|<!-- quota-ops review -->\n?|"
    r"<details><summary>([^<>]|<code>[^<>]*</code>)*</summary>\n?|</details>\n?"
)


@pytest.mark.parametrize("name", NAMES)
def test_a_comment_is_harmless(name: str) -> None:
    """Foreign text is code: the only links lead to lines, and no other HTML is in the comment."""
    found = list(tokens(as_comment(review_of(name))))

    outside = "".join(token.content for token in found if token.type == "text")
    links = [str(token.attrs["href"]) for token in found if token.type == "link_open"]
    html = [token.content for token in found if "html" in token.type]
    assert not re.search(r"[@#\[\]<>`|]|http|www", outside)
    assert [link for link in links if not link.startswith(f"{CODE_HOST}/")] == []
    assert [one for one in html if OWN_HTML.fullmatch(one) is None] == []
    assert {one.type for one in found} <= {
        one.type for one in tokens(as_comment(review_of("plain")))
    }
    assert escape_text(name) in {one.content for one in found if one.type == "code_inline"}


def test_findings_of_others_are_not_new() -> None:
    """What the merge base has too, in its files or on the cluster, is not the branch's doing.

    That unknown users cannot be looked for concerns a branch that declares another entity.
    """
    changed = large_review(1).clusters[0]
    (own,) = {key.entity for key in changed.own}
    assert changed.report
    found = [
        Finding("QO202", entity, None, "unknown", "Correct it.", Location("team.yaml", 3))
        for entity in (own, "user=alcie")
    ]
    added = Finding("QO101", "user=User:a", None, "prefix", "Remove it.", Location("t.yaml", 3, 7))
    unchecked = Finding("QO204", None, None, "unchecked", "Grant it.")
    report = replace(changed.report, findings=(*found, added, unchecked))

    keys = frozenset({found[1].identity, unchecked.identity})
    reviewed = replace(changed, report=report, declared=changed.own, known_findings=keys)
    plan = changed.report.plan
    assert plan
    declared = {key: DesiredRow("demo", *key, 1.0, None, None, "t.yaml", 1) for key in changed.own}
    known = replace(reviewed, base=BaseFiles(plan.policy, declared, (), "demo"))

    assert reviewed.findings == (found[0], added, unchecked)
    assert known.findings == (found[0], added)


@pytest.mark.parametrize("name", NAMES)
def test_annotations_are_harmless(name: str) -> None:
    """Each command of GitHub is one line, and the two reports are JSON that quotes the text."""
    annotations = list_annotations(review_of(name))

    commands = list(as_workflow_commands(annotations))
    assert len(commands) == len(list(as_workflow_commands(list_annotations(review_of("plain")))))
    assert all(
        re.fullmatch(r"::(error|warning|notice) file=[^\r\n]+", command) for command in commands
    )
    (run,) = json.loads(as_sarif(annotations, "1.0"))["runs"]
    assert len(run["results"]) == len(json.loads(as_code_quality(annotations))) == len(annotations)
    uris = [
        one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in run["results"]
    ]
    assert all(re.fullmatch(r"[A-Za-z0-9/_.~%-]+", uri) for uri in uris)


@given(st.text(max_size=40), st.text(max_size=40))
def test_a_command_of_github_has_the_values_that_went_in(path: str, message: str) -> None:
    """The runner's way of reading a command gives path and message back."""
    annotation = Annotation(Level.ERROR, path, 3, None, "cut", message)
    (command,) = as_workflow_commands([annotation])

    head, _, data = command.removeprefix("::").partition("::")
    values = dict(part.split("=", 1) for part in head.removeprefix("error ").split(","))
    unescaped = values["file"].replace("%2C", ",").replace("%3A", ":")
    assert unescape(unescaped) == path
    assert unescape(data) == escape_text(message)


def unescape(data: str) -> str:
    """Return what GitHub's runner makes of the data of a command."""
    return data.replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%")


@pytest.mark.parametrize(
    ("changes", "clusters", "owner"),
    [(21, 1, "team"), (10_000, 1, "team"), (2_000, 1, "@" * 40_000), (3, 300, "a"), (900, 40, "a")],
)
def test_a_comment_fits(changes: int, clusters: int, owner: str) -> None:
    """The comment of any review fits GitHub's limit, and its tables and lists are complete."""
    comment = as_comment(large_review(changes, clusters, owner))

    assert len(comment.encode("utf-16-le")) <= 2 * GITHUB_LIMIT
    assert comment.startswith(f"{MARKER}\n**quota-ops · ❌ {changes * clusters:,} changes on ")
    assert comment.count("<details>") == comment.count("</details>")
    assert all(line.endswith(" |") for line in comment.splitlines() if line.startswith("| "))
    is_cut = changes * clusters > 30
    assert ("; the report in the artifacts of this job lists all of them." in comment) == is_cut


def test_many_changes_are_counted_by_owner() -> None:
    """The counts of owners come first, then the riskiest changes, then all, folded."""
    lines = as_comment(large_review(120)).splitlines()

    headings = [line for line in lines if line.endswith(":") or line.startswith("| owner")]
    assert headings == [
        "| owner | changes | removed | cut | raised | new |",
        "The 10 riskiest of 120 changes:",
        "All changes by owner:",
    ]
    assert "| `team-0` | 3 |  |  | 3 |  |" in lines
    assert "<details><summary><code>team-0</code>: 3 changes</summary>" in lines


def test_a_new_quota_that_cuts_is_among_the_riskiest() -> None:
    """Of 31 new quotas, the only one that a guard blocks comes first, and counts as cut."""
    new = ALICE_RAISED._replace(before=None, kind=Kind.PENDING, owner="search")
    rows = tuple(new._replace(entity=f"user=a{at}") for at in range(10, 40))
    cut = new._replace(entity="user=zz1", after=17_000.0)
    default = Limit(8e6, "user=<default>", ("user",))
    effects = {
        row.id: Effect((change,), risk=change.judge(row.key))
        for row in (*rows, cut)
        for change in [ClassEffect(default, Limit(float(row.after or 0), row.entity, ("user",)))]
    }
    plan = replace(PLAN, differences=(*rows, cut), guards=(GuardFinding("cut", "one"),))
    report = replace(PLANNED, plan=plan, validated=(), effects=effects)
    found = ClusterReview("demo", "desired_state/demo", report, frozenset(effects))

    lines = as_comment(Review((found,), "b" * 40)).splitlines()

    assert "| `search` | 31 |  | 1 |  | 30 |" in lines
    riskiest = lines.index("The 10 riskiest of 31 changes:")
    assert lines[riskiest + 4].startswith("| ⚠ | user `zz1` |")
    form = format_body(report, plan, datetime(2026, 11, 21, tzinfo=UTC), "report.html").splitlines()
    assert next(line for line in form if "user `" in line).startswith("| ⚠ | user `zz1` |")


def test_settings_with_fields_are_compared_with_none() -> None:
    """A branch that adds or removes settings lists each field, with limits as people write them."""
    old = Policy("demo", "id", "demo")
    mebibyte = 2.0**20
    new = replace(
        old,
        usage=UsagePolicy("monitoring"),
        capacity=Capacity((("producer_byte_rate", 90 * mebibyte),), factor=2.0),
        ceilings=(
            Ceiling(
                "fraud", (("producer_byte_rate", 20 * mebibyte),), (("request_percentage", 200.0),)
            ),
        ),
    )

    added = [change.format() for change in compare_policies(old, new)]
    removed = [change.format() for change in compare_policies(new, old)]

    assert [text for text in added if not text.startswith("usage")] == [
        "capacity.factor: none -> 2.0",
        "capacity.producer_byte_rate: none -> 90 MiB/s",
        "ceilings.fraud.producer_byte_rate: none -> 20 MiB/s",
        "ceilings.fraud.total.request_percentage: none -> 200 %",
    ]
    assert "usage.prometheus: none -> monitoring" in added
    assert "ceilings.fraud.producer_byte_rate: 20 MiB/s -> none" in removed
    assert "usage.prometheus: monitoring -> none" in removed
