"""The review of a branch: what it changes on each cluster, compared with its merge base."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from msgspec import Struct

from quota_ops.model.code_host import Repository
from quota_ops.model.errors import CannotJudge, QuotaOpsError, Refused
from quota_ops.model.finding import Finding, FindingIdentity, Problem
from quota_ops.model.plans.guard import GuardFinding
from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.owners import OwnerChange
from quota_ops.model.quotas.quota import format_limit
from quota_ops.model.quotas.rows import DesiredRow, Key
from quota_ops.model.runs.report import Report

_PLACE = re.compile(r" \([^()]*:\d+\)|:\d+$")


class BaseFiles(NamedTuple):
    """What a cluster's files declare in another commit; `folder` is the cluster's folder there.

    If `invalid` has a text, it is why they cannot be read: what the rows are is not known, and the
    policy only if cluster.yaml alone is valid.
    """

    policy: Policy | None
    rows: Mapping[Key, DesiredRow]
    findings: tuple[Finding, ...]
    folder: str
    invalid: str = ""
    coming: Mapping[Key, DesiredRow] = MappingProxyType({})
    """The limits that begin later, of rows that the files do not declare before."""


class Unjudged(NamedTuple):
    """Why a change of a branch cannot be judged: the missing input, in detail, and the remedy."""

    what: str
    """A clause for the verdict, in words of quota-ops."""
    detail: str = ""
    """A text that may quote files, names and brokers."""
    remedy: str = ""


class Links(NamedTuple):
    """Where people see the lines of both commits of a review."""

    repository: Repository
    head: str
    base: str

    def find_line(self, path: str, line: int | None, *, at_base: bool = False) -> str:
        """Return the address of a line at the head of the branch, or at its merge base."""
        return self.repository.find_line(self.base if at_base else self.head, path, line)


class Later(NamedTuple):
    """What Git declares for a row from a time on (ISO 8601, UTC), in words: `5 GiB/s` or `none`."""

    until: str
    words: str


class LaterChange(NamedTuple):
    """A row whose later value a branch changes, but not the value that Git declares now (`value`).

    `value` is None for a row that Git declares later alone, `before` and `after` where nothing
    changes with time. `is_restored` is whether it returns to what the merge base declares now,
    `is_whole` whether the limits are those of the whole cluster.
    """

    entity: str
    key: str
    value: float | None
    before: Later | None
    after: Later | None
    is_restored: bool
    is_whole: bool


def list_later_changes(
    base: BaseFiles, after: Mapping[Key, DesiredRow], coming: Mapping[Key, DesiredRow]
) -> tuple[LaterChange, ...]:
    """Return the rows for which two sets of files declare different values from a time on.

    `coming` are the rows that the files of the branch declare later alone.
    """
    found = []
    for key in sorted({*after, *coming, *base.coming}):
        known = base.rows.get(key)
        before, row = known or base.coming.get(key), after.get(key) or coming.get(key)
        was, now = before and _find_later(before), row and _find_later(row)
        if was != now:
            is_restored = bool(known and row and now and row.returns_to == known.value)
            declared = row or before
            is_whole = declared is not None and declared.whole is not None
            value = after[key].value if key in after else None
            found.append(LaterChange(*key, value, was, now, is_restored, is_whole))
    return tuple(found)


def _find_later(row: DesiredRow) -> Later | None:
    if row.until is None:
        return None
    _, found, words = (row.derivation or "").rpartition("then ")
    if not found:
        words = format_limit(row.key, row.returns_to or None)
    return Later(row.until, _PLACE.sub("", words))  # a line that moves changes no limit


class ClusterReview(Struct, frozen=True, eq=False):
    """What a branch changes on one cluster; it equals only itself, as a report does.

    `folder` is the cluster's folder below the root of the repository. `report` is None if the files
    do not change a quota, or cannot be read. `own` are the rows that this branch changes; the other
    differences of the report are not its doing.
    """

    cluster: str
    folder: str
    report: Report | None = None
    own: frozenset[Key] = frozenset()
    declared: frozenset[Key] = frozenset()
    """Those of the own rows that the branch declares."""
    base: BaseFiles | None = None
    target: BaseFiles | None = None
    """The files of the target branch, if it has commits that the branch does not have."""
    head: BaseFiles | None = None
    """The files of the branch's last commit, if the target has commits that it does not have."""
    merged: BaseFiles | None = None
    """The files of that commit merged with the target."""
    has_target_changed: bool = False
    """Whether the target branch has changed the cluster's files since the merge base."""
    problems: tuple[Problem, ...] = ()
    unlisted: int = 0
    """How many further problems there are."""
    error: QuotaOpsError | None = None
    """Problems in the files, or changes that the broker rejects."""
    unjudged: tuple[Unjudged, ...] = ()
    """Why there is no verdict, the main reason first; empty if every comparison was made."""
    policy: Policy | None = None
    """The content of cluster.yaml; None if it is invalid."""
    owner_changes: tuple[OwnerChange, ...] = ()
    """The quotas that get a different owner than in the merge base."""
    later_changes: tuple[LaterChange, ...] = ()
    """What the branch changes from a time on."""
    notes: tuple[str, ...] = ()
    """Sentences on what was assumed or skipped."""
    brokers: int = 0
    """How many brokers the cluster has; 0 if it was not queried."""
    is_removed: bool = False
    """Whether the branch removes the cluster's folder."""
    repository: Repository | None = None
    """Where people see the files, if the CI platform names it; cluster.yaml may name it too."""
    known_findings: frozenset[FindingIdentity] = frozenset()
    """The findings that the merge base or the target branch has too, on the same cluster."""
    compared_with: str = "current"
    """The heading of the old values, which come from the cluster or from the merge base."""

    @property
    def earlier_name(self) -> str | None:
        """The name of the cluster at the merge base, if the branch renames its folder."""
        if self.base is None or self.is_removed or self.base.folder == self.cluster:
            return None
        return self.base.folder

    @property
    def guards(self) -> tuple[GuardFinding, ...]:
        """The guards that block what this branch changes."""
        return self.report.plan.refused if self.report and self.report.plan else ()

    @property
    def blocking(self) -> tuple[str, ...]:
        """The names of the guards that block, each once."""
        return tuple(dict.fromkeys(guard.guard for guard in self.guards))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings that are not silenced and that this branch adds.

        One without entity, key and place (that users were not checked) concerns each entity that it
        adds.
        """
        before = {key.entity for key in self.base.rows} if self.base else set()
        adds_entity = not before.issuperset(key.entity for key in self.declared)
        return tuple(
            finding
            for finding in (self.report.findings if self.report else ())
            if finding.silenced is None
            if finding.identity not in self.known_findings
            or (adds_entity and not (finding.entity or finding.key or finding.place))
        )

    @property
    def earlier_findings(self) -> tuple[Finding, ...]:
        """The findings of quotas that the branch changes, if they are neither new nor silenced."""
        changed, new = {key.entity for key in self.declared}, self.findings
        return tuple(
            finding
            for finding in (self.report.findings if self.report else ())
            if finding.silenced is None
            if finding.entity in changed and finding not in new
            if finding.key is None or Key(finding.entity, finding.key) in self.declared
        )

    @property
    def has_new_later(self) -> bool:
        """Whether a quota gets a value later that the merge base does not declare now."""
        return not all(change.is_restored for change in self.later_changes)

    def exit_code(self, *, fail_on_guards: bool = True) -> int:
        """Return the exit code: 0 if nothing is wrong."""
        if self.error is not None:
            return self.error.exit_code
        if self.unjudged:
            return CannotJudge.exit_code
        needs_approval = bool(self.guards) or self.is_removed
        return Refused.exit_code if needs_approval and fail_on_guards else 0


class Review(Struct, frozen=True):
    """What a branch changes on all clusters: the clusters with changed files, by name."""

    clusters: tuple[ClusterReview, ...]
    base: str
    """The commit of the merge base."""
    head: str | None = None
    """The commit that is shown as the head of the branch."""
    links: Links | None = None
    problems: tuple[Problem, ...] = ()
    """Problems outside the clusters' folders."""
    notes: tuple[str, ...] = ()
    """Sentences, in Markdown, on files that no run reads."""
    is_merged: bool = False
    """Whether the target branch has the head already."""

    def exit_code(self, *, fail_on_guards: bool = True) -> int:
        """Return the highest exit code of the clusters; 2 for a problem outside them."""
        codes = [cluster.exit_code(fail_on_guards=fail_on_guards) for cluster in self.clusters]
        return max([0, *codes, *([2] if self.problems else [])])
