"""The command `history`: what happened to the quotas of a cluster."""

from typing import TYPE_CHECKING

import click

from quota_ops.cli import options
from quota_ops.cli.console import refuse_incomplete, show_result
from quota_ops.model.text import command

if TYPE_CHECKING:
    from quota_ops.report.outline.layout import Screen
    from quota_ops.store.places.run_store import RunStore
    from quota_ops.store.run.names import NamedCluster

    _View = tuple[Screen, dict[str, list[dict[str, object]]], tuple[str, ...]]
    """A screen, its values for JSON, and why a part could not be read."""


@options.command("""
  quota-ops history demo                           each day, and the quotas that drift most
  quota-ops history demo --since 90d
  quota-ops history demo --entity user=alice       what happened to it, when, by whom
  quota-ops history demo --changes --since 7d      who changed what last week
  quota-ops history demo --changes --format jsonl  one JSON object a line, for an auditor
  quota-ops history demo --format json | jq '.quotas[] | select(.drifted_since)'""")
@options.cluster_argument
@click.option(
    "--entity", metavar="ENTITY", help="One entity, as plans show it: user=alice, user=<default>."
)
@click.option(
    "--changes",
    "only_changes",
    is_flag=True,
    help="List every change by a run, alter or rollback, and every adoption, release and hold.",
)
@options.since
@options.run_store
@options.table_format
def history(
    *,
    cluster: str,
    entity: str | None,
    only_changes: bool,
    since: str,
    run_store: str | None,
    output: str,
) -> None:
    """Show what happened to quotas over time, when and by whom.

    CLUSTER is its name or its cluster id. Reads only the run store. Days are in UTC. A quota has
    drifted from the first run that finds it changed outside Git until a run finds it in sync; a
    drift that ends before any run sees it is unknown. Runs that have not recorded their end are
    listed on stderr. If a file of the history cannot be read, it is not counted, stderr lists it,
    and the exit code is 2.
    """
    from quota_ops.store.places.run_store import find_run_store
    from quota_ops.store.run.listing import summarize_run
    from quota_ops.store.run.marks import find_unrecorded_runs
    from quota_ops.store.run.names import find_cluster

    store, named = find_run_store(run_store), entity and _find_name(entity)
    found = find_cluster(store, cluster)
    unrecorded = [run for run in find_unrecorded_runs(store.root) if found.has_run(run)]
    for run in unrecorded if output != "json" else ():
        name = f"{run.parent.name}/{run.name}"
        click.echo(
            f"run {run.name} ({summarize_run(run).status}) has not recorded its end, so the "
            f"history may lack what it wrote. See {command('show', name)}",
            err=True,
        )
    first = options.parse_since(since)
    read = _read_changes if only_changes else _read_past
    screen, values, troubles = read(store, found, first, named)
    table = "changes" if only_changes else "days" if named is None else "events"
    show_result(
        output,
        text=lambda: screen,
        json=lambda: {
            "cluster": found.names[0],
            "since": first,
            "unrecorded": [run.name for run in unrecorded],
            **values,
            "not_counted": list(troubles),
        },
        rows=lambda: ({"cluster": found.names[0], **row} for row in values[table]),
    )
    refuse_incomplete(troubles, output)


def _read_changes(
    store: "RunStore", cluster: "NamedCluster", since: str, entity: str | None
) -> "_View":
    """Return every change since a day, of one entity or all."""
    from quota_ops.report.outline.events import list_changes
    from quota_ops.report.screens.history import changes_screen, list_json
    from quota_ops.sql.history import read_events
    from quota_ops.store.ledger.holds import list_since
    from quota_ops.store.run.names import find_id

    happened = read_events(store, cluster, since, entity)
    cluster_id = find_id(store, cluster)
    holds = list_since(store, [cluster_id] if cluster_id else [], since)
    concerned = [hold for hold in holds if entity in {None, hold.who.text}]
    changes = list_changes(happened.rows, concerned)
    return changes_screen(since, changes), {"changes": list_json(changes)}, happened.troubles


def _read_past(
    store: "RunStore", cluster: "NamedCluster", since: str, entity: str | None
) -> "_View":
    """Return the days of a cluster and its quotas that drifted, or the history of an entity."""
    from functools import cache

    from quota_ops.model.errors import InvalidInput
    from quota_ops.report.outline.events import list_events
    from quota_ops.report.screens.history import cluster_screen, entity_screen, list_json
    from quota_ops.sql.history import read_events, read_history
    from quota_ops.store.history.history import read_day

    read = cache(read_day)  # the events of an entity are in the same days
    found = read_history(
        store, cluster, [entity] if entity else [], read, and_owners=entity is None
    )
    if not found.days:
        raise InvalidInput(
            f"the run store {store.root} has no history of a cluster {cluster.names[0]!r}",
            "quota-ops runs lists the runs and their clusters. Runs before the first version with "
            "a history are not in it.",
        )
    quotas = [quota for quota in found.quotas if entity in {None, quota.entity}]
    if entity is None:
        days = [day for day in found.days if day.date >= since]
        quotas = [
            quota for quota in quotas if (quota.last_seen or "") >= since or quota.drifted_since
        ]
        quotas = [quota for quota in quotas if quota.drifts]
        owners = [owner for owner in found.owners if owner.date >= since]
        values = {"quotas": list_json(quotas), "days": list_json(days), "owners": list_json(owners)}
        return cluster_screen(days, quotas), values, found.troubles
    happened = read_events(store, cluster, since, entity, read)
    events = list_events(happened.drifts, happened.rows)
    values = {"quotas": list_json(quotas), "events": list_json(events)}
    troubles = tuple(dict.fromkeys((*found.troubles, *happened.troubles)))
    return entity_screen(entity, since, quotas, events), values, troubles


def _find_name(text: str) -> str:
    """Return the text of an entity, whose parts may be in any order."""
    from quota_ops.model.errors import InvalidInput
    from quota_ops.model.quotas.entity import Entity

    for spelling in (text, ",".join(sorted(text.split(",")))):
        try:
            return Entity.parse(spelling).text
        except ValueError:
            continue
    raise InvalidInput(
        f"--entity {text} is not an entity",
        "Write it as plans show it, for example user=alice or 'client-id=app,user=<default>'.",
    )
