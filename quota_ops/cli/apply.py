"""The command that writes a plan."""

from typing import Any

from quota_ops.cli.stage_options import COMPARING, JUDGING, WRITING, stage_command


@stage_command(
    COMPARING,
    JUDGING,
    WRITING,
    examples="""\
  quota-ops apply demo --approve DIGEST
  quota-ops apply --run FOLDER --approve DIGEST    goes on where it stopped""",
)
def apply(**typed: Any) -> None:
    """Write what the plan says, batch after batch.

    What the cluster holds already is not sent, so it may be run again after anything.
    """
    from quota_ops.cli.stage_run import StageOptions, run_command

    run_command("apply", StageOptions(**typed))
