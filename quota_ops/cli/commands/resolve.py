"""The command `resolve`: show which limit applies to a client, and why."""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quota_ops.cli import options
from quota_ops.cli.console import show_result
from quota_ops.model.errors import InvalidInput
from quota_ops.model.quotas.entity import CLIENT_ID, ENTITY_TYPES, IP, USER
from quota_ops.model.quotas.quota import CLIENT_KEYS, IP_KEYS

if TYPE_CHECKING:
    from quota_ops.cli.session import Session
    from quota_ops.model.quotas.rows import Key, StoredQuota
    from quota_ops.precedence.resolution import Limits, Resolution


@options.command("""
  quota-ops resolve demo --user alice --client-id app
  quota-ops resolve demo --user alice --client-id app --key producer_byte_rate --explain
  quota-ops resolve demo --names user=alice,client-id=app --format json
  quota-ops resolve demo --ip 10.20.0.7
  quota-ops resolve --actual snapshot.jsonl --user alice

\b
For the limits of each client of an inventory: quota-ops effects --all.""")
@options.refuse_idle(
    "--run-store",
    "Leave it out: quota-ops reads the snapshot, not the cluster.",
    beside=("--actual",),
)
@options.refuse_idle(
    "--run-store",
    "Leave it out: only text uses it, and the JSON of an address.",
    beside=("--format json",),
    unless=("--ip", "--names"),
)
@options.refuse_idle("--explain", "Leave it out: JSON has the levels.", beside=("--format json",))
@click.option(
    "--user",
    help="The principal's name, without `User:`.  "
    "[default: ANONYMOUS, a client without authentication]",
)
@click.option("--client-id", help="The client id.  [default: a client that sends none]")
@click.option("--ip", help="The address that the client connects from.")
@options.names
@click.option(
    "--key",
    metavar="KEY",
    type=click.Choice([*CLIENT_KEYS, *IP_KEYS]),
    help=f"Only this quota key: {', '.join([*CLIENT_KEYS, *IP_KEYS])}.",
)
@click.option("--explain", is_flag=True, help="Show every level that was searched, in order.")
@options.actual_or_cluster
@options.on_cluster(options.connection, required=False)
@options.output_format
def resolve(*, session: "Session", actual: Path | None, **typed: Any) -> None:
    """Show which limit applies to a client, and why.

    Shows the level of the limit, what it overrides and who shares it. Each key is looked up on
    its own, through the eight levels of users and client ids; the first level with a limit
    applies, even if a later one is lower. Read-only: the limits are those that one broker responds
    with, which may be of old metadata.
    """
    from quota_ops.precedence.resolution import Limits
    from quota_ops.report.outline.layout import Tone, line
    from quota_ops.report.outline.sentences import describe_callback, describe_metadata
    from quota_ops.report.screens.resolve import as_json, resolution_screen
    from quota_ops.store.places.snapshot import Snapshot

    names = _read_names(typed)
    keys = _choose_keys(names, typed["key"])
    with session.open_source(actual) as (source, _):
        if isinstance(source, Snapshot):
            source.require_all()
        facts = source.start_facts_query()
        stored, brokers = source.describe(), len(source.brokers)
        callback = describe_callback(facts())
        absent, sources, lost = None, {}, {}
        limits = Limits(stored)
        resolutions = [_resolve(limits, key, names) for key in keys]
        if not isinstance(source, Snapshot) and IP in names:
            lost = _find_lost(session, stored)
        if not isinstance(source, Snapshot) and typed["output"] == "text":
            from quota_ops.runs.limit_sources import describe_sources
            from quota_ops.stages.describe import absent_brokers
            from quota_ops.stages.describe.rates import read_placement

            known = absent_brokers.read_known_brokers(session.records)
            absent, _ = absent_brokers.add_absent_brokers(None, source, session.policy, known)
            brokers += len(absent.missed)
            placement = partial(read_placement, source, session.policy, known)
            sources = describe_sources(
                session.folder,
                session.policy,
                session.store,
                _find_applied(resolutions),
                lost=lost,
                placement=placement,
            )
    place = (session.cluster or str(actual)) if typed["explain"] else None
    show_result(
        typed["output"],
        text=lambda: (
            *resolution_screen(
                resolutions, brokers or None, callback=callback, explained_on=place, sources=sources
            ),
            *(line(text, Tone.CHANGE) for text in describe_metadata(absent)),
        ),
        json=lambda: as_json(resolutions, callback, lost),
    )


