"""The command `adopt`: take over existing quotas."""

from typing import TYPE_CHECKING, Any

import click

from quota_ops.cli import options
from quota_ops.cli.console import warn_of_writes

if TYPE_CHECKING:
    from quota_ops.cli.session import Session
    from quota_ops.model.runs.adoption import Adoption


@options.command("""
  quota-ops adopt demo --all --reason 'the ledger was lost'
  quota-ops adopt demo --names user=alice --reason 'managed by us since OPS-7'
  quota-ops adopt demo --names user=alice --any client-id --reason 'managed by us since OPS-7'""")
@options.entities
@click.option("--all", "everything", is_flag=True, help="Every quota that Git declares.")
@options.reason("Why; it is recorded.", required=True)
@options.by
@options.commit
@options.on_cluster(options.connection)
@options.output_format
def adopt(
    *,
    session: "Session",
    flags: options.EntityFlags,
    everything: bool,
    reason: str,
    by: str,
    commit: str | None,
    output: str,
) -> None:
    """Take over quotas that already exist on the cluster.

    Adds them to the ledger with the values that the cluster stores, as if a run had written them.
    Nothing is sent to the cluster, and guard takeover no longer blocks their change. The next
    reconcile clears a quota that Git does not declare, so --all takes only what Git declares; pass
    the name of any other quota.
    """
    from quota_ops.cli import records
    from quota_ops.cli.adoption import AdoptionRun, parse_wanted
    from quota_ops.model.plans.approval import find_login
    from quota_ops.report.screens.adoption import adopted_screen, format_adopted
    from quota_ops.runs.adoption import Attribution, adopt_quotas
    from quota_ops.runs.run import connect_once
    from quota_ops.store.run.files import ADOPTED

    who = parse_wanted(flags, everything=everything)
    connection = session.find_connection()
    run = AdoptionRun.start(session, Attribution(by, reason, find_login()), commit)
    writes = run.find_writes(who)
    opening = connect_once(run.folder.policy, lambda _: connection)
    with run.report_if_stopped(ADOPTED), opening as connect:
        rows = adopt_quotas(
            run.folder,
            connect,
            session.records,
            run.desired,
            wanted=who,
            attribution=run.attribution,
        )
        git = records.compare_git(session, run.desired)
    fates = [format_adopted(row, git) for row in rows]
    screen = adopted_screen(session.heading, rows, fates)
    run.show_rows(screen, list(map(_row, rows, fates)), output)
    warn_of_writes(writes)


def _row(adoption: "Adoption", fate: str) -> dict[str, Any]:
    from quota_ops.model.quotas.quota import json_number

    return {
        "entity": adoption.entity,
        "key": adoption.key,
        "value": json_number(adoption.value),
        "adopted": adoption.adopted,
        "ours": adoption.adopted or adoption.was_managed,
        "git": adoption.declared and adoption.declared.value,
        "owner": adoption.declared and adoption.declared.owner,
        "next": fate,
    }
