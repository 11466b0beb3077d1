"""The command that reads every broker back."""

from typing import Any

from quota_ops.cli.stage_options import stage_command


@stage_command(
    examples="""\
  quota-ops verify demo
  quota-ops verify --run FOLDER""",
)
def verify(**typed: Any) -> None:
    """Read back from every broker whether it matches Git.

    Writes nothing to the cluster. On the run folder of an apply it also writes the ledger.
    """
    from quota_ops.cli.stage_run import StageOptions, run_command

    run_command("verify", StageOptions(**typed))
