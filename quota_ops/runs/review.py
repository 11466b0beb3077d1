"""The review of one cluster: the stages of a plan, limited to what a branch changes.

A branch changes a row if it declares another value than its merge base, or if the plan of its files
writes other rows than the plan of the merge base would, for example because of cluster.yaml.
"""

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from quota_ops.model.difference import WRITES, Action, Difference
from quota_ops.model.entity import Entity
from quota_ops.model.errors import (
    GuardsRefused,
    InvalidDesiredState,
    InvalidInput,
    NotAuthorized,
    QuotaOpsError,
)
from quota_ops.model.guard_rules import EarlierRuns
from quota_ops.model.ledger_edits import VERIFIED
from quota_ops.model.moment import iso_utc
from quota_ops.model.owners import list_owner_changes
from quota_ops.model.policy import Policy
from quota_ops.model.review import BaseFiles, ClusterReview
from quota_ops.model.rows import DesiredRow, Key, LedgerRow, StoredQuota
from quota_ops.model.snapshot import SnapshotHeader
from quota_ops.model.tables import ACTUAL, BATCHES, CLUSTERS, DESIRED, DIFFERENCES, HOLDS, LEDGER
from quota_ops.runs.run import Run, run_stage
from quota_ops.stages.describe import describe_cluster, judge_scope, make_cluster_row
from quota_ops.stages.diff import find_differences
from quota_ops.stages.plan import plan_changes
from quota_ops.stages.report import read_run, write_forms
from quota_ops.store.run_folder import DESCRIBED, POLICY, RunFolder
from quota_ops.store.snapshot import Snapshot

CONNECTIONS = "QUOTA_OPS_REVIEW_CONNECTIONS"
"""The environment variable with the connections that a branch may name before it is merged."""
NOT_VALIDATED = (
    "Not validated by the broker: the Kafka user of this job is not authorized to alter quotas, "
    "which Kafka requires even for validate-only."
)
NO_LEDGER = "The run store has no ledger of this cluster, so whatever {declared} counts as managed."
FILES_ONLY = "The cluster was not queried: this compares the files with those of the merge base."


def review_cluster(run: Run, found: ClusterReview, *, files_only: bool) -> ClusterReview:
    """Complete the review of a cluster whose files a branch changes; its run's folder is new.

    An error never ends the review: it is in the result, with what is known nevertheless.
    """
    base, is_base_known = found.base, found.invalid_base is None
    try:
        run_stage(run, "check")
    except InvalidDesiredState as invalid:
        return replace(found, problems=invalid.problems, unlisted=invalid.unlisted, error=invalid)
    except QuotaOpsError as error:
        return replace(found, error=error)
    rows = {row.id: row for row in run.folder.read_rows(DESIRED)}
    if base:
        before, after = (
            [(row.entity, row.key, row.owner) for row in declared.values()]
            for declared in (base.rows, rows)
        )
        found = replace(found, owner_changes=list_owner_changes(before, after))
    policy = run.folder.policy()
    is_same_policy = base and policy == replace(base.policy, cluster=policy.cluster)
    if base and is_same_policy and values_of(rows) == values_of(base.rows):
        return found
    found = _describe(run, found, files_only=files_only)
    if found.error is not None and not is_base_known:
        return found
    try:
        return _compare(run, found, rows)
    except QuotaOpsError as error:
        return replace(found, error=found.error or error)


def values_of(rows: Mapping[Key, DesiredRow]) -> dict[Key, float]:
    """Return the values of declared rows."""
    return {key: row.value for key, row in rows.items()}


def _describe(run: Run, found: ClusterReview, *, files_only: bool) -> ClusterReview:
    """Describe the cluster or, without it, the state that the merge base declares."""
    is_base_known = found.invalid_base is None
    if not files_only:
        try:
            if is_base_known:
                _check_connection(run.folder.policy(), found.base)
            run_stage(run, "describe")
        except QuotaOpsError as error:
            found = replace(found, error=error)
        else:
            brokers = len(run.folder.read_json(DESCRIBED)["brokers"])
            return replace(found, brokers=brokers)
    policy, base = run.folder.policy(), found.base
    if policy.inventory and "://" in policy.inventory:  # a bucket, which needs credentials too
        run.folder.write_json(POLICY, replace(policy, inventory=None).as_json())
        if base:
            base = base._replace(policy=replace(base.policy, inventory=None))
            found = replace(found, base=base)
    rows = base.rows.values() if base else ()
    stored = tuple(StoredQuota(Entity.parse(row.entity), row.key, row.value) for row in rows)
    files = Snapshot("the merge base", stored, SnapshotHeader(policy.cluster_id))
    nothing = run.folder.place / "no-ledger"
    with run.folder.stage("describe"):
        describe_cluster(run.folder, files, nothing, nothing)
    notes = (*found.notes, *([FILES_ONLY] if files_only else []))
    return replace(found, notes=notes, compared_with="merge base")


