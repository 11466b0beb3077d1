"""The command `rollback`: plan the rollback of an earlier run."""

from pathlib import Path

import click

from quota_ops.cli import options


@options.command("""
  quota-ops rollback last --reason 'payments is throttled, INC-31'
  quota-ops rollback demo/7f3a --reason INC-31
  quota-ops rollback last --allow cut --reason INC-31""")
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
    from quota_ops.cli.session import Session
    from quota_ops.cli.stage_options import StageOptions
    from quota_ops.cli.stage_run import Begun, finish
    from quota_ops.runs.chain import CHAINS
    from quota_ops.runs.rollback import start_rollback
    from quota_ops.store.places.run_store import find_run_store, named_store, store_of
    from quota_ops.store.retention import refuse_pruned
    from quota_ops.store.run.names import find_run

    typed = StageOptions(
        Session(None, Path(), run_store, connection_file),
        None,
        output,
        engine=engine,
        allow=allow,
        reason=reason if allow else None,
        by=by,
    )
    earlier = find_run(find_run_store(run_store), run, last_write=True)
    refuse_pruned(earlier)
    store = store_of(earlier.place, named_store(run_store))
    folder = start_rollback(store, earlier, by=by, reason=reason or "").with_cache()
    finish("rollback", Begun(folder, CHAINS["rollback"], typed))
