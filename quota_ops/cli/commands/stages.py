"""The commands of the stages: each runs all stages up to its own, or its own alone with --run."""

from quota_ops.cli import options
from quota_ops.cli.stage_options import approve, comparing, stage_command


@stage_command(
    comparing,
    options.actual,
    options.detailed_exitcode,
    options.out,
    examples="""
  quota-ops diff demo
  quota-ops diff demo --engine spark --detailed-exitcode
  quota-ops diff demo --actual snapshot.jsonl    without the cluster""",
)
def diff() -> None:
    """List the differences between Git, the cluster and the ledger.

    The kind of a row shows which side changed: Git, the cluster, or both.
    """


@stage_command(
    comparing,
    options.actual,
    options.allowing,
    options.detailed_exitcode,
    options.out,
    options.as_of,
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


@stage_command(
    comparing,
    options.allowing,
    options.detailed_exitcode,
    options.out,
    examples="""
  quota-ops validate demo
  quota-ops validate --run RUN""",
)
def validate() -> None:
    """Let the broker validate every change.

    With a CLUSTER it does what `plan` does; with --run it validates an earlier plan again.
    """


@stage_command(
    comparing,
    options.allowing,
    approve,
    examples="""
  quota-ops apply demo --approve DIGEST
  quota-ops apply --run RUN --approve DIGEST    resumes where it stopped""",
)
def apply() -> None:
    """Write the changes of a plan, batch by batch.

    Does not send what the cluster already stores, so you can always run it again.
    """


@stage_command(
    examples="""
  quota-ops verify demo
  quota-ops verify --run RUN"""
)
def verify() -> None:
    """Check that every broker stores what Git declares.

    Writes nothing to the cluster. With the run folder of an apply it also updates the ledger.
    """


@stage_command(
    comparing,
    options.allowing,
    options.detailed_exitcode,
    options.out,
    examples="""
  quota-ops report demo
  quota-ops report demo --out ./report    a job that may not write to the run store
  quota-ops report --run RUN""",
)
def report() -> None:
    """Write the report of a run, or of a cluster's current drift.

    Writes HTML, text and JSON to the run's folder, and nothing to the cluster.
    """


@stage_command(
    comparing,
    options.allowing,
    approve,
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
