"""What `hold`, `holds` and `release` do: add a word to a cluster's holds, and tell who is held."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import click

from quota_ops.cli.ending import warn_of_writes
from quota_ops.cli.layout import TEXT, show
from quota_ops.cli.options import find_cluster
from quota_ops.desired.read import read_cluster, read_policy
from quota_ops.desired.standstill import standstill
from quota_ops.model.entity import Entity
from quota_ops.model.errors import InvalidDesiredState, InvalidInput
from quota_ops.model.filter import EntityFilter
from quota_ops.model.hold import Hold, in_force
from quota_ops.model.moment import parse_until
from quota_ops.model.policy import Policy
from quota_ops.report.holds import holds_screen, released_words, who_holds
from quota_ops.report.screen import Tone, line
from quota_ops.runs.concurrent_writes import find_concurrent_writes
from quota_ops.store import holds, ledger
from quota_ops.store.login import find_login
from quota_ops.store.run_store import find_run_store

_UNKNOWN = "Neither Git nor the ledger has an entity of that name: check the spelling."


@dataclass(frozen=True)
class Cluster:
    """A cluster's policy, the folder of its holds, and how to tell of them."""

    folder: Path
    policy: Policy
    holds: Path
    ledger: Path
    runs: Path
    output: str

    @classmethod
    def of(cls, cluster: str, desired_state: Path, run_store: str | None, output: str) -> Self:
        """Find it by its name; of its folder only cluster.yaml is read."""
        folder = find_cluster(cluster, desired_state)
        policy = read_policy(folder)
        store, cluster_id = find_run_store(run_store), policy.cluster_id
        kept = (store.holds(cluster_id), store.ledger(cluster_id), store.runs_of(policy.cluster))
        return cls(folder, policy, *kept, output)

    def tell(self, hold: Hold, words: str, *more: str) -> None:
        """Say what has just been kept."""
        if self.output == TEXT:
            where = f"{self.policy.cluster} ({self.policy.cluster_id}): {hold.who.text} {words}"
            show((line(where, Tone.STRONG), *(line(one, Tone.CONTEXT) for one in more)))
        else:
            click.echo(json.dumps(hold.as_json(), ensure_ascii=False, indent=1))


def hold_entities(cluster: Cluster, who: EntityFilter, until: str, *, by: str, reason: str) -> None:
    """Hold entities until a time, and say so."""
    now = _now()
    try:
        hold = Hold(who, parse_until(until, now), by, reason, now, find_login())
    except ValueError as error:
        raise InvalidInput(f"--until {error}") from None
    holds.add(cluster.holds, hold)
    known = _is_described(cluster.folder, who) or _is_managed(cluster.ledger, who)
    cluster.tell(
        hold,
        f"is {hold.text}",
        "Until then runs leave it as it is and report it; after that they follow Git again.",
        *([] if known else [_UNKNOWN]),
    )
    warn_of_writes(find_concurrent_writes(cluster.runs, who.accepts))


def release_entities(cluster: Cluster, who: EntityFilter, *, by: str, reason: str | None) -> None:
    """End a hold early; InvalidInput when there is none on exactly these entities."""
    word = holds.release(cluster.holds, who, by=by, reason=reason or "")
    lasting = in_force(holds.read(cluster.holds), word.at)
    known = _is_described(cluster.folder, who)
    stopped = standstill(cluster.policy, word.at)
    remarks = released_words(cluster.policy, who, lasting, known=known, standstill=stopped)
    held = who_holds(who, lasting)
    words = f"is released, and still {held.text} ({held.who.text})" if held else "is no longer held"
    cluster.tell(word, words, *remarks)


def list_holds(cluster: Cluster, *, everything: bool) -> None:
    """Say who is held now, or every word that was ever said."""
    now = _now()
    words: Sequence[Hold] = holds.read(cluster.holds)
    shown = words if everything else in_force(words, now)
    if cluster.output == TEXT:
        show(holds_screen(shown, now))
    else:
        told = [one.as_json() for one in shown]
        click.echo(json.dumps({"holds": told}, ensure_ascii=False, indent=1))


def _is_described(folder: Path, who: EntityFilter) -> bool:
    """Whether Git describes such an entity, as far as its files can be read."""
    try:
        rows = read_cluster(folder).rows
    except InvalidDesiredState:
        return True
    return any(who.accepts(Entity.parse(row.entity)) for row in rows)


def _is_managed(folder: Path, who: EntityFilter) -> bool:
    """Whether the ledger has such an entity, as far as it can be read."""
    try:
        rows = ledger.read(folder).rows
    except InvalidInput:
        return True
    return any(who.accepts(Entity.parse(row.entity)) for row in rows)


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)
