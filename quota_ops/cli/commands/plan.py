"""The command `plan`: show what would change."""

from quota_ops.cli import stage_options


@stage_options.stage_command(
    stage_options.COMPARING,
    stage_options.OFFLINE,
    stage_options.JUDGING,
    stage_options.EXIT_CODE,
    stage_options.OUTSIDE,
    stage_options.AS_OF,
    examples="""
  quota-ops plan demo
  quota-ops plan demo --allow takeover --reason 'agreed in TEAM-12'
  quota-ops plan demo --format json --detailed-exitcode
  quota-ops plan demo --as-of '2026-11-27 08:00 Europe/Berlin'    what Friday's run would do
  quota-ops plan demo --actual snapshot.jsonl    without the cluster, so not validated""",
)
def plan() -> None:
    """Show what would change, checked by guards and by the broker.

    The broker validates every change (validate-only); nothing is written. The digest identifies the
    plan: pass it to `reconcile --approve`.
    """
