"""The command `prune`: remove old runs."""

import click

from quota_ops.cli import options
from quota_ops.cli.console import show_result


@options.command("""
  quota-ops prune --keep 90d --dry-run      what would be removed
  quota-ops prune --keep 90d""")
@click.option(
    "--keep",
    required=True,
    metavar="TIME",
    help="Keep every run that began within this time (90d) before the newest one; at least 1h.",
)
@click.option("--dry-run", is_flag=True, help="List what would be removed, and remove nothing.")
@options.run_store
@options.table_format
def prune(keep: str, run_store: str | None, output: str, *, dry_run: bool) -> None:
    """Remove old runs from the run store.

    Reads and writes only the run store. TIME counts back from the start of the newest run, not from
    now. If the three newest runs started more than TIME after the run before them, their clock may
    be ahead, and TIME counts back from that earlier run. Holds that ended before that time, and the
    recorded use of earlier days, are removed too. Always keeps approvals, other holds, the last
    verified run of each cluster, runs whose writes are not yet verified, plans that may wait for
    approval in Airflow (up to 30 days longer), the newest 100 files and claims of each ledger, and
    files that no run recorded. If a run wrote, failed, did not end, or had its plan approved or
    rejected, `runs` still lists it and how it ended, but its report and
    tables are gone, and it cannot be rolled back. A run that only compared or planned is removed
    entirely.
    """
    from datetime import UTC, datetime, timedelta

    from quota_ops.model.errors import InvalidInput
    from quota_ops.model.moment import iso_utc, parse_duration
    from quota_ops.report.screens.prune import describe_newest_run, expired_screen
    from quota_ops.store.places.run_store import find_run_store
    from quota_ops.store.retention import find_expired, find_newest_start, remove

    try:
        kept = parse_duration(keep)
    except ValueError as error:
        raise InvalidInput(f"--keep {error}") from None
    if kept < timedelta(hours=1):
        raise InvalidInput(
            f"--keep {keep} is less than an hour",
            "Use at least 1h: a younger run may still be working.",
        )
    now = datetime.now(UTC)
    store = find_run_store(run_store)
    newest = min(find_newest_start(store, kept) or now, now)
    before = newest - kept
    expired = find_expired(store, before)
    failures = () if dry_run else remove(expired, now)
    failed = [run for run, _ in failures]
    removed = tuple(run for run in expired if run not in failed)
    found = [
        {
            "what": run.what,
            "cluster": run.cluster,
            "path": str(run.place),
            "bytes": run.size,
            "unknown": list(map(str, run.unknown)),
        }
        for run in removed
    ]
    show_result(
        output,
        text=lambda: (
            ()
            if failed and not removed
            else expired_screen(str(store.root), removed, before=iso_utc(before), dry_run=dry_run)
        ),
        json=lambda: {"before": iso_utc(before), "removed": not dry_run, "expired": found},
        rows=lambda: found,
    )
    if now - newest > timedelta(days=1):
        click.echo(describe_newest_run(newest, now), err=True)
    if failures:
        why = "\n  ".join(f"{run.place}: {reason}" for run, reason in failures)
        raise InvalidInput(
            f"{len(failures)} of {len(expired)} could not be removed:\n  {why}",
            "The others were removed. Fix the cause, and prune again. On a full disk, delete some "
            "other file first: prune writes a small claim into each run.",
        )
