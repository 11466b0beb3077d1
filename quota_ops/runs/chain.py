"""The stages of one run in a row, in one process: what the command line calls."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from time import monotonic
from typing import TYPE_CHECKING

from quota_ops.desired.read import read_policy
from quota_ops.model.errors import GuardsRefused, QuotaOpsError
from quota_ops.runs.run import Run, asked, run_stage
from quota_ops.stages import diff
from quota_ops.stages.forked import forked
from quota_ops.store.run_folder import APPLIED, RunFolder

if TYPE_CHECKING:  # Kafka's clients are loaded while another process reads YAML
    from quota_ops.stages.describe import Described

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
    with ExitStack() as beside:
        run = replace(run, beside=beside)
        for stage in stages:
            # While brokers validate, which reads no plan, another process may still write it.
            if stage != "validate" and (late := _error_beside(run, beside)):
                errors.append(late)
                still &= {"report"}
            if stage not in still:
                continue
            try:
                if stage == "check" and "describe" in still:
                    still.remove("describe")
                    _check_and_describe(run, still)
                else:
                    run_stage(run, stage)
            except QuotaOpsError as error:
                errors.append(error)
                still &= _still_run(stage, run.folder)
        if late := _error_beside(run, beside):
            errors.append(late)
    if errors:
        raise next((one for one in errors if not isinstance(one, GuardsRefused)), errors[0])


def _error_beside(run: Run, beside: ExitStack) -> QuotaOpsError | None:
    """Wait until plan.json is there; why it cannot be, which is the end of the stage plan."""
    try:
        beside.close()
    except QuotaOpsError as error:
        with suppress(QuotaOpsError), run.folder.stage("plan"):
            raise
        return error
    return None


def _needed_later(run: Run, stages: set[str]) -> Iterator[Callable[[], object]]:
    """What loads modules, by the time that they take."""
    if "diff" in stages and run.engine == diff.EMBEDDED:
        yield partial(import_module, "quota_ops.sql.embedded")
    if "report" in stages:
        from quota_ops.report.template import load_templates  # noqa: PLC0415 - loaded beside YAML

        yield load_templates
    for stage in ("validate", "apply", "verify", "report"):
        if stage in stages:
            yield partial(import_module, f"quota_ops.stages.{stage}")


def _check_and_describe(run: Run, stages: set[str]) -> None:
    """Both at once, because neither needs the other; what YAML comes to is said first."""
    answer: Described | QuotaOpsError
    began = monotonic()
    with forked(partial(run_stage, run, "check")) as reads:
        try:
            answer = asked(run, read_policy(run.cluster_folder))
        except QuotaOpsError as error:
            answer = error
        except KeyboardInterrupt:
            with run.folder.stage("describe", spent=monotonic() - began):
                raise
        spent = monotonic() - began
        for load in _needed_later(run, stages):
            if reads():  # as it nearly always does, YAML takes longer
                load()
    from quota_ops.stages import describe  # noqa: PLC0415 - as above

    with run.folder.stage("describe", spent=spent):
        if isinstance(answer, QuotaOpsError):
            raise answer
        describe.leave(run.folder, answer)
