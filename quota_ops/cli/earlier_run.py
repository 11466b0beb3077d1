"""The run folder of an earlier command, as --run names it."""

from quota_ops.model.errors import InvalidInput
from quota_ops.store.retention import refuse_pruned
from quota_ops.store.run_folder import ABOUT, APPLIED, RunFolder, batch_file
from quota_ops.store.run_store import open_place


def open_run(path: str) -> RunFolder:
    """Return the run folder at a path; InvalidInput if the path is not a run folder."""
    folder = RunFolder(open_place(path))
    if not folder.has(ABOUT):
        raise InvalidInput(f"{path} is not a run folder: it has no {ABOUT}")
    refuse_pruned(folder)
    return folder


def open_unwritten_run(path: str, stage: str) -> RunFolder:
    """Return the run folder at a path, for a stage that starts the run over.

    InvalidInput if it is not a run folder, or if the run wrote: its report and rollback need the
    files.
    """
    folder = open_run(path)
    refuse_written(folder, stage)
    return folder


def refuse_written(folder: RunFolder, stage: str) -> None:
    """Raise InvalidInput if the run wrote: `stage` would start it over."""
    if folder.has(APPLIED) or folder.has(batch_file(1)):
        raise InvalidInput(
            f"{folder.place} is a run that wrote: {stage} would replace files that its report and "
            "rollback need",
            f"Make a new plan: quota-ops plan {folder.about()['cluster']}",
        )
