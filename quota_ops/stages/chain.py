"""The stages of one run in a row, in one process: what the command line calls."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from quota_ops.kafka.cluster import Cluster
from quota_ops.model.errors import GuardsRefused, QuotaOpsError
from quota_ops.model.progress import SILENT, Progress
from quota_ops.run_folder import APPLIED, PLAN, RunFolder
from quota_ops.run_store import RunStore
from quota_ops.snapshot import Snapshot
from quota_ops.stages import check, describe, diff, plan, validate

READ_ONLY = ("check", "describe", "diff", "plan", "validate")
CHAINS = {
    "diff": READ_ONLY[:3],
    "plan": READ_ONLY,
    "validate": READ_ONLY,
    "apply": (*READ_ONLY, "apply"),
    "verify": ("check", "describe", "verify"),
    "report": (*READ_ONLY, "report"),
    "reconcile": (*READ_ONLY, "apply", "verify", "report"),
}
"""The stages that each command runs on a cluster. Only `apply` and `reconcile` write to it."""

RESUMED = ("apply", "verify", "report")
"""What `reconcile` still has to do for a plan that was made earlier."""

OFFLINE = frozenset({"check", "describe", "diff", "plan"})
"""The stages that a snapshot is enough for."""


@dataclass(frozen=True)
class Run:
    """One run and all that its stages need; `connect` is called when a stage needs the cluster."""

    folder: RunFolder
    cluster_folder: Path
    store: RunStore
    connect: Callable[[], Cluster]
    engine: str = diff.EMBEDDED
    allow: Mapping[str, str] = field(default_factory=dict)
    approve: str | None = None
    """The approved digest; None approves the plan that this very run has just made."""
    progress: Progress = SILENT
    actual: Path | None = None
    """A snapshot in the cluster's place: described, never validated or written."""

    @property
    def ledger(self) -> Path:
        """The ledger of this run's cluster."""
        return self.store.ledger(self.folder.policy().cluster_id)


def _check(run: Run) -> None:
    check.run(run.folder, run.cluster_folder)


def _describe(run: Run) -> None:
    source = run.connect() if run.actual is None else Snapshot.read(run.actual)
    describe.run(run.folder, source, run.ledger)


def _diff(run: Run) -> None:
    diff.run([run.folder], run.engine)


def _plan(run: Run) -> None:
    plan.run(run.folder, run.allow)


def _validate(run: Run) -> None:
    validate.run(run.folder, run.connect())


def _apply(run: Run) -> None:
    from quota_ops.stages import apply  # noqa: PLC0415 - what only reads need not wait for it

    made = run.folder.read_json(PLAN)["digest"]
    approved = made if run.approve is None else run.approve
    apply.run(run.folder, run.connect(), run.ledger, approved, run.progress)


def _verify(run: Run) -> None:
    from quota_ops.stages import verify  # noqa: PLC0415 - as above

    verify.run(run.folder, run.connect(), run.ledger, run.progress)


def _report(run: Run) -> None:
    from quota_ops.stages import report  # noqa: PLC0415 - templates, which other stages do not need

    report.run(run.folder)


STAGES: Mapping[str, Callable[[Run], None]] = {
    "check": _check,
    "describe": _describe,
    "diff": _diff,
    "plan": _plan,
    "validate": _validate,
    "apply": _apply,
    "verify": _verify,
    "report": _report,
}


def _still_run(failed: str, folder: RunFolder) -> set[str]:
    """What runs although a stage failed; the report in any case."""
    if failed == "plan":
        return {"validate", "report"}  # the broker speaks beside the guards
    if failed == "apply" and folder.has(APPLIED):
        return {"verify", "report"}  # what was written is read back
    return {"report"}


def run_stages(run: Run, stages: Sequence[str]) -> None:
    """Run stages in order; the first error is raised when those that still run have run.

    What guards refused stands in the plan, so another error is raised rather than theirs.
    """
    error: QuotaOpsError | None = None
    still: set[str] = set(stages)
    for stage in stages:
        if stage not in still:
            continue
        try:
            with run.folder.stage(stage):  # a cluster out of reach is this stage's end too
                STAGES[stage](run)
        except QuotaOpsError as raised:
            error = raised if error is None or isinstance(error, GuardsRefused) else error
            still &= _still_run(stage, run.folder)
    if error is not None:
        raise error
