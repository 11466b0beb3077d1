"""The command `history`: what happened to the quotas of a cluster."""

import click

from quota_ops.cli import options, period


@click.command(
    epilog="""\b
Examples:
  quota-ops history demo                           each day, and the quotas that drift most
  quota-ops history demo --since 90d
  quota-ops history demo --entity user=alice       what happened to it, when, by whom
  quota-ops history demo --format json | jq '.quotas[] | select(.drifted_since)'"""
)
@options.cluster_argument
@click.option(
    "--entity", metavar="ENTITY", help="One entity, as plans show it: user=alice, user=<default>."
)
@period.since
@options.run_store
@options.output_format
def history(
    *, cluster: str, entity: str | None, since: str, run_store: str | None, output: str
) -> None:
    """Show what happened to quotas over time, when and by whom.

    Reads only the run store. Days are in UTC. A quota has drifted from the first run that finds it
    changed outside Git until a run finds it in sync; a drift that ends before any run sees it is
    unknown. stderr names each run that has not recorded its end. If a file of the history cannot be
    read, the result does not count it, stderr names it, and the exit code is 2.
    """
    import json
    from functools import cache

    from quota_ops.cli.console import TEXT, refuse_incomplete, show_screen
    from quota_ops.model.errors import InvalidInput
    from quota_ops.report.history import cluster_screen, entity_screen, list_events, list_json
    from quota_ops.sql.history import read_events, read_history
    from quota_ops.store.history import read_day
    from quota_ops.store.run_marks import find_unrecorded_runs
    from quota_ops.store.run_store import find_run_store

    store, named = find_run_store(run_store), entity and _find_name(entity)
    read = cache(read_day)  # the events of an entity are in the same days
    unrecorded = [one.name for one in find_unrecorded_runs(store.runs_of(cluster))]
    for run in unrecorded if output == TEXT else ():
        click.echo(
            f"run {run} has not recorded its end: it is running or was killed, and the history "
            f"may lack what it wrote. See quota-ops show {cluster}/{run}",
            err=True,
        )
    found = read_history(store, cluster, [named] if named else [], read)
    if not found.days:
        raise InvalidInput(
            f"the run store {store.root} has no history of a cluster {cluster!r}",
            "quota-ops runs lists the runs and their clusters. Runs before the first version with "
            "a history are not in it.",
        )
    first = period.parse_since(since)
    quotas = [one for one in found.quotas if named in {None, one.entity}]
    troubles = found.troubles
    if named is None:
        days = [one for one in found.days if one.date >= first]
        quotas = [one for one in quotas if (one.last_seen or "") >= first or one.drifted_since]
        quotas = [one for one in quotas if one.drifts]
        owners = [one for one in found.owners if one.date >= first]
        values = {"days": list_json(days), "owners": list_json(owners)}
        screen = cluster_screen(days, quotas)
    else:
        happened = read_events(store, cluster, first, named, read)
        troubles = tuple(dict.fromkeys((*troubles, *happened.troubles)))
        events = list_events(happened.drifts, happened.rows)
        values = {"events": list_json(events)}
        screen = entity_screen(named, first, quotas, events)
    if output == TEXT:
        show_screen(screen)
    else:
        head = {"cluster": cluster, "since": first, "quotas": list_json(quotas)}
        shown = {**head, **values, "unrecorded": unrecorded, "not_counted": list(troubles)}
        click.echo(json.dumps(shown, ensure_ascii=False, indent=1))
    refuse_incomplete(troubles, output)


def _find_name(text: str) -> str:
    """Return the text of an entity, whose parts may be in any order."""
    from quota_ops.model.entity import Entity
    from quota_ops.model.errors import InvalidInput

    for one in (text, ",".join(sorted(text.split(",")))):
        try:
            return Entity.parse(one).text
        except ValueError:
            continue
    raise InvalidInput(
        f"--entity {text} is not an entity",
        "Write it as plans show it, for example user=alice or 'client-id=app,user=<default>'.",
    )
