"""The command that runs every stage."""

from quota_ops.cli import options
from quota_ops.cli.stage_options import COMPARING, JUDGING, WRITING, stage_command


@stage_command(
    COMPARING,
    JUDGING,
    WRITING,
    examples="""
  quota-ops reconcile demo
  quota-ops reconcile demo --approve DIGEST
  quota-ops reconcile --run RUN --approve DIGEST
  quota-ops reconcile demo --allow default_touched --reason 'agreed in TEAM-12'""",
    run=options.on_run("Apply, verify and report"),
)
def reconcile() -> None:
    """Make the cluster match Git: plan, apply, verify, report.

    With --approve, writes only the plan with that digest; otherwise, writes the plan that it just
    made. With --run, writes the plan of an earlier command, or resumes it. A new plan is blocked by
    every guard that --allow does not override.
    """
