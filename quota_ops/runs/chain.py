"""The stages of one run in a row, in one process: what the command line calls."""

from collections.abc import Sequence

from quota_ops.model.errors import GuardsRefused, QuotaOpsError
from quota_ops.runs.run import Run, run_stage
from quota_ops.store.run_folder import APPLIED, RunFolder

READ_ONLY = ("check", "describe", "diff", "plan", "validate")
CHAINS = {
    "diff": READ_ONLY[:3],
    "plan": READ_ONLY,
    "validate": READ_ONLY,
    "apply": (*READ_ONLY, "apply"),
    "verify": ("check", "describe", "diff", "verify"),
    "report": (*READ_ONLY, "report"),
    "rollback": READ_ONLY[1:],
    "reconcile": (*READ_ONLY, "apply", "verify", "report"),
}
"""The stages that each command runs on a cluster. Only `apply` and `reconcile` write to it."""

RESUMED = ("apply", "verify", "report")
"""What `reconcile` still has to do for a plan that was made earlier."""

OFFLINE = frozenset({"check", "describe", "diff", "plan"})
"""The stages that a snapshot is enough for."""


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
    errors: list[QuotaOpsError] = []
    still: set[str] = set(stages)
    for stage in stages:
        if stage not in still:
            continue
        try:
            run_stage(run, stage)
        except QuotaOpsError as error:
            errors.append(error)
            still &= _still_run(stage, run.folder)
    if errors:
        raise next((one for one in errors if not isinstance(one, GuardsRefused)), errors[0])
