"""What `adopt` and `release --from-ledger` do: change the ledger, keep a run, say what is next."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import click

from quota_ops.cli.ending import keep_verb, stoppable, warn_of_writes
from quota_ops.cli.layout import TEXT, show
from quota_ops.cli.options import find_cluster
from quota_ops.desired.git.commit import read_with_commit
from quota_ops.desired.read import Desired
from quota_ops.desired.standstill import standstill
from quota_ops.model.entity import Entity
from quota_ops.model.errors import InvalidInput
from quota_ops.model.filter import Borders, EntityFilter
from quota_ops.model.hold import hold_on
from quota_ops.model.ownership import Adoption, why_unwritable
from quota_ops.model.progress import ConcurrentWrite
from quota_ops.model.quota import json_number
from quota_ops.model.rows import LedgerRow
from quota_ops.model.specification import parse_exactly
from quota_ops.report.audit_verb import Verb
from quota_ops.report.ownership import (
    adopted_fate,
    adopted_screen,
    released_fate,
    released_screen,
)
from quota_ops.report.screen import Screen, Tone, line
from quota_ops.runs import command_record, ownership
from quota_ops.runs.concurrent_writes import find_concurrent_writes
from quota_ops.runs.ownership import Word
from quota_ops.store.holds import holds_now
from quota_ops.store.login import find_login
from quota_ops.store.run_folder import ADOPTED, RELEASED, RunFolder
from quota_ops.store.run_store import find_run_store


@dataclass(frozen=True)
class Asking:
    """Who asks and why, of which cluster, and the run that keeps it."""

    desired: Desired
    run: RunFolder
    ledger: Path
    holds: Path
    runs: Path
    word: Word
    output: str

    @classmethod
    def of(
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


def wanted(
    names: Sequence[str], defaults: Sequence[str], anyone: Sequence[str], *, everything: bool
) -> EntityFilter | None:
    """Whose rows the flags mean; None for --all."""
    if not everything:
        return parse_exactly(names, defaults, anyone)
    if names or defaults or anyone:
        raise InvalidInput("--all means every quota already", "Leave out --names and the others.")
    return None


def adopt_rows(asking: Asking, connection_file: Path | None, who: EntityFilter | None) -> None:
    """Adopt what the cluster holds of these entities, and say what the next run makes of it."""
    from quota_ops.kafka.cluster import open_policy
    from quota_ops.kafka.connection import find_connection

    policy = asking.desired.policy
    found = find_connection(policy.connection, file=connection_file)
    writes = asking.find_writes(who)
    with stoppable(asking.run, Verb.ADOPT, ADOPTED), open_policy(policy, found) as cluster:
        rows = ownership.adopt(
            asking.run, cluster, asking.ledger, asking.desired, wanted=who, word=asking.word
        )
    holds, stopped = holds_now(asking.holds), asking.standstill
    screen = adopted_screen(asking.where, rows, stopped, holds, named=who is not None)
    fates = (adopted_fate(one, stopped, holds) for one in rows)
    _tell(asking, Verb.ADOPT, screen, list(map(_adoption, rows, fates)))
    warn_of_writes(writes)


def release_rows(asking: Asking, who: EntityFilter | None) -> None:
    """Release what the ledger knows of these entities, and say what the next run makes of it."""
    policy = asking.desired.policy
    asked = {row.id: row for row in asking.desired.rows}
    holds, scope, protect = holds_now(asking.holds), Borders(policy.scope), Borders(policy.protect)
    writes = asking.find_writes(who)
    with stoppable(asking.run, Verb.RELEASE, RELEASED):
        released = ownership.release(asking.run, asking.ledger, who, asking.word)
    rows = [
        (
            row,
            released_fate(
                row,
                asked,
                clear_unmanaged=policy.clear_unmanaged,
                hold=hold_on(holds, entity),
                why=why_unwritable(entity, row.key, scope, protect),
                standstill=asking.standstill,
            ),
        )
        for row in released
        for entity in (Entity.parse(row.entity),)
    ]
    screen = released_screen(asking.where, rows, named=who is not None)
    _tell(asking, Verb.RELEASE, screen, [_release(*row) for row in rows])
    warn_of_writes(writes)


def _tell(asking: Asking, verb: Verb, screen: Screen, rows: list[dict[str, Any]]) -> None:
    """Say what was done, and keep its end, also where nobody can be told."""
    path = str(asking.run.path)
    try:
        if asking.output == TEXT:
            show((*screen, line(), line(f"run: {path}", Tone.CONTEXT)))
        else:
            click.echo(json.dumps({"run": path, "rows": rows}, ensure_ascii=False, indent=1))
    finally:
        keep_verb(asking.run, verb)


def _adoption(one: Adoption, fate: str) -> dict[str, Any]:
    return {
        "entity": one.entity,
        "key": one.key,
        "value": json_number(one.value),
        "adopted": one.adopted,
        "ours": one.adopted or one.ours,
        "git": one.asked and one.asked.value,
        "owner": one.asked and one.asked.owner,
        "next": fate,
    }


def _release(row: LedgerRow, fate: str) -> dict[str, Any]:
    values = {"entity": row.entity, "key": row.key, "value": json_number(row.value)}
    return {**values, "state": row.state, "owner": row.owner, "next": fate}
