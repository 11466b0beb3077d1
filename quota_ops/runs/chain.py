"""The stages that each command runs, in order and in one process."""

from collections.abc import Sequence
from contextlib import ExitStack

from msgspec.structs import replace

from quota_ops.model.errors import Claimed, GuardsRefused, InvalidInput, QuotaOpsError
from quota_ops.model.runs.outcome import Outcome
from quota_ops.model.runs.run import Outcomes
from quota_ops.runs.run import Run, run_stage
from quota_ops.store.run.attempt import state_sent
from quota_ops.store.run.claim import claim_run
from quota_ops.store.run.files import APPLIED, PLAN
from quota_ops.store.run.folder import RunFolder

READ_ONLY = ("check", "describe", "diff", "plan", "validate")
CHAINS = {
    "diff": READ_ONLY[:3],
    "plan": READ_ONLY,
    "effects": READ_ONLY[:4],
    "validate": READ_ONLY,
    "apply": (*READ_ONLY, "apply"),
    "verify": ("check", "describe", "diff", "verify"),
    "report": (*READ_ONLY, "report"),
    "rollback": READ_ONLY[1:],
    "alter": ("plan", "validate", "apply", "verify"),
    "reconcile": (*READ_ONLY, "apply", "verify", "report"),
}
"""The stages that each command runs on a cluster. Those with `apply` write to it."""

RESUMED = ("apply", "verify", "report")
"""The stages of `reconcile` that remain for a plan that was made earlier."""

SNAPSHOT_STAGES = frozenset({"check", "describe", "diff", "plan"})
"""The stages that run on a snapshot, without the cluster."""


def _find_remaining(failed: str, folder: RunFolder) -> set[str]:
    """Return the stages that still run after a stage failed; the report always does."""
    if failed == "plan" and folder.has(PLAN):
        blocked = {"validate", "report"}  # the broker checks the plan as well
        return blocked | ({"apply", "verify"} if folder.plan().repairs else set())
    if failed == "apply" and folder.has(APPLIED):
        return {"verify", "report"}  # written values are read back
    return {"report"}


def run_stages(run: Run, stages: Sequence[str]) -> None:
    """Run stages in order, and raise the first error after the remaining stages have run.

    The plan lists the guards that block, so any other error is raised in preference to theirs.
    Raises Claimed, and runs no further stage, when another process applies the run.
    """
    run = replace(run, folder=run.folder.with_cache())  # `list_sent` reads it
    errors: list[QuotaOpsError] = []
    remaining: set[str] = set(stages)
    with ExitStack() as claims:
        for stage in stages:
            if stage not in remaining:
                continue
            if stage == "apply":
                run = replace(run, folder=claims.enter_context(claim_run(run.folder)))
            try:
                run_stage(run, stage)
            except Claimed:
                raise
            except QuotaOpsError as error:
                if isinstance(error, InvalidInput):
                    error = state_sent(error, list_sent(run.folder, stages), run.folder.place)
                errors.append(error)
                try:
                    remaining &= _find_remaining(stage, run.folder)
                except InvalidInput:  # the run store has failed, so no stage can record anything
                    break
    if errors:
        raise next((error for error in errors if not isinstance(error, GuardsRefused)), errors[0])


def list_sent(folder: RunFolder, stages: Sequence[str]) -> tuple[Outcome, ...]:
    """Return the outcomes that these stages have sent, even if the run store has failed since."""
    kept = (folder.kept or {}) if "apply" in stages else {}
    sent: Outcomes | None = kept.get(APPLIED)
    return sent.outcomes if sent else ()
