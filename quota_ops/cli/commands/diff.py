"""The command that compares Git, the cluster and the ledger."""

from quota_ops.cli.stage_options import COMPARING, EXIT_CODE, OFFLINE, OUTSIDE, stage_command


@stage_command(
    COMPARING,
    OFFLINE,
    EXIT_CODE,
    OUTSIDE,
    examples="""
  quota-ops diff demo
  quota-ops diff demo --engine spark --detailed-exitcode
  quota-ops diff demo --actual snapshot.jsonl    without the cluster""",
)
def diff() -> None:
    """List the differences between Git, the cluster and the ledger.

    The kind of a row shows which side changed: Git, the cluster, or both.
    """
