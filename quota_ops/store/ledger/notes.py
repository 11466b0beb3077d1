"""The notes in a ledger's metadata: the policy and commits applied, the brokers verified."""

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from quota_ops.model.clusters.cluster_facts import NO_BROKERS, KnownBrokers
from quota_ops.model.stored import from_json, to_json
from quota_ops.store.places import parquet

COMMITS_KEPT = 1000
_NOTES = {"policy", "commits", "brokers", "applied_by"}


def with_commit(commits: tuple[str, ...], commit: str | None) -> tuple[str, ...]:
    """Return the commits with one more at the end; a repeated one moves there."""
    if commit is None or commits[-1:] == (commit,):
        return commits
    return (*(earlier for earlier in commits if earlier != commit), commit)[-COMMITS_KEPT:]


def notes_of(
    policy: dict[str, Any] | None, commits: Sequence[str], brokers: KnownBrokers, number: int | None
) -> dict[str, str]:
    """Return the notes as texts by name, for Parquet metadata; `number` is `applied_by`."""
    notes = {
        "policy": policy,
        "commits": commits,
        "brokers": to_json(KnownBrokers, brokers),
        "applied_by": number,
    }
    return {name: json.dumps(value) for name, value in notes.items()}


def check_notes(table: pa.Table) -> None:
    """Raise ValueError if a note is missing, unknown, or not as `notes_of` writes it.

    Without them, no guard knows which policy and which commits were applied.
    """
    notes = parquet.notes(table)
    if missing := [name for name in ("policy", "commits") if name not in notes]:
        raise ValueError(f"it has no note of {' and '.join(missing)}: another program wrote it")
    if unknown := sorted(notes.keys() - _NOTES):
        raise ValueError(f"it has an unknown note {unknown[0]!r}")
    policy, commits = json.loads(notes["policy"]), json.loads(notes["commits"])
    are_commits = isinstance(commits, list) and all(isinstance(commit, str) for commit in commits)
    for name, value, fits in (
        ("policy", policy, isinstance(policy, dict | None)),
        ("commits", commits, are_commits),
        ("run number", number := applied_by(table), isinstance(number, int | None)),
    ):
        if not fits:
            raise ValueError(f"its {name} is {value!r}")
    known_brokers(table)


def applied_by(table: pa.Table) -> int | None:
    """Return the number of the run that recorded the last commit and policy, if any."""
    noted: int | None = json.loads(parquet.notes(table).get("applied_by", "null"))
    return noted


def known_brokers(table: pa.Table) -> KnownBrokers:
    """Return the brokers of the last verified run; none for a file without that note.

    Raises ValueError if the note is damaged.
    """
    noted = parquet.notes(table).get("brokers")
    try:
        return NO_BROKERS if noted is None else from_json(KnownBrokers, json.loads(noted))
    except ValueError as error:
        raise ValueError(f"its brokers are {noted}: {error}") from None
