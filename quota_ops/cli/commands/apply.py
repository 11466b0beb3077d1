"""The command that writes a plan."""

from quota_ops.cli.stage_options import COMPARING, JUDGING, WRITING, stage_command


@stage_command(
    COMPARING,
    JUDGING,
    WRITING,
    examples="""
  quota-ops apply demo --approve DIGEST
  quota-ops apply --run RUN --approve DIGEST    resumes where it stopped""",
)
def apply() -> None:
    """Write the changes of a plan, batch by batch.

    Does not send what the cluster already stores, so you can always run it again.
    """
