"""The common part of `adopt` and `release --from-ledger`: a run that changes the ledger."""

from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Self

from msgspec import Struct

from quota_ops.cli import records
from quota_ops.cli.console import show_result
from quota_ops.cli.interrupt import report_run_if_stopped
from quota_ops.cli.options import EntityFlags
from quota_ops.cli.run_end import record_command
from quota_ops.cli.session import Session
from quota_ops.desired.git.commit import read_with_commit
from quota_ops.desired.read import Desired
from quota_ops.model.errors import InvalidInput
from quota_ops.model.quotas.filter import EntityFilter
from quota_ops.model.quotas.specification import parse_exactly
from quota_ops.model.runs.progress import ConcurrentWrite
from quota_ops.report.outline.layout import Screen, Tone, line
from quota_ops.runs.adoption import Attribution
from quota_ops.runs.run import start_command_run
from quota_ops.stages.use.recorded import read_group_use
from quota_ops.store.run.folder import RunFolder


class AdoptionRun(Struct, frozen=True):
    """A run that changes the ledger: its cluster, its desired state, who started it and why."""

    session: Session
    desired: Desired
    folder: RunFolder
    attribution: Attribution

    @classmethod
    def start(cls, session: Session, attribution: Attribution, commit: str | None) -> Self:
        """Read the cluster's folder, and start the run."""
        desired, provenance = read_with_commit(
            session.folder,
            given=commit,
            must_know=True,
            find_use=partial(read_group_use, session.store),
        )
        folder = start_command_run(session.store, desired.policy, provenance)
        return cls(session, desired, folder, attribution)

    def find_writes(self, who: EntityFilter | None) -> tuple[ConcurrentWrite, ...]:
        """Find the writes of other runs to these entities; None stands for every entity."""
        return records.find_writes(self.session, who.accepts if who else lambda _: True)

    def report_if_stopped(self, artifact: str) -> AbstractContextManager[None]:
        """Report and record the run if a signal ends the block after it left an artifact."""

        def keep() -> None:
            if self.folder.has(artifact):
                record_command(self.folder, self.session.connection_file)

        return report_run_if_stopped(self.folder.place, keep)

    def show_rows(self, screen: Screen, rows: list[dict[str, Any]], output: str) -> None:
        """Show the result, and record the end of the run even if the output cannot be written."""
        path = str(self.folder.place)
        try:
            show_result(
                output,
                text=lambda: (*screen, line(), line(f"run: {path}", Tone.CONTEXT)),
                json=lambda: {"run": path, "rows": rows},
            )
        finally:
            record_command(self.folder, self.session.connection_file)


def parse_wanted(flags: EntityFlags, *, everything: bool) -> EntityFilter | None:
    """Return the filter for the rows that the flags select; None for --all."""
    if not everything:
        return parse_exactly(*flags)
    if any(flags):
        raise InvalidInput(
            "--all already selects every quota", "Leave out --names, --defaults and --any."
        )
    return None
