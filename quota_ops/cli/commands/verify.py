"""The command `verify`: check that every broker stores what Git declares."""

from typing import Any

from quota_ops.cli.stage_options import stage_command


@stage_command(
    examples="""\
  quota-ops verify demo
  quota-ops verify --run RUN"""
)
def verify(**typed: Any) -> None:
    """Check that every broker stores what Git declares.

    Writes nothing to the cluster. With the run folder of an apply it also updates the ledger.
    """
    from quota_ops.cli.stage_run import StageOptions, run_command

    run_command("verify", StageOptions(**typed))