def _check_connection(policy: Policy, base: BaseFiles | None) -> None:
    """Raise InvalidInput for a connection that neither the merge base nor the job names.

    A branch must not choose what the credentials of a job are used on.
    """
    named = base.policy.connection if base else None
    if policy.connection == named or policy.connection in os.environ.get(CONNECTIONS, "").split():
        return
    raise InvalidInput(
        f"{policy.cluster} was not queried: this branch names the connection {policy.connection}, "
        + (f"and the merge base {named}" if named else "and the merge base has no such cluster"),
        f"Whoever runs this job may allow it: {CONNECTIONS}={policy.connection}. Separate several "
        "names with spaces.",
    )


def _compare(run: Run, found: ClusterReview, rows: Mapping[Key, DesiredRow]) -> ClusterReview:
    folder, base, queried = run.folder, found.base, found.compared_with == "current"
    is_base_known = found.invalid_base is None
    declared = (base.rows if base else {}) if is_base_known else rows
    if folder.described()[0] is None:
        _count_as_managed(folder, declared)
        what = "the merge base declares" if is_base_known else "these files declare"
        if queried and declared:
            found = replace(found, notes=(*found.notes, NO_LEDGER.format(declared=what)))
    with folder.stage("diff"):
        find_differences([folder], run.engine)
        changed = _find_changed(rows, base.rows if base else {})
        before = _find_writes(_diff_base(run, base)) if is_base_known else {}
        own = _list_own(folder.differences(), changed, before, everything=not is_base_known)
        _limit_writes(folder, own)
    found = replace(found, own=own, declared=own & rows.keys())
    owners = Counter(row.owner for row in declared.values())
    policy = base.policy if base else None
    earlier = EarlierRuns(len(declared), owners, policy, commits=())
    with suppress(GuardsRefused), folder.stage("plan"):  # the plan lists them
        plan_changes(folder, run.approvals, earlier=earlier)
    if queried:
        found = _validate(run, found)
    report = read_run(folder)
    report = replace(report, repository=found.repository or report.repository)
    write_forms(folder, report)
    return replace(found, report=report)


def _validate(run: Run, found: ClusterReview) -> ClusterReview:
    try:
        run_stage(run, "validate")
    except NotAuthorized:
        return replace(found, notes=(*found.notes, NOT_VALIDATED))
    except QuotaOpsError as error:
        return replace(found, error=error)
    return found


def _find_changed(rows: Mapping[Key, DesiredRow], base: Mapping[Key, DesiredRow]) -> set[Key]:
    """Return the rows that one side alone declares, or both with different values."""
    return {key for key, _ in values_of(rows).items() ^ values_of(base).items()}


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
    other = RunFolder(folder.place / "merge-base", only_read=run.store).with_cache()
    ledger, actual = folder.read_table(LEDGER), folder.read_rows(ACTUAL)
    at = datetime.fromisoformat(folder.about()["started"])
    base_policy = replace(base.policy, cluster_id=policy.cluster_id) if base else policy
    stored = (StoredQuota(Entity.parse(row.entity), row.key, row.value) for row in actual)
    rows = base.rows.values() if base else ()
    other.write_table(DESIRED, [row._replace(cluster=policy.cluster_id) for row in rows])
    other.write_table(ACTUAL, list(judge_scope(base_policy, stored)))
    other.write_arrow(LEDGER, ledger)
    other.write_arrow(HOLDS, folder.read_table(HOLDS))
    other.write_table(CLUSTERS, [make_cluster_row(base_policy, ledger, at)])
    find_differences([other], run.engine)
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


def _limit_writes(folder: RunFolder, own: frozenset[Key]) -> None:
    """Keep the writes of own rows; all other differences of the run are only reported."""
    rows = [
        row if row.id in own or row.action not in WRITES else row._replace(action=Action.REPORT)
        for row in folder.differences()
    ]
    folder.write_table(DIFFERENCES, rows)
    folder.write_table(BATCHES, [row for row in folder.read_rows(BATCHES) if row.id in own])