def _find_lost(session: "Session", stored: "Iterable[StoredQuota]") -> "dict[Key, str]":
    """Return why limits of addresses are not in force although they are stored."""
    from quota_ops.model.quotas.rows import Key
    from quota_ops.stages.describe.lost_limits import find_lost_limits

    policy, values = session.policy, {Key(row.entity.text, row.key): row.value for row in stored}
    lost = find_lost_limits(session.store, policy.cluster, policy.cluster_id, values)
    return {row.id: row.words for row in lost}


def _find_applied(resolutions: "Sequence[Resolution]") -> "dict[Key, float]":
    """Return the limits that apply, by the row that sets each."""
    from quota_ops.model.quotas.rows import Key

    return {
        Key(resolution.applied.entity.text, resolution.key): resolution.applied.value
        for resolution in resolutions
        if resolution.applied is not None and resolution.applied.value is not None
    }


def _read_names(typed: dict[str, Any]) -> dict[str, str]:
    """Return the names by type, from --user, --client-id, --ip and --names."""
    from quota_ops.model.quotas.specification import parse_names, require_carried, require_text
    from quota_ops.precedence.resolution import read_address

    names = {
        kind: typed[option]
        for kind, option in ((USER, "user"), (CLIENT_ID, "client_id"), (IP, "ip"))
        if typed[option] is not None
    }
    for kind, name in names.items():
        require_text(f"--{kind}", name)
        require_carried(f"--{kind}", name)
    for kind, name in parse_names(typed["names"]):
        if kind not in ENTITY_TYPES:
            raise InvalidInput(f"--names {kind}=: brokers limit by {', '.join(ENTITY_TYPES)}.")
        if name is None:
            raise InvalidInput(
                f"{kind}=<default> is not a client.",
                f"For its quota, run: quota-ops describe CLUSTER --names '{kind}=<default>'",
            )
        if names.setdefault(kind, name) != name:
            raise InvalidInput(f"{kind} is given as {names[kind]!r} and as {name!r}.")
    if names.get(USER) == "":
        raise InvalidInput("--user is empty.", "Leave it out for a client without authentication.")
    if IP in names:
        if (read := read_address(names[IP])) is None:
            remedy = "Write it in digits, without leading zeros, brackets or a zone."
            raise InvalidInput(f"--ip {names[IP]} is not an IP address.", remedy)
        names[IP] = read
    return names


def _choose_keys(names: dict[str, str], key: str | None) -> tuple[str, ...]:
    """Return the keys to resolve. Raises InvalidInput if a key needs a name that is missing."""
    by_client, by_address = not names.keys().isdisjoint((USER, CLIENT_ID)), IP in names
    if not names:
        raise InvalidInput(
            "resolve needs to know whose limit: --user, --client-id or --ip.",
            "See quota-ops resolve --help.",
        )
    if key in CLIENT_KEYS and not by_client:
        raise InvalidInput(f"{key} does not apply to IP addresses.", "Pass --user or --client-id.")
    if key in IP_KEYS and not by_address:
        raise InvalidInput(f"{key} applies only to IP addresses.", "Pass --ip.")
    keys = (CLIENT_KEYS if by_client else ()) + (IP_KEYS if by_address else ())
    return keys if key is None else (key,)


def _resolve(limits: "Limits", key: str, names: dict[str, str]) -> "Resolution":
    if key in IP_KEYS:
        return limits.resolve_address(key, ip=names[IP])
    return limits.resolve(key, user=names.get(USER), client_id=names.get(CLIENT_ID))
