"""The command `holds`: list the holds."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from quota_ops.cli import options
from quota_ops.cli.console import show_result, warn_empty

if TYPE_CHECKING:
    from quota_ops.cli.session import Session


@options.command("""
  quota-ops holds demo
  quota-ops holds demo --all --format json""")
@click.option("--all", "everything", is_flag=True, help="Include ended holds and releases.")
@options.on_cluster()
@options.table_format
def holds(*, session: "Session", everything: bool, output: str) -> None:
    """List the holds: until when, by whom and why."""
    from quota_ops.model.plans.hold import select_current_holds
    from quota_ops.report.screens.holds import holds_screen
    from quota_ops.store.ledger.holds import read

    now = datetime.now(UTC).replace(microsecond=0)
    kept = read(session.records.holds)
    if not kept:
        warn_empty(session.store)
    listed = kept if everything else select_current_holds(kept, now)
    found = [hold.as_json() for hold in listed]
    show_result(
        output,
        text=lambda: holds_screen(listed, now),
        json=lambda: {"holds": found},
        rows=lambda: found,
    )
