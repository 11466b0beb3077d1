"""What `adopt` and `release --from-ledger` share: a run that changes the ledger, and its end."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import click

from quota_ops.cli.console import TEXT, show_screen
from quota_ops.cli.run_end import keep_verb
from quota_ops.cli.session import find_cluster
from quota_ops.desired.git.commit import read_with_commit
from quota_ops.desired.read import Desired
from quota_ops.desired.standstill import standstill
from quota_ops.model.errors import InvalidInput
from quota_ops.model.filter import EntityFilter
from quota_ops.model.progress import ConcurrentWrite
from quota_ops.model.specification import parse_exactly
from quota_ops.report.audit_verb import Verb
from quota_ops.report.screen import Screen, Tone, line
from quota_ops.runs import command_record
from quota_ops.runs.concurrent_writes import find_concurrent_writes
from quota_ops.runs.ownership import Word
from quota_ops.store.login import find_login
from quota_ops.store.run_folder import RunFolder
from quota_ops.store.run_store import find_run_store


@dataclass(frozen=True)
class OwnershipRun:
    """Who asks and why, of which cluster, and the run that keeps it."""

    desired: Desired
    run: RunFolder
    ledger: Path
    holds: Path
    runs: Path
    word: Word
    output: str

    @classmethod
    def start(
        cls,
        cluster: str,
        *,
        desired_state: Path,
        run_store: str | None,
        by: str,
        reason: str | None,
        commit: str | None,
        output: str,
    ) -> Self:
        """Read the cluster's folder and start a run; InvalidInput without a reason."""
        if reason is None:
            raise InvalidInput("--from-ledger needs a reason", "Add --reason TEXT: it is recorded.")
        folder = find_cluster(cluster, desired_state)
        desired, provenance = read_with_commit(folder, given=commit, must_know=True)
        policy, store = desired.policy, find_run_store(run_store)
        run = command_record.start(store, policy, provenance)
        ledger, holds = store.ledger(policy.cluster_id), store.holds(policy.cluster_id)
        word = Word(by, reason, find_login())
        return cls(desired, run, ledger, holds, store.runs_of(policy.cluster), word, output)

    def find_writes(self, who: EntityFilter | None) -> tuple[ConcurrentWrite, ...]:
        """What runs are writing of these entities, or of all."""
        return find_concurrent_writes(self.runs, who.accepts if who else lambda _: True)

    @property
    def where(self) -> str:
        """The cluster, as headings name it."""
        return f"{self.desired.policy.cluster} ({self.desired.policy.cluster_id})"

    @property
    def standstill(self) -> str | None:
        """The cluster and why nothing may be written to it now: `demo is paused: a move`."""
        why = standstill(self.desired.policy, datetime.now(UTC))
        return why and f"{self.desired.policy.cluster} is {why}"

    def show_rows(self, verb: Verb, screen: Screen, rows: list[dict[str, Any]]) -> None:
        """Show what was done, and keep its end, also where nobody can read it."""
        path = str(self.run.path)
        try:
            if self.output == TEXT:
                show_screen((*screen, line(), line(f"run: {path}", Tone.CONTEXT)))
            else:
                click.echo(json.dumps({"run": path, "rows": rows}, ensure_ascii=False, indent=1))
        finally:
            keep_verb(self.run, verb)


def parse_wanted(
    names: Sequence[str], defaults: Sequence[str], anyone: Sequence[str], *, everything: bool
) -> EntityFilter | None:
    """Whose rows the flags mean; None for --all."""
    if not everything:
        return parse_exactly(names, defaults, anyone)
    if names or defaults or anyone:
        raise InvalidInput("--all means every quota already", "Leave out --names and the others.")
    return None
