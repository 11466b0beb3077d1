"""The command `suggest`: limits that measured use suggests, as a patch of the YAML files."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from quota_ops.cli import options
from quota_ops.cli.console import refuse_incomplete, show_result

if TYPE_CHECKING:
    from quota_ops.cli.session import Session
    from quota_ops.desired.export.accept import Accepted
    from quota_ops.model.usage.suggestion import Suggestion


@options.command("""
  quota-ops suggest demo
  quota-ops suggest demo --days 14 --margin 50 --owner payments
  quota-ops suggest demo --format json | jq -r .patch | git apply""")
@options.days(14, "How many days of use count.")
@click.option(
    "--margin",
    type=click.FloatRange(0, 1000),
    default=20.0,
    show_default=True,
    metavar="PERCENT",
    help="How far a limit is above the p95 of the use.",
)
@click.option("--owner", metavar="TEXT", help="Only quotas of this owner in Git.")
@options.on_cluster()
@options.table_format
def suggest(
    *, session: "Session", days: int, margin: float, owner: str | None, output: str
) -> None:
    """Suggest limits by what clients used, as a patch of the YAML.

    Reads as `usage` does, and writes nothing: apply the patch with git apply, and open a pull
    request. A suggested limit is the p95 of the busiest client plus the margin, and at least the
    highest use that was seen. Nothing is suggested for clients that reached their limit, because
    such use does not show what they need, nor if less than 90 % of the time was seen.
    """
    from datetime import UTC, datetime, timedelta

    from quota_ops.model.usage.series import Time
    from quota_ops.model.usage.suggestion import Suggestion, suggest_limits
    from quota_ops.report.outline.layout import Tone, line
    from quota_ops.report.screens.usage import suggestions_screen
    from quota_ops.runs.usage import read_overview, require_known, select_owned
    from quota_ops.usage.source import find_source

    end = datetime.now(UTC).replace(microsecond=0)
    overview = read_overview(
        find_source(session.policy),
        session.policy,
        session.store,
        Time(end - timedelta(days=days), end),
        lambda _done, _all: None,
    )
    overview = overview._replace(quotas=select_owned(overview, owner))
    found = list(suggest_limits(overview, margin))
    changed = _edit(session.folder, found)
    left_out = [{**key._asdict(), "why": why} for key, why in changed.left_out]
    rows = [suggestion._asdict() for suggestion in found]
    show_result(
        output,
        text=lambda: (
            *suggestions_screen(overview, found),
            *(
                line(f"not in the patch: {key.entity} {key.key}: {why}", Tone.CHANGE)
                for key, why in changed.left_out
            ),
            changed.patch,
        ),
        json=lambda: {"suggestions": rows, "left_out": left_out, "patch": changed.patch},
        rows=lambda: rows,
        columns=Suggestion._fields,
    )
    refuse_incomplete(overview.not_counted, output)
    require_known(overview)


def _edit(folder: Path, found: "list[Suggestion]") -> "Accepted":
    """Return the patch that declares suggested limits where Git declares the present ones."""
    from quota_ops.desired.export.accept import NewLimit, accept_limits
    from quota_ops.model.quotas.rows import Key

    limits = [
        NewLimit(Key(each.entity, each.key), each.suggested, declared=each.limit)
        for each in found
        if each.suggested is not None
    ]
    return accept_limits(folder, limits, dry_run=True)
