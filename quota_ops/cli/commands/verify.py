"""The command `verify`: check that every broker stores what Git declares."""

from quota_ops.cli.stage_options import stage_command


@stage_command(
    examples="""
  quota-ops verify demo
  quota-ops verify --run RUN"""
)
def verify() -> None:
    """Check that every broker stores what Git declares.

    Writes nothing to the cluster. With the run folder of an apply it also updates the ledger.
    """
