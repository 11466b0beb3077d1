"""The command `usage`: what clients use, beside their limits."""

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from quota_ops.cli import options
from quota_ops.cli.console import refuse_incomplete, show_result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from quota_ops.cli.session import Session

_NOW = ("--now", "--probe")
_ALONE = "Leave it out: --now looks at the last minute, and --probe at the last hour."


@options.command("""
  quota-ops usage demo
  quota-ops usage demo --owner payments --days 30
  quota-ops usage demo --near 80 --format json
  quota-ops usage demo --days 30 --recorded
  quota-ops usage demo --now
  quota-ops usage demo --probe""")
@options.days(7, "How many days to look back.")
@click.option("--owner", metavar="TEXT", help="Only quotas of this owner in Git.")
@click.option(
    "--near",
    type=click.FloatRange(0),
    metavar="PERCENT",
    help="Only quotas whose p95 is at least this share of the limit of that time, or that "
    "throttled a client below it.",
)
@click.option("--unused", is_flag=True, help="Only quotas that nobody used in the whole time.")
@click.option(
    "--recorded",
    is_flag=True,
    help="Only complete days that `record` stored, without a query to Prometheus.",
)
@click.option("--now", is_flag=True, help="List the clients that brokers throttle now.")
@click.option("--probe", is_flag=True, help="Check what Prometheus has, and why use is missing.")
@options.on_cluster()
@options.table_format
@options.refuse_idle("--days", _ALONE, beside=_NOW)
@options.refuse_idle("--owner", _ALONE, beside=_NOW)
@options.refuse_idle("--near", _ALONE, beside=_NOW)
@options.refuse_idle("--unused", _ALONE, beside=_NOW)
@options.refuse_idle("--recorded", _ALONE, beside=_NOW)
@options.refuse_idle("--format csv", "--probe is printed as text or json.", beside=("--probe",))
@options.refuse_idle("--format jsonl", "--probe is printed as text or json.", beside=("--probe",))
@options.refuse_idle("--now", "Pass either of them.", beside=("--probe",))
@options.refuse_idle(
    "--near", "A quota that nobody used has no share of its limit.", beside=("--unused",)
)
def usage(
    *,
    session: "Session",
    days: int,
    owner: str | None,
    near: float | None,
    unused: bool,
    recorded: bool,
    now: bool,
    probe: bool,
    output: str,
) -> None:
    """Show what clients use, beside their limits.

    Reads use from the Prometheus under `usage` in cluster.yaml, and past limits from the run store,
    so that each share is relative to the limit that applied then. Days that `record` stored are
    read from the run store. The cluster is not queried. Limits are per broker, so use is shown for
    the busiest broker, not added up. What was not scraped is unknown, not zero. p95 is the rate
    that was exceeded in 5 % of the scrapes.
    """
    from datetime import UTC, datetime, timedelta

    from quota_ops.model.usage.series import Time
    from quota_ops.report.screens.usage import (
        USAGE_COLUMNS,
        select_quotas,
        usage_json,
        usage_rows,
        usage_screen,
    )
    from quota_ops.runs.usage import read_overview, require_known, select_owned
    from quota_ops.usage.source import find_source

    end = datetime.now(UTC).replace(microsecond=0)
    if recorded:
        end = end.replace(hour=0, minute=0, second=0)
    if probe or now:
        (_show_probe if probe else _show_throttled)(session, end, output)
        return
    source = None if recorded else find_source(session.policy)
    with _show_reading(output) as progress:
        time = Time(end - timedelta(days=days), end)
        found = read_overview(source, session.policy, session.store, time, progress)
    shown = select_quotas(select_owned(found, owner), near=near, unused=unused)
    show_result(
        output,
        text=lambda: usage_screen(found, shown),
        json=lambda: usage_json(found, shown),
        rows=lambda: usage_rows(found, shown),
        columns=USAGE_COLUMNS,
    )
    refuse_incomplete(found.not_counted, output)
    require_known(found, is_list=near is not None or unused)


@contextmanager
def _show_reading(output: str) -> "Iterator[Callable[[int, int], None]]":
    """Show on a terminal how much was read; show nothing in a pipe."""
    if output != "text" or not sys.stderr.isatty():
        yield lambda _done, _all: None
        return
    with click.progressbar(length=1, label="reading", file=sys.stderr) as bar:

        def show(done: int, of: int) -> None:
            bar.length = of
            bar.update(done - bar.pos)

        yield show


def _show_throttled(session: "Session", at: "datetime", output: str) -> None:
    """Show the clients that are throttled, those that wait longest first."""
    from quota_ops.model.usage.throttling import ThrottledClient
    from quota_ops.report.screens.usage import throttled_screen
    from quota_ops.runs.past_quotas import read_past_quotas
    from quota_ops.stages.use.throttled import find_throttled
    from quota_ops.usage.source import find_source

    policy = session.policy
    past = read_past_quotas(session.store, policy.cluster, policy.cluster_id, at)
    brokers = past.facts.brokers if past.facts else ()
    found = find_throttled(find_source(policy), at, brokers, lambda: past)
    clients = [client._asdict() for client in found.clients]
    show_result(
        output,
        text=lambda: throttled_screen(found),
        json=lambda: {
            "cluster": policy.cluster,
            "at": found.at,
            "brokers_seen": found.seen,
            "registered_brokers": found.brokers,
            "other_brokers": found.others or (),
            "clients": clients,
        },
        rows=lambda: clients,
        columns=ThrottledClient._fields,
    )


def _show_probe(session: "Session", at: "datetime", output: str) -> None:
    """Show the metrics in Prometheus; raise UseUnknown after that if use cannot be told by them."""
    from quota_ops.model.errors import UseUnknown
    from quota_ops.report.screens.usage_probe import ProbeFacts, probe_json, probe_screen
    from quota_ops.runs.past_quotas import read_past_quotas
    from quota_ops.usage.probe import probe_usage
    from quota_ops.usage.source import find_source

    policy = session.policy
    past = read_past_quotas(session.store, policy.cluster, policy.cluster_id, at)
    facts = ProbeFacts(
        past.facts.brokers if past.facts else None,
        {key: len(limits) for key, limits in past.looks[-1].stored.items()} if past.looks else None,
        next(iter(past.facts.callback_classes), None) if past.facts else None,
    )
    found = probe_usage(find_source(policy), at)
    usage = policy.usage
    show_result(
        output,
        text=lambda: () if usage is None else probe_screen(policy.cluster, found, facts, usage),
        json=lambda: probe_json(policy.cluster, found, facts),
    )
    if not any(key.series > key.unnamed for key in found.keys):
        raise UseUnknown(
            f"the use of {policy.cluster} is unknown: Prometheus has no series of its clients",
            "The table shows why for each key.",
        )
    if lost := [key.key for key in found.keys if key.unnamed]:
        raise UseUnknown(
            f"some series of {', '.join(lost)} have no names of clients, so the use of "
            f"{policy.cluster} is known in part",
            "Below the table are the labels that one of them has.",
        )
