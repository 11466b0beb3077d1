"""A review as JSON, for programs."""

from collections.abc import Iterable
from typing import Any

from msgspec.structs import asdict

from quota_ops.model.finding import Problem
from quota_ops.model.runs.review import ClusterReview, LaterChange, Review
from quota_ops.report.outline.findings import findings_json
from quota_ops.report.records.json_report import row_json
from quota_ops.report.review.rows import split_rows
from quota_ops.report.review.verdict import describe_verdict, list_policy_changes, summarize_review
from quota_ops.store.places.json_text import in_ascii, json_text

SCHEMA = 1
"""Raised when a field is removed or changes its meaning; new fields do not raise it."""


def as_json(review: Review, exit_code: int) -> str:
    """Return the review as one JSON object, in ASCII.

    schema          this number
    verdict         the first line of the comment, without links
    exit_code       that of the command
    base, head      the commits of the merge base and of the branch
    problems        file, line, column, message, remedy: in YAML files outside the clusters' folders
    notes           sentences on changed quotas files that no run reads
    clusters        for each cluster with changed files: cluster, folder, verdict, is_removed,
                    compared_with (current: the cluster; merge base), error, unjudged (why there is
                    no verdict: what, detail, remedy; empty if every comparison was made), problems,
                    unlisted_problems (how many more), owner_changes (before, after, entities,
                    source), later_changes (entity, key, value now, before and after: until and
                    words, of the merge base and of the branch; is_restored, is_whole), notes
                    (sentences on what was assumed or skipped), guards (those that block: guard,
                    message, ...), findings (that the merge base does not have),
                    settings (changed fields of cluster.yaml: name, and before and after, each a
                    list of values as text), `plan` (the digest, null without a plan), and rows:
                    `written` by this branch; `unwritten`, which the branch declares differently
                    while the cluster keeps its value; `overriding`, unmanaged ones that keep
                    clients from what it declares; `accepted`, overriding ones that it protects;
                    `others`, which differ for another reason;
                    `merged`, which the target branch changed since and the cluster has already;
                    each as in report.json. `stored` are the [entity, key] that the branch declares
                    differently and the cluster already has, `absent` those that it removes and the
                    cluster does not have
    """
    return in_ascii(
        json_text(
            {
                "schema": SCHEMA,
                "verdict": summarize_review(review, str),
                "exit_code": exit_code,
                "base": review.base,
                "head": review.head,
                "problems": _problems(review.problems),
                "notes": list(review.notes),
                "clusters": [_cluster(cluster) for cluster in review.clusters],
            }
        )
    )


def _cluster(review: ClusterReview) -> dict[str, Any]:
    rows, report = split_rows(review), review.report
    return {
        "cluster": review.cluster,
        "folder": review.folder,
        "verdict": describe_verdict(review, str),
        "is_removed": review.is_removed,
        "compared_with": review.compared_with,
        "error": review.error and str(review.error),
        "unjudged": [reason._asdict() for reason in review.unjudged],
        "problems": _problems(review.problems),
        "unlisted_problems": review.unlisted,
        "owner_changes": [change._asdict() for change in review.owner_changes],
        "later_changes": [_later(change) for change in review.later_changes],
        "notes": list(review.notes),
        "guards": [asdict(guard) for guard in review.guards],
        "findings": findings_json(review.findings, review.folder),
        "settings": [change._asdict() for change in list_policy_changes(review)],
        "plan": report.plan.digest if report and report.plan else None,
        **{name: [*map(row_json, getattr(rows, name))] for name in rows._fields[:-2]},
        "stored": [list(key) for key in rows.stored],
        "absent": [list(key) for key in rows.absent],
    }


def _later(change: LaterChange) -> dict[str, Any]:
    before, after = (later and later._asdict() for later in (change.before, change.after))
    return change._asdict() | {"before": before, "after": after}


def _problems(problems: Iterable[Problem]) -> list[dict[str, Any]]:
    fields = ("file", "line", "column", "message", "remedy")
    return [{name: getattr(problem, name) for name in fields} for problem in problems]
