"""The command that writes the report of a run."""

from quota_ops.cli.stage_options import COMPARING, EXIT_CODE, JUDGING, OUTSIDE, stage_command


@stage_command(
    COMPARING,
    JUDGING,
    EXIT_CODE,
    OUTSIDE,
    examples="""
  quota-ops report demo
  quota-ops report demo --out ./report    a job that may not write to the run store
  quota-ops report --run RUN""",
)
def report() -> None:
    """Write the report of a run, or of a cluster's current drift.

    Writes HTML, text and JSON to the run's folder, and nothing to the cluster.
    """
