"""The verdict of a review: what the branch changes, and whether that is in order."""

from collections.abc import Callable
from typing import NamedTuple

from quota_ops.findings.codes import CODES, Severity
from quota_ops.model.runs.outcome import DONE
from quota_ops.model.runs.review import ClusterReview, Review
from quota_ops.model.text import counted, plural
from quota_ops.report.outline.policy_changes import PolicyChange, compare_policies
from quota_ops.report.outline.row_status import Section
from quota_ops.report.review.rows import split_rows

UNJUDGED = "❔"
"""The mark of a verdict that lacks a comparison."""
NOTHING = "no quota changes"
NOTHING_TO_COMPARE = "nothing to compare: the target branch has this commit already"


def summarize_review(review: Review, quoted: Callable[[str], str]) -> str:
    """Return the verdict on all clusters; `quoted` formats the name of one."""
    verdict = _summarize_clusters(review, quoted)
    if not review.problems:
        return str(verdict)
    problems = f"❌ {counted(len(review.problems), 'problem')} in"
    if not review.clusters:
        return f"{problems} the files"
    return f"{problems} other files; {verdict.words}"


class _Verdict(NamedTuple):
    words: str
    sign: str = ""
    """Empty if nothing changes."""

    def __str__(self) -> str:
        return f"{self.sign} {self.words}".lstrip()


def _summarize_clusters(review: Review, quoted: Callable[[str], str]) -> _Verdict:
    changed = [cluster for cluster in review.clusters if is_shown(cluster)]
    if review.is_merged and not review.clusters:
        return _Verdict(NOTHING_TO_COMPARE)
    if not changed:
        names = [quoted(cluster.cluster) for cluster in review.clusters]
        return _Verdict(f"{NOTHING} on {names[0]}" if len(names) == 1 else NOTHING)
    if len(changed) == 1:
        return _judge(changed[0], quoted)
    wrong = sum(cluster.error is not None for cluster in changed)
    judged = [cluster for cluster in changed if cluster.error is None and not cluster.unjudged]
    unjudged = len(changed) - wrong - len(judged)
    blocked = sum(bool(cluster.guards) for cluster in judged)
    warned = sum(count_warnings(cluster) for cluster in judged)
    overridden = sum(len(split_rows(cluster).overriding) for cluster in judged)
    changes = sum(len(split_rows(cluster).written) for cluster in changed)
    removed = sum(cluster.is_removed for cluster in changed)
    later = any(cluster.has_new_later for cluster in judged)
    sign = "⚠️" if blocked or warned or removed or overridden or later else "✅"
    sign = UNJUDGED if unjudged else sign
    sign = "❌" if wrong else sign
    words = f"{counted(changes, 'change')} on {counted(len(changed), 'cluster')}"
    parts = (
        (removed, f"{counted(removed, 'cluster')} removed from Git"),
        (wrong, f"{counted(wrong, 'cluster')} {plural(wrong, 'has', 'have')} errors"),
        (unjudged, f"{counted(unjudged, 'cluster')} cannot be judged"),
        (blocked, f"{counted(blocked, 'cluster')} {plural(blocked, 'needs', 'need')} approval"),
        (overridden, _describe_overriding(overridden)),
        (warned, counted(warned, "new warning")),
    )
    return _Verdict("; ".join([words, *(text for number, text in parts if number)]), sign)


def is_shown(review: ClusterReview) -> bool:
    """Return whether a comment shows anything about a cluster besides "no quota changes"."""
    changes = (review.own, review.is_removed, review.earlier_name, list_policy_changes(review))
    unseen = (review.unjudged, review.owner_changes, review.later_changes)
    return review.error is not None or any((*changes, *unseen))


def describe_verdict(review: ClusterReview, quoted: Callable[[str], str]) -> str:
    """Return what a branch changes on a cluster, and whether that is in order."""
    return str(_judge(review, quoted))


def _judge(review: ClusterReview, quoted: Callable[[str], str]) -> _Verdict:
    cluster = quoted(review.cluster)
    if review.earlier_name:
        cluster += f" (was {quoted(review.earlier_name)})"
    return _describe_uncompared(review, cluster) or _describe_changes(review, cluster)


def _describe_uncompared(review: ClusterReview, cluster: str) -> _Verdict | None:
    """Return why there is nothing to compare; None if there is."""
    if review.problems:
        number = len(review.problems) + review.unlisted
        return _Verdict(f"{counted(number, 'problem')} in the YAML files of {cluster}", "❌")
    if review.is_removed:
        return _Verdict(f"{cluster} is removed from Git", "⚠️")
    if review.unjudged and review.report is None:
        return _Verdict(f"{cluster} cannot be judged: {_list_reasons(review)}", UNJUDGED)
    return None


def list_policy_changes(review: ClusterReview) -> tuple[PolicyChange, ...]:
    """Return the fields of cluster.yaml that differ from the merge base, by name."""
    return compare_policies(review.base and review.base.policy, review.policy)


def _list_reasons(review: ClusterReview) -> str:
    return " and ".join(dict.fromkeys(reason.what for reason in review.unjudged))


def count_warnings(review: ClusterReview) -> int:
    """Return how many new findings are warnings: a limit does not do what its reader expects."""
    return sum(CODES[finding.code].severity is Severity.WARNING for finding in review.findings)


def _describe_changes(review: ClusterReview, cluster: str) -> _Verdict:
    rows = split_rows(review)
    written, held = len(rows.written), sum(row.section is Section.HELD for row in rows.unwritten)
    found = [counted(written, "change")] if written else []
    found += [counted(held, "held change")] if held else []
    found += ["changed settings"] if list_policy_changes(review) else []
    owners = sum(len(change.entities) for change in review.owner_changes)
    found += [counted(owners, "changed owner")] if owners else []
    later = len(review.later_changes)
    found += [counted(later, "later change")] if later else []
    changes = f"{' and '.join(found) or 'no change'} on {cluster}"
    if rejected := count_rejected(review):
        return _Verdict(f"{changes}; the broker rejects {rejected:,}", "❌")
    if review.unjudged:
        return _Verdict(f"{changes}; cannot judge: {_list_reasons(review)}", UNJUDGED)
    if guards := len(review.blocking):
        need = plural(guards, "needs", "need")
        return _Verdict(f"{changes}; {counted(guards, 'guard')} {need} approval", "⚠️")
    if overriding := len(rows.overriding):
        return _Verdict(f"{changes}; {_describe_overriding(overriding)}", "⚠️")
    if warnings := count_warnings(review):
        return _Verdict(f"{changes}; {counted(warnings, 'new warning')}", "⚠️")
    return _Verdict(changes, "⚠️" if review.has_new_later else "✅")


def _describe_overriding(number: int) -> str:
    comes = plural(number, "comes", "come")
    return f"{counted(number, 'unmanaged quota')} on the cluster {comes} first"


def count_rejected(review: ClusterReview) -> int:
    """Return how many changes the broker rejects."""
    validated = review.report.validated if review.report else ()
    return sum(len(outcome.keys) for outcome in validated if outcome.status not in DONE)
