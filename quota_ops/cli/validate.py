"""The command that has the broker judge every change."""

from typing import Any

from quota_ops.cli.stage_options import COMPARING, EXIT_CODE, JUDGING, stage_command


@stage_command(
    COMPARING,
    JUDGING,
    EXIT_CODE,
    examples="""\
  quota-ops validate demo
  quota-ops validate --run FOLDER""",
)
def validate(**typed: Any) -> None:
    """Ask the broker whether it would accept every change.

    With a CLUSTER it does what `plan` does; with --run it asks again about an earlier plan.
    """
    from quota_ops.cli.stage_run import StageOptions, run_command

    run_command("validate", StageOptions(**typed))
