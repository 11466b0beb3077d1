"""The command `release`: end a hold, or remove rows from the ledger."""

from typing import TYPE_CHECKING, Any

import click

from quota_ops.cli import options
from quota_ops.cli.console import show_result, warn_of_writes
from quota_ops.model.errors import InvalidInput

if TYPE_CHECKING:
    from quota_ops.cli.adoption import AdoptionRun
    from quota_ops.cli.session import Session
    from quota_ops.model.quotas.filter import EntityFilter
    from quota_ops.model.quotas.rows import LedgerRow
    from quota_ops.report.outline.layout import Screen


@options.command("""
  quota-ops release demo --names user=alice
  quota-ops release demo --from-ledger --names user=alice --reason 'search owns it now'
  quota-ops release demo --from-ledger --all --reason 'another repository took over'""")
@options.refuse_idle("--commit", "Leave it out: a hold has no commit.", without=("--from-ledger",))
@click.option("--from-ledger", is_flag=True, help="Give up managed quotas instead of a hold.")
@options.entities
@options.group
@click.option("--all", "everything", is_flag=True, help="With --from-ledger: every quota in it.")
@options.reason("Why; it is recorded. Required with --from-ledger.")
@options.by
@options.commit
@options.on_cluster()
@options.output_format
def release(
    *,
    session: "Session",
    from_ledger: bool,
    flags: options.EntityFlags,
    group: dict[str, str | None],
    everything: bool,
    reason: str | None,
    by: str,
    commit: str | None,
    output: str,
) -> None:
    """End a hold early, or give up managed quotas.

    To end a hold, pass the options that it was made with; `holds` lists them. Sends nothing to the
    cluster: runs follow Git again, unless another hold or `protect` covers the entity. With
    --from-ledger the quotas become unmanaged: they are reported and left alone. The next reconcile
    manages what Git still declares.
    """
    from quota_ops.cli import records
    from quota_ops.cli.adoption import AdoptionRun, parse_wanted
    from quota_ops.desired.pauses import find_pause
    from quota_ops.model.plans.approval import find_login
    from quota_ops.model.plans.hold import select_current_holds
    from quota_ops.report.screens.holds import describe_released, release_screen
    from quota_ops.runs.adoption import Attribution
    from quota_ops.store.ledger import holds

    is_group = options.selects_group(flags, group)
    wanted = None if is_group else parse_wanted(flags, everything=everything)
    if from_ledger and reason is None:
        raise InvalidInput("--from-ledger needs a reason", "Add --reason TEXT: it is recorded.")
    if from_ledger:
        if is_group:
            raise InvalidInput("--from-ledger takes names", "Leave out --owner, --file and --run.")
        attribution = Attribution(by, reason or "", find_login())
        _release_rows(AdoptionRun.start(session, attribution, commit), wanted, output)
        return
    who = records.find_group(session, group, is_release=True) if is_group else wanted
    if who is None:
        raise InvalidInput("--all needs --from-ledger", "To end a hold, pass its options.")
    made = holds.release(session.records.holds, who, by=by, reason=reason or "")

    def show_effects() -> "Screen":
        lasting = select_current_holds(holds.read(session.records.holds), made.at)
        more = describe_released(
            session.policy,
            made.who,
            lasting,
            is_declared=records.is_declared(session, made.who),
            is_managed=records.is_managed(session, made.who),
            standstill=find_pause(session.policy, made.at),
        )
        return release_screen(session.policy, made, lasting, more)

    show_result(output, text=show_effects, json=made.as_json)


def _release_rows(run: "AdoptionRun", who: "EntityFilter | None", output: str) -> None:
    """Release the managed rows of these entities, and show what the next run does with each."""
    from quota_ops.cli import records
    from quota_ops.report.screens.adoption import format_released, released_screen
    from quota_ops.runs.adoption import release_quotas
    from quota_ops.store.run.files import RELEASED

    session = run.session
    writes = run.find_writes(who)
    with run.report_if_stopped(RELEASED):
        released = release_quotas(run.folder, session.records, who, run.attribution)
        git = records.compare_git(session, run.desired)
    rows = [(row, format_released(row, git)) for row in released]
    screen = released_screen(session.heading, rows)
    run.show_rows(screen, [_row(*row) for row in rows], output)
    warn_of_writes(writes)


def _row(row: "LedgerRow", fate: str) -> dict[str, Any]:
    from quota_ops.model.quotas.quota import json_number

    values = {"entity": row.entity, "key": row.key, "value": json_number(row.value)}
    return {**values, "state": row.state, "owner": row.owner, "next": fate}
