"""The review of one cluster: the stages of a plan, limited to what a branch changes.

A branch changes a row if it declares a different value than its merge base, or if the plan of its
files writes other rows than the plan of the merge base would, for example because of cluster.yaml.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from msgspec.structs import replace

from quota_ops.findings.cluster_rules import check_cluster
from quota_ops.model.errors import (
    GuardsRefused,
    InvalidDesiredState,
    InvalidInput,
    NotAuthorized,
    QuotaOpsError,
    Refused,
)
from quota_ops.model.finding import Finding, FindingIdentity, Location
from quota_ops.model.moment import iso_utc
from quota_ops.model.plans.guard_rules import EarlierRuns
from quota_ops.model.plans.ledger_edits import VERIFIED
from quota_ops.model.plans.policy import Policy
from quota_ops.model.plans.scope import judge_scope
from quota_ops.model.quotas.difference import WRITES, Action, Difference, Kind
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.owners import OwnerChange, list_owner_changes
from quota_ops.model.quotas.quota import same
from quota_ops.model.quotas.rows import DesiredRow, Key, LedgerRow, StoredQuota
from quota_ops.model.quotas.snapshot import SnapshotHeader
from quota_ops.model.quotas.tables import ACTUAL, CLUSTERS, DESIRED, DIFFERENCES, HOLDS, LEDGER
from quota_ops.model.runs.report import Report
from quota_ops.model.runs.review import BaseFiles, ClusterReview, Unjudged, list_later_changes
from quota_ops.model.text import name_first
from quota_ops.report.markdown.parts import code
from quota_ops.report.outline.sentences import describe_late_limits
from quota_ops.runs.review_rates import divide_by_cluster, divide_offline, read_declared
from quota_ops.runs.run import Run, run_stage
from quota_ops.sql.client_effects import read_quotas
from quota_ops.stages.describe import describe_cluster, make_cluster_row
from quota_ops.stages.diff import find_differences
from quota_ops.stages.plan import plan_changes
from quota_ops.stages.plan.earlier_runs import read_earlier_runs
from quota_ops.stages.report.forms import read_run, write_forms
from quota_ops.store.places.run_store import RunStore
from quota_ops.store.places.snapshot import Snapshot
from quota_ops.store.run.files import CHECKED, DESCRIBED, FACTS, POLICY
from quota_ops.store.run.folder import RunFolder

CONNECTIONS = "QUOTA_OPS_REVIEW_CONNECTIONS"
"""The environment variable with the connections that a branch may name before it is merged."""
NOT_VALIDATED = (
    "Not validated by the broker: the Kafka user of this job is not authorized to alter quotas, "
    "which Kafka requires even for validate-only."
)
NO_LEDGER = "The run store has no ledger of this cluster, so whatever {declared} counts as managed."
NO_INVENTORY = "The inventory {} was not read, so how many clients the changes affect is not known."
NOT_APPLIED = (
    "The target branch has changed cluster.yaml since it was last applied ({}): the plan after the "
    "merge needs approval for that too (policy_changed)."
)
OWNERS_NOT_APPLIED = (
    "The target branch, not this change, has given quotas to another owner, and no run has applied "
    "that: {} A guard judges that too (foreign_owner)."
)
NOT_MERGED = (
    "The target branch has changed quotas since this branch began, and no run has applied that: "
    "{}. The limits of clients are judged as if a run had."
)
_MOST_NAMES = 3
FILES_ONLY = "The cluster was not queried: this compares the files with those of the merge base."


def review_cluster(run: Run, found: ClusterReview, *, files_only: bool) -> ClusterReview:
    """Complete the review of a cluster whose files a branch changes; its run's folder is new.

    An error never ends the review: it is in the result, with what is known nevertheless.
    """
    try:
        return _review_cluster(run, found, files_only=files_only)
    except InvalidDesiredState as invalid:
        return replace(found, problems=invalid.problems, unlisted=invalid.unlisted, error=invalid)


def _review_cluster(run: Run, found: ClusterReview, *, files_only: bool) -> ClusterReview:
    base = found.base
    try:
        run_stage(run, "check")
    except InvalidDesiredState:
        raise
    except QuotaOpsError as error:
        return _doubt(found, "the files could not be checked", error)
    rows = read_declared(run.folder)
    is_base_known = base is None or not base.invalid
    if base and is_base_known:
        before, after = (
            [(row.entity, row.key, row.owner, row.file, row.line) for row in declared.values()]
            for declared in (base.rows, rows)
        )
        found = replace(
            found,
            owner_changes=list_owner_changes(before, after),
            later_changes=list_later_changes(
                base, rows, {row.id: row for row in run.folder.read(CHECKED).coming}
            ),
        )
    policy = run.folder.policy()
    if base and base.policy and is_base_known:
        is_same_policy = policy == replace(base.policy, cluster=policy.cluster)
        is_same = is_same_policy and not _find_changed(rows, base.rows)
        if is_same and not (found.owner_changes or found.later_changes):
            return found
    if is_base_known or not files_only:
        found = _describe(run, found, files_only=files_only)
    if not (is_base_known or found.brokers):
        return found  # nothing to compare with
    try:
        return _compare(run, found)
    except QuotaOpsError as error:
        return _doubt(found, "the comparison failed", error)


def _doubt(found: ClusterReview, what: str, error: QuotaOpsError) -> ClusterReview:
    """Add the reason that an error gives for no verdict."""
    reason = Unjudged(what, error.message, error.remedy or "")
    return replace(found, unjudged=(*found.unjudged, reason))


def _describe(run: Run, found: ClusterReview, *, files_only: bool) -> ClusterReview:
    """Describe the cluster or, without it, the state that the merge base declares."""
    if not files_only:
        try:
            _check_connection(run.folder.policy(), found.base)
            run_stage(run, "describe")
        except InvalidDesiredState:  # a limit of the whole cluster cannot be divided
            raise
        except QuotaOpsError as error:
            found = _doubt(found, "the cluster was not queried", error)
        else:
            brokers = len(run.folder.read(DESCRIBED).brokers)
            return divide_by_cluster(run, replace(found, brokers=brokers))
    policy, base = run.folder.policy(), found.base
    if policy.inventory and "://" in policy.inventory:  # a bucket, which needs credentials too
        if base and base.policy:
            base = base._replace(policy=replace(base.policy, inventory=None))
            found = replace(found, base=base)
        note = NO_INVENTORY.format(policy.inventory)
        policy = replace(policy, inventory=None)
        run.folder.write(POLICY, policy)
        found = replace(found, policy=policy, notes=(*found.notes, note))
    found = divide_offline(run, found)
    base = found.base
    rows = base.rows.values() if base else ()
    stored = tuple(StoredQuota(Entity.parse(row.entity), row.key, row.value) for row in rows)
    files = Snapshot("the merge base", stored, SnapshotHeader(policy.cluster_id))
    nothing = RunStore(run.folder.place / "nothing").of_cluster(policy.cluster_id)
    with run.folder.stage("describe"):
        describe_cluster(run.folder, files, nothing)
    notes = (*found.notes, *([FILES_ONLY] if files_only else []))
    return replace(found, notes=notes, compared_with="merge base")


def _check_connection(policy: Policy, base: BaseFiles | None) -> None:
    """Raise InvalidInput for a connection that neither the merge base nor the job names.

    A branch must not choose what the credentials of a job are used on.
    """
    named = base.policy.connection if base and base.policy else None
    if policy.connection == named or policy.connection in os.environ.get(CONNECTIONS, "").split():
        return
    raise InvalidInput(
        f"{policy.cluster} was not queried: this branch names the connection {policy.connection}, "
        + (f"and the merge base {named}" if named else "and the merge base has no such cluster"),
        f"Whoever runs this job may allow it: {CONNECTIONS}={policy.connection}. Separate several "
        "names with spaces.",
    )


def _compare(run: Run, found: ClusterReview) -> ClusterReview:
    folder, base, queried = run.folder, found.base, found.compared_with == "current"
    notes, unjudged = [*found.notes], [*found.unjudged]
    rows = {row.id: row for row in folder.read_rows(DESIRED)}
    is_base_known = base is None or not base.invalid
    declared = (base.rows if base else {}) if is_base_known else rows
    if queried and declared:
        unjudged += _find_lost_ledger(run)
    if folder.read(DESCRIBED).ledger is None:
        _count_as_managed(folder, declared)
        if queried and declared:
            what = "the merge base declares" if is_base_known else "these files declare"
            notes.append(NO_LEDGER.format(declared=what))
    with folder.stage("diff"):
        find_differences(folder, run.engine)
        changed = _find_changed(rows, base.rows if base else {})
        of_base = _diff_base(run, base) if is_base_known else ()
        before = _find_writes(of_base)
        own = _list_own(folder.differences(), changed, before, everything=not is_base_known)
        changed_since = _find_merged(found) - own if queried else set()
        merged = tuple(_list_merged(folder, found, changed_since))
        left = (row for row in _limit_writes(folder, own) if row.id not in changed_since)
        others = (*left, *merged)
    if unwritten := [row for row in merged if not same(row.before, row.target)]:
        names = name_first((f"{row.entity} {row.key}" for row in unwritten), _MOST_NAMES, code)
        notes.append(NOT_MERGED.format(names))
    known = read_earlier_runs(folder)
    unapplied = tuple(_list_unapplied_owners(known, found))
    notes += _note_unapplied(known, found, unapplied)
    with suppress(GuardsRefused), folder.stage("plan"):  # the plan lists them
        plan_changes(folder, earlier=_add_policies(known, found, unapplied), others=others)
    error = None
    if queried:
        try:
            run_stage(run, "validate")
        except NotAuthorized:
            notes.append(NOT_VALIDATED)
        except Refused as refused:
            error = refused
        except QuotaOpsError as failed:
            what = "the changes were not validated"
            unjudged.append(Unjudged(what, failed.message, failed.remedy or ""))
    report = read_run(folder)
    findings = tuple(_merge_findings(report.findings, rows, found))
    repository = found.repository or report.repository
    report = replace(report, findings=findings, repository=repository)
    write_forms(folder, report)
    return replace(
        found,
        own=own,
        declared=own & rows.keys(),
        known_findings=frozenset(_find_known_findings(folder, found, of_base)),
        notes=tuple(notes),
        unjudged=(*unjudged, *_list_partial(report, queried=queried)),
        error=error,
        report=report,
    )


def _find_known_findings(
    folder: RunFolder, found: ClusterReview, of_base: Iterable[Difference]
) -> Iterator[FindingIdentity]:
    """Yield the findings that the merge base or the target has, in its files or on the cluster."""
    gone = {row.id: None for row in of_base if row.action in {Action.CLEAR, Action.FORGET}}
    stored = read_quotas(folder, gone)
    for files in filter(None, (found.base, found.target)):
        others = {key: value for key, value in stored.items() if key not in files.rows}
        facts = folder.find(FACTS)
        declared = {key: row.value for key, row in files.rows.items()}
        on_cluster = check_cluster(declared, others, facts, files.policy)
        yield from (finding.identity for finding in (*files.findings, *on_cluster))


def _merge_findings(
    findings: Iterable[Finding], rows: Mapping[Key, DesiredRow], found: ClusterReview
) -> Iterator[Finding]:
    """Yield the findings of a branch as they are once it is merged with its target.

    One that only the merged files have is at the row of the branch, if this declares the row.
    """
    if not (found.head and found.merged) or found.head.invalid or found.merged.invalid:
        yield from findings
        return
    alone, merged = (
        {finding.identity for finding in files.findings} for files in (found.head, found.merged)
    )
    yield from (finding for finding in findings if finding.identity not in alone - merged)
    for finding in found.merged.findings:
        if finding.identity not in alone:
            row = rows.get(Key(finding.entity or "", finding.key or ""))
            place = Location(row.file, row.line) if row else None
            yield finding._replace(message=f"After the merge: {finding.message}", place=place)


def _add_policies(
    known: EarlierRuns, found: ClusterReview, unapplied: tuple[OwnerChange, ...]
) -> EarlierRuns:
    """Return what a plan compares with, and the policies that the branch may not loosen.

    A plan uses the last applied policy. A review uses those of the merge base and of the target
    branch too, which are applied after the merge at the latest.
    """
    base, target = (files and files.policy for files in (found.base, found.target))
    others = tuple(policy for policy in (known.policy, target) if policy is not None)
    return replace(
        known,
        policy=base or known.policy,
        commits=(),
        overtaken_by=None,
        lacks=None,
        owner_changes=(*found.owner_changes, *unapplied),
        others=others,
    )


def _list_unapplied_owners(known: EarlierRuns, found: ClusterReview) -> Iterator[OwnerChange]:
    """Yield the owner changes that the target branch has made, and no run has applied.

    The guards of the plan after the merge compare owners with the ledger, so they block it, too.
    """
    own = {entity for change in found.owner_changes for entity in change.entities}
    for change in known.owner_changes:
        if left := tuple(entity for entity in change.entities if entity not in own):
            yield change._replace(entities=left)


def _note_unapplied(
    known: EarlierRuns, found: ClusterReview, owners: Iterable[OwnerChange]
) -> Iterator[str]:
    """Yield a note for what the target branch has changed, but no run has applied: see guards."""
    yield from (OWNERS_NOT_APPLIED.format(change.text) for change in owners)
    applied, base = known.policy, found.base
    if applied and base and base.policy:
        before, now = (policy.decisive_fields() for policy in (applied, base.policy))
        if changed := sorted(name for name in now if now[name] != before[name]):
            yield NOT_APPLIED.format(", ".join(changed))


def _list_partial(report: Report, *, queried: bool) -> Iterator[Unjudged]:
    """Yield what the plan of a review lacks to be judged."""
    if report.clients and report.clients.trouble:
        yield Unjudged("the inventory was not read", report.clients.trouble)
    if queried and (late := describe_late_limits(report.facts)):
        yield Unjudged("brokers sent their settings too late", late, "Run the review again.")


def _find_lost_ledger(run: Run) -> Iterator[Unjudged]:
    """Yield why the last applied policy and values are not known: as by a lost or wrong store."""
    what, described = "the ledger was not read", run.folder.read(DESCRIBED)
    if described.old_ledger is not None:
        why = f"the run store has {described.old_ledger}"
        yield Unjudged(what, why, f"Restore the ledger: {run.folder.records.ledger}")
    elif described.ledger is None and not (root := run.folder.store.root).entries():
        why = f"the run store {root} is empty or does not exist"
        yield Unjudged(what, why, "Correct --run-store or QUOTA_OPS_RUN_STORE, or apply once.")


def _find_changed(rows: Mapping[Key, DesiredRow], base: Mapping[Key, DesiredRow]) -> set[Key]:
    """Return the rows that one side alone declares, or both differently."""
    sides = ({key: row.declared for key, row in side.items()} for side in (rows, base))
    return {key for key, _ in next(sides).items() ^ next(sides).items()}


def _count_as_managed(folder: RunFolder, declared: Mapping[Key, DesiredRow]) -> None:
    """Replace a missing ledger: what is declared counts as written with the value stored now."""
    at, ledger = iso_utc(), []
    for row in folder.read_rows(ACTUAL):
        if (known := declared.get(row.id)) is not None:
            place = row.cluster, row.entity, row.key, row.value
            ledger.append(
                LedgerRow(*place, VERIFIED, known.owner, known.file, None, "merge base", at)
            )
    folder.write_table(LEDGER, ledger)


def _diff_base(run: Run, base: BaseFiles | None) -> tuple[Difference, ...]:
    """Return the differences of the merge base's files from the same cluster and ledger."""
    folder, policy = run.folder, run.folder.policy()
    other = RunFolder(folder.place / "merge-base", only_read=folder.store).with_cache()
    ledger, actual = folder.read_table(LEDGER), folder.read_rows(ACTUAL)
    base_policy = policy
    if base and base.policy:
        base_policy = replace(base.policy, cluster_id=policy.cluster_id)
    stored = (StoredQuota(Entity.parse(row.entity), row.key, row.value) for row in actual)
    rows = base.rows.values() if base else ()
    other.write_table(DESIRED, [row._replace(cluster=policy.cluster_id) for row in rows])
    other.write_table(ACTUAL, list(judge_scope(base_policy, stored)))
    other.write_arrow(LEDGER, ledger)
    other.write_arrow(HOLDS, folder.read_table(HOLDS))
    other.write_table(CLUSTERS, [make_cluster_row(base_policy, ledger)])
    find_differences(other, run.engine)
    return other.differences()


