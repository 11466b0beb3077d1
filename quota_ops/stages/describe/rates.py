"""Divide limits of the whole cluster by its brokers, before Git and the cluster are compared.

Only runs that declare such limits have its artifacts, declared.parquet and brokers.json.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby

from quota_ops.desired.expand.rates import divide_rates
from quota_ops.kafka.cluster import Cluster
from quota_ops.model.clusters.cluster_facts import KnownBrokers
from quota_ops.model.errors import InvalidDesiredState
from quota_ops.model.finding import InvalidFile, Problem
from quota_ops.model.plans.ledger_edits import VERIFIED
from quota_ops.model.plans.placement import Placement, UnknownBrokersError, list_topics
from quota_ops.model.plans.plan import Plan
from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.rows import DesiredRow, Key
from quota_ops.model.quotas.tables import DECLARED, DESIRED
from quota_ops.model.text import counted
from quota_ops.stages.describe.absent_brokers import add_absent_brokers, read_known_brokers
from quota_ops.store.ledger.ledger import Ledger
from quota_ops.store.places.parquet import to_rows
from quota_ops.store.places.snapshot import Snapshot
from quota_ops.store.run.files import BROKERS
from quota_ops.store.run.folder import RunFolder


def divide_declared(
    folder: RunFolder, cluster: Cluster | Snapshot, known: Ledger, files: str, *, skip_invalid: bool
) -> tuple[InvalidFile, ...]:
    """Write desired.parquet with the share of each broker, and brokers.json, if Git declares any.

    `files` is the path before the files in problems. With `skip_invalid`, files with a limit that
    cannot be divided are left out and returned, unless no other file is left.

    Raises InvalidDesiredState for a limit that cannot be divided, and the errors of the cluster;
    nothing is written then.
    """
    if not folder.has(DECLARED.file):
        return ()
    rows = tuple(folder.read_rows(DECLARED))
    topics = list_topics(row.topics for row in rows)
    if isinstance(cluster, Snapshot):
        placement = Placement(known.notes.brokers.ids, None)
    else:
        placement = read_placement(cluster, folder.policy(), known.notes.brokers, topics)
    before = read_divisors(known)
    undivided: tuple[InvalidFile, ...] = ()
    if skip_invalid and placement.leads is not None:
        undivided = _find_undivided(rows, placement, before)
        left_out = {file.file for file in undivided}
        rows = tuple(row for row in rows if row.file not in left_out) or rows
    divided = divide_rates(rows, placement, before, files)
    folder.write_json(BROKERS, placement.as_json())
    folder.write_table(DESIRED, divided)
    return undivided


def _find_undivided(
    rows: Iterable[DesiredRow], placement: Placement, before: Mapping[Key, int]
) -> tuple[InvalidFile, ...]:
    """Return the files with a limit that cannot be divided, each with every such problem."""
    try:
        divide_rates(rows, placement, before)
    except InvalidDesiredState as error:
        owners = {row.file: row.owner for row in rows}
        return tuple(
            _describe_undivided(file, owners[file], tuple(problems))
            for file, problems in groupby(error.problems, lambda problem: problem.file)
        )
    return ()


def _describe_undivided(file: str, owner: str | None, problems: Sequence[Problem]) -> InvalidFile:
    first, *others = problems
    lines = (f"line {problem.line}: {problem.message}" for problem in others)
    words = "; ".join([first.message, *lines])
    return InvalidFile(file, owner, first.line, f"{words} {first.remedy}", 0)


def read_placement(
    cluster: Cluster, policy: Policy, known: KnownBrokers, topics: Sequence[str]
) -> Placement:
    """Return the brokers that belong to a cluster now, and which of these topics each leads.

    A broker that is fenced or away belongs to it until it is unregistered or listed under
    `retired_brokers`. Raises ClusterTrouble.
    """
    metadata, registered = add_absent_brokers(None, cluster, policy, known)
    if registered is None:
        brokers = {broker.id for broker in cluster.brokers} | {
            broker.id for broker in metadata.missed
        }
    else:
        retired = {broker.id for broker in registered if broker.fenced} & {*policy.retired}
        brokers = {broker.id for broker in registered} - retired
    return Placement(tuple(sorted(brokers)), cluster.read_leads(topics, brokers))


def read_divisors(known: Ledger) -> Mapping[Key, int]:
    """Return by how many brokers each limit of the whole cluster was divided that runs verified."""
    rows = to_rows(known.table, "entity", "key", "state", "brokers")
    return {
        Key(entity, key): brokers
        for entity, key, state, brokers in rows
        if state == VERIFIED and brokers is not None
    }


def list_rates(folder: RunFolder, keys: Iterable[Key]) -> tuple[DesiredRow, ...]:
    """Return the rows of a run that are shares of a limit of the whole cluster."""
    if not folder.has(DECLARED.file):
        return ()
    wanted = frozenset(keys)
    return tuple(
        row for row in folder.read_rows(DESIRED) if row.brokers is not None and row.id in wanted
    )


def watch_brokers(
    folder: RunFolder, cluster: Cluster, plan: Plan
) -> Callable[[], Mapping[Key, str]]:
    """Return a function that returns the written rows whose divisor has changed, and why.

    It queries the cluster only if the plan writes shares of limits of the whole cluster.
    """
    rates = list_rates(folder, (row.id for row in plan.writes if row.target is not None))
    topics = list_topics(row.topics for row in rates)

    def find_moved() -> Mapping[Key, str]:
        if not rates:
            return {}
        known = read_known_brokers(folder.records)
        placement = read_placement(cluster, plan.policy, known, topics)
        found = ((row.id, _explain_move(row, placement)) for row in rates)
        return {key: why for key, why in found if why}

    return find_moved


def _explain_move(row: DesiredRow, placement: Placement) -> str:
    """Return why a share differs from the one in the plan; empty if it does not."""
    try:
        now = len(placement.find_sharing(row.topics))
    except UnknownBrokersError as error:
        return str(error)
    if now == row.brokers:
        return ""
    return f"{counted(now, 'broker')} share the limit now, and {row.brokers} did in the plan"
