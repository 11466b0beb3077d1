"""The command `hold`: pause changes to some entities."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from quota_ops.cli import options
from quota_ops.cli.console import show_result, warn_of_writes
from quota_ops.model.errors import InvalidInput, Refused

if TYPE_CHECKING:
    from quota_ops.cli.session import Session
    from quota_ops.model.quotas.filter import EntityFilter, EntityGroup
    from quota_ops.report.outline.layout import Screen


@options.command("""
  quota-ops hold demo --names user=alice --until 2h --reason 'a load test'
  quota-ops hold demo --defaults user --until 2026-11-21T07:00+01:00 --reason INC-31
  quota-ops hold demo --run 866f --until 12h --reason 'INC-31, rolled back'
  quota-ops hold demo --any client-id --until '2026-11-23 08:00 Europe/Berlin' --reason INC-31""")
@options.entities
@options.group
@click.option(
    "--until",
    required=True,
    metavar="TIME",
    help="A duration (30m, 2h, 1d12h), or a time with its zone.",
)
@options.reason("Why; every report shows it.", required=True)
@options.by
@options.on_cluster()
@options.output_format
def hold(
    *,
    session: "Session",
    flags: options.EntityFlags,
    group: dict[str, str | None],
    until: str,
    reason: str,
    by: str,
    output: str,
) -> None:
    """Pause changes to some entities until a given time.

    Changes neither Git nor the cluster: the hold is kept in the run store. Plans and reports show
    what is held, and until when. Names select exactly one entity with all its keys. --owner, --file
    and --run select the entities that belong to it now. To change the time, hold the same entities
    again.
    """
    from quota_ops.cli import records
    from quota_ops.model.moment import parse_until
    from quota_ops.model.plans.approval import find_login
    from quota_ops.model.plans.hold import Hold, select_current_holds
    from quota_ops.model.quotas.specification import parse_exactly
    from quota_ops.report.outline.sentences import describe_clock_lead
    from quota_ops.report.screens.holds import hold_screen
    from quota_ops.store.ledger.holds import add, read
    from quota_ops.store.places.place import measure_lead

    if options.selects_group(flags, group):
        who: EntityFilter | EntityGroup = records.find_group(session, group, is_release=False)
    else:
        who = parse_exactly(*flags)
    now = datetime.now(UTC).replace(microsecond=0)
    try:
        made = Hold(who, parse_until(until, now), by, reason, now, find_login())
    except ValueError as error:
        raise InvalidInput(f"--until {error}") from None
    session.store.prepare()
    lead = measure_lead(add(session.records.holds, made))

    def list_holds() -> "Screen":
        known = (records.is_declared, records.is_managed, records.was_stored)
        is_known = any(is_one(session, who) for is_one in known)
        try:
            recorded = read(session.records.holds)
        except InvalidInput as error:
            raise Refused(
                f"the hold was recorded, but the current holds cannot be listed: {error.message}",
                error.remedy,
            ) from None
        others = select_current_holds([hold for hold in recorded if hold != made], now)
        replaced = next((hold for hold in others if hold.who == who), None)
        lasting = select_current_holds(recorded, now)
        return hold_screen(session.policy, made, lasting, replaced, is_known=is_known)

    show_result(output, text=list_holds, json=made.as_json)
    if lead:
        click.echo(describe_clock_lead(lead), err=True)
    warn_of_writes(records.find_writes(session, who.accepts))
