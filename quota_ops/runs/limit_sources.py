"""The sources of limits: their line in Git, the ledger, and who set them."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from quota_ops.desired.expand.rates import divide_rates
from quota_ops.desired.read import read_cluster
from quota_ops.model.commit import short
from quota_ops.model.errors import InvalidInput
from quota_ops.model.plans.ledger_edits import VERIFIED, find_managed
from quota_ops.model.plans.placement import Placement, list_topics
from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.quota import format_limit, same
from quota_ops.model.quotas.rows import DesiredRow, Key, LedgerRow
from quota_ops.model.runs.run import Origin
from quota_ops.stages.plan.origins import search_origins
from quota_ops.stages.use.recorded import read_group_use
from quota_ops.store.ledger import ledger
from quota_ops.store.places.run_store import RunStore


def describe_sources(
    folder: Path,
    policy: Policy,
    store: RunStore,
    applied: Mapping[Key, float],
    *,
    lost: Mapping[Key, str],
    placement: Callable[[Sequence[str]], Placement],
) -> dict[Key, str]:
    """Return a sentence on the source of each limit: Git, the ledger, and who set it.

    `applied` are the limits that someone asks about; `lost` is why some are not in force.

    A part that cannot be read is described as such, because the limits are known nevertheless.
    `placement` returns the brokers of the cluster and which of some topics each leads.
    """
    try:
        rows = read_cluster(folder, find_use=partial(read_group_use, store)).rows
        if any(row.needs_brokers for row in rows):
            rows = divide_rates(rows, placement(list_topics(row.topics for row in rows)))
        declared = {row.id: row for row in rows}
        in_git = {key: _describe_declared(declared.get(key), applied[key]) for key in applied}
    except InvalidInput:
        in_git = dict.fromkeys(applied, "the files in Git are invalid")
    in_git |= {key: f"{in_git[key]}; {words}" for key, words in lost.items() if key in in_git}
    try:
        records = store.of_cluster(policy.cluster_id)
        known, old_ledger = ledger.read_with_doubt(records)
        written = find_managed(known.rows, applied)
    except InvalidInput:
        return {key: f"{words}; the ledger cannot be read" for key, words in in_git.items()}
    others = {key: value for key, value in applied.items() if not _is_of(written.get(key), value)}
    origins = search_origins(store, policy, others)
    copy = f"; but the run store has {old_ledger}" if old_ledger else ""
    return {
        key: f"{words}; {_describe_written(written.get(key), applied[key], origins.get(key))}{copy}"
        for key, words in in_git.items()
    }


def _describe_declared(row: DesiredRow | None, value: float) -> str:
    if row is None:
        return "not in Git"
    about = "; ".join(filter(None, (row.owner, row.derivation)))
    place = f"{row.file}:{row.line}" + (f" ({about})" if about else "")
    if same(row.value, value):
        return f"as {place} declares"
    return f"{place} declares {format_limit(row.key, row.value)}"


def _is_of(row: LedgerRow | None, value: float) -> bool:
    return row is not None and same(row.value, value)


def _describe_written(row: LedgerRow | None, value: float, origin: Origin | None) -> str:
    if row is not None and _is_of(row, value):
        at = f" at commit {short(row.commit)}" if row.commit else ""
        did = "recorded" if row.state == VERIFIED else "written, and not read back,"
        return f"managed, {did} by run {row.run}{at}"
    words = origin.words if origin else ""
    if row is not None:
        before = format_limit(row.key, row.value)
        return f"managed, and changed since run {row.run} set {before}: {words}"
    return f"not managed: {words}"
