"""The command `rollback`: plan the rollback of an earlier run."""

from functools import partial
from pathlib import Path

import click

from quota_ops.cli import options
from quota_ops.cli.console import TEXT, warn_idle
from quota_ops.model.errors import GuardsRefused


@click.command(
    epilog="""\b
Examples:
  quota-ops rollback last --reason 'payments is throttled, INC-31'
  quota-ops rollback demo/7f3a --reason INC-31
  quota-ops rollback last --allow cut --reason INC-31"""
)
@click.argument("run")
@options.allow
@options.reason("Why you roll back, and override guards; it is recorded.")
@options.by
@options.connection
@options.run_store
@options.engine
@options.table_format
def rollback(
    *,
    run: str,
    allow: tuple[str, ...],
    reason: str | None,
    by: str,
    connection_file: Path | None,
    run_store: str | None,
    engine: str,
    output: str,
) -> None:
    """Plan the rollback of an earlier run.

    RUN is as for `show`; `last` is the last run that wrote. Writes nothing: shows the plan,
    and the command that writes it. Guards and the broker check it like any other plan. Rows that
    the run did not verify, or that have changed since, are left unchanged and listed. Needs no
    checkout: the policy is the one that was last applied.
    """
    from quota_ops.cli.run_end import record_run, show_run
    from quota_ops.kafka.connection import find_connection
    from quota_ops.model.plans.approval import Author, find_login
    from quota_ops.runs.chain import CHAINS, run_until_error
    from quota_ops.runs.rollback import start_rollback
    from quota_ops.runs.run import Run, connect_once
    from quota_ops.store.places.run_store import find_run_store, named_store, store_of
    from quota_ops.store.retention import refuse_pruned
    from quota_ops.store.run.names import find_run

    allowed = options.parse_allowed(allow, reason if allow else None, None)
    earlier = find_run(find_run_store(run_store), run, last_write=True)
    refuse_pruned(earlier)
    store = store_of(earlier.place, named_store(run_store))
    folder = start_rollback(store, earlier, by=by, reason=reason or "")
    author = Author(by, find_login())
    with connect_once(folder.policy, partial(find_connection, file=connection_file)) as connect:
        new = Run(folder, Path(), store, connect, engine=engine, allow=allowed, author=author)
        error = run_until_error(new, CHAINS["rollback"])
    shown = show_run("rollback", folder, output)
    record_run(folder, shown, None, writes=False)
    warn_idle(allowed, shown.plan.guards if shown.plan else None)
    if isinstance(error, GuardsRefused) and output == TEXT:
        raise click.exceptions.Exit(error.exit_code)  # the screen has just shown it
    if error is not None:
        raise error
