"""The command `record`: keep what clients used on past days."""

from typing import TYPE_CHECKING

import click

from quota_ops.cli import options
from quota_ops.cli.console import show_result

if TYPE_CHECKING:
    from quota_ops.cli.session import Session


@options.command("""
  quota-ops record demo                      the last 30 days, as far as they are missing
  quota-ops record demo --day 2026-11-25     one day, again""")
@options.days(30, "How many days to look back for days that are missing.")
@click.option(
    "--day", metavar="DATE", help="Record only this day (UTC) again, unless more of it is stored."
)
@options.on_cluster()
@options.table_format
@options.refuse_idle("--days", "Pass either of them.", beside=("--day",))
def record(*, session: "Session", days: int, day: str | None, output: str) -> None:
    """Store what clients used on past days in the run store.

    Reads the Prometheus under `usage` in cluster.yaml, and stores a table for each complete day
    (UTC) that has none, or a damaged one: for how long each client used how much, on each broker.
    Run it daily, because most servers delete samples after some weeks. A day that cannot be read
    stays missing until a later run reads it, and is not counted as a day without use.
    """
    from datetime import UTC, datetime

    from quota_ops.model.errors import InvalidInput
    from quota_ops.model.usage.digest import DigestedDay
    from quota_ops.report.screens.usage import digests_screen
    from quota_ops.runs.digests import record_days, require_newest
    from quota_ops.store.history.digests import list_past_days
    from quota_ops.usage.source import find_source

    policy, store = session.policy, session.store
    past = list_past_days(datetime.now(UTC), options.MOST_DAYS)
    if day and day not in past:
        raise InvalidInput(
            f"--day {day} is not one of the last {options.MOST_DAYS} complete days",
            f"The newest complete day is {past[-1]} (UTC).",
        )
    store.prepare()
    found = record_days(store, policy, find_source(policy), day or days)
    rows = [day._asdict() for day in found]
    show_result(
        output,
        text=lambda: digests_screen(policy.cluster, found),
        json=lambda: {"cluster": policy.cluster, "days": rows},
        rows=lambda: rows,
        columns=DigestedDay._fields,
    )
    require_newest(policy.cluster, found, day or past[-1])
