"""The command that plans to roll back what a run changed."""

from pathlib import Path

import click

from quota_ops.cli import options


@click.command(
    epilog="""\b
Examples:
  quota-ops rollback last --reason 'payments is throttled, INC-31'
  quota-ops rollback demo/7f3a --reason INC-31
  quota-ops rollback last --allow cut --reason INC-31"""
)
@click.argument("run")
@options.allow
@options.reason("Why the run is rolled back, and a guard may pass; it is recorded.")
@options.by
@options.connection
@options.run_store
@options.engine
@options.output_format
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
    """Plan to roll back what an earlier run changed.

    RUN is named as `show` takes it; `last` is the last run that wrote. Nothing is written: the
    plan is shown, and the command that writes it, as after `plan`. Guards and the broker judge it
    as any other plan. What that run wrote but did not read back, and what moved since, is left as
    it is and named. No checkout is needed: the policy is the one that was last applied.
    """
    from quota_ops.cli.rolling_back import roll_back

    roll_back(
        run,
        allow=options.allowed(allow, reason if allow else None, None),
        by=by,
        reason=reason or "",
        connection_file=connection_file,
        run_store=run_store,
        engine=engine,
        output=output,
    )
