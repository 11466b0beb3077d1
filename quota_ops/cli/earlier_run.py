"""The run folder of an earlier command, as --run names it."""

from collections.abc import Sequence

from quota_ops.cli.stage_options import StageOptions
from quota_ops.model.errors import InvalidInput
from quota_ops.model.text import command
from quota_ops.runs.chain import RESUMED
from quota_ops.store.places.run_store import find_run_store
from quota_ops.store.retention import refuse_pruned
from quota_ops.store.run.files import ALTER, PLAN, REPORT
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.names import find_run
from quota_ops.store.run.state import RunState


def open_run(named: str, run_store: str | None) -> RunFolder:
    """Return the run that a person names, like `find_run`. Raises InvalidInput if it was pruned."""
    folder = find_run(find_run_store(run_store), named)
    refuse_pruned(folder)
    return folder


def open_unwritten_run(named: str, run_store: str | None, stage: str) -> RunFolder:
    """Return the run that a person names, for a stage that starts the run over.

    InvalidInput like `open_run`, or if the run wrote: its report and rollback need the files.
    """
    folder = open_run(named, run_store)
    refuse_written(folder, stage)
    return folder


def refuse_written(folder: RunFolder, stage: str) -> None:
    """Raise InvalidInput if the run wrote: `stage` would start it over."""
    if RunState(folder).has_sent:
        raise InvalidInput(
            f"{folder.place} is a run that wrote: {stage} would replace files that its report and "
            "rollback need",
            f"Make a new plan: {command('plan', folder.about().cluster)}",
        )


def choose_resumed(name: str, folder: RunFolder, typed: StageOptions) -> Sequence[str]:
    """Choose the stages of a command on an earlier run; overridden guards are judged again."""
    if name in {"diff", "plan"}:
        refuse_written(folder, name)
    if name == "verify" and folder.has(ALTER):
        _refuse_unwritten(folder)
    stages: Sequence[str] = RESUMED if name == "reconcile" else (name,)
    if folder.has(REPORT) and name in {"apply", "verify"}:
        stages = (name, "report")  # `runs` reads it
    if "apply" not in stages:
        return stages
    if typed.approve is None:
        raise InvalidInput(f"{name} --run needs --approve DIGEST", _describe_digest(folder))
    return ("plan", *stages) if typed.allow else stages


def _refuse_unwritten(folder: RunFolder) -> None:
    if not any(outcome.was_written for outcome in RunState(folder).outcomes):
        raise InvalidInput(
            f"{folder.place} wrote nothing that could be verified: no broker accepted its change",
            f"How it ended: {command('show', folder.place)}",
        )


def _describe_digest(folder: RunFolder) -> str:
    """Return the remedy for a missing digest: how to review the plan, and its digest."""
    show = command("show", folder.place)
    if not folder.has(PLAN):
        return f"This run has no plan to approve. How it ended: {show}"
    return f"If you reviewed this plan ({show}), add --approve {folder.read(PLAN).digest}"
