"""The command `validate`: let the broker validate every change."""

from quota_ops.cli.stage_options import COMPARING, EXIT_CODE, JUDGING, OUTSIDE, stage_command


@stage_command(
    COMPARING,
    JUDGING,
    EXIT_CODE,
    OUTSIDE,
    examples="""
  quota-ops validate demo
  quota-ops validate --run RUN""",
)
def validate() -> None:
    """Let the broker validate every change.

    With a CLUSTER it does what `plan` does; with --run it validates an earlier plan again.
    """