Writes = Mapping[Key, tuple[Action, float | None]]


def _find_writes(differences: Iterable[Difference]) -> Writes:
    return {row.id: (row.action, row.target) for row in differences if row.action in WRITES}


def _list_own(
    differences: Iterable[Difference], changed: set[Key], before: Writes, *, everything: bool
) -> frozenset[Key]:
    now = _find_writes(differences)
    if everything:
        return frozenset({*changed, *now})
    return frozenset({*changed, *(key for key, _ in now.items() ^ before.items())})


def _limit_writes(folder: RunFolder, own: frozenset[Key]) -> list[Difference]:
    """Keep the writes of own rows, and return the others, which the run then only reports."""
    differences = folder.differences()
    others = [row for row in differences if row.id not in own and row.action in WRITES]
    left = {row.id for row in others}
    rows = [
        row._replace(action=Action.REPORT, batch=None) if row.id in left else row
        for row in differences
    ]
    folder.write_table(DIFFERENCES, rows)
    return others


def _find_merged(found: ClusterReview) -> set[Key]:
    """Return the rows that the target branch has changed since the merge base."""
    base, target = found.base, found.target
    if base is None or target is None or base.invalid or target.invalid:
        return set()
    return _find_changed(target.rows, base.rows)


def _list_merged(
    folder: RunFolder, found: ClusterReview, merged: Iterable[Key]
) -> Iterator[Difference]:
    """Yield the writes that bring merged rows of the target branch to the cluster."""
    stored = folder.read_values(ACTUAL)
    cluster_id = folder.policy().cluster_id
    for key in sorted(merged):
        before, wanted = stored.get(key), found.target and found.target.rows.get(key)
        after = wanted and wanted.value
        action = Action.CLEAR if after is None else Action.SET
        row = Difference(cluster_id, *key, Kind.PENDING, action, before=before, after=after)
        yield row._replace(owner=wanted and wanted.owner)
