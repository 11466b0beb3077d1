"""What a ledger notes beside its rows: the policy and commits applied, and the brokers verified."""

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from quota_ops.model.registration import NO_BROKERS, KnownBrokers
from quota_ops.store import parquet

COMMITS_KEPT = 1000


def with_commit(commits: tuple[str, ...], commit: str | None) -> tuple[str, ...]:
    """The commits with one more, the newest at the end; of those that repeat, the last."""
    if commit is None or commits[-1:] == (commit,):
        return commits
    return (*(one for one in commits if one != commit), commit)[-COMMITS_KEPT:]


def notes_of(
    policy: dict[str, Any] | None,
    commits: Sequence[str],
    brokers: KnownBrokers,
    number: int | None,
) -> dict[str, str]:
    """The notes as texts by name, as a Parquet file keeps them; `number` as `applied_by`."""
    notes = {
        "policy": policy,
        "commits": commits,
        "brokers": brokers.as_json(),
        "applied_by": number,
    }
    return {name: json.dumps(value) for name, value in notes.items()}


def check_notes(table: pa.Table) -> None:
    """Raise ValueError where a note is not as `notes_of` writes it, or another program left none.

    Without them no guard knows which policy and which commits were applied.
    """
    notes = parquet.notes(table)
    if missing := [name for name in ("policy", "commits") if name not in notes]:
        raise ValueError(f"it does not note {' and '.join(missing)}: another program wrote it")
    policy, commits = json.loads(notes["policy"]), json.loads(notes["commits"])
    are_commits = isinstance(commits, list) and all(isinstance(one, str) for one in commits)
    for name, value, fits in (
        ("policy", policy, isinstance(policy, dict | None)),
        ("commits", commits, are_commits),
        ("run number", number := applied_by(table), isinstance(number, int | None)),
    ):
        if not fits:
            raise ValueError(f"its {name} is {value!r}")
    known_brokers(table)


def applied_by(table: pa.Table) -> int | None:
    """The number of the run that noted the last commit and policy; None where runs had none."""
    noted: int | None = json.loads(parquet.notes(table).get("applied_by", "null"))
    return noted


def known_brokers(table: pa.Table) -> KnownBrokers:
    """The brokers of the last verified run; none in the file of an earlier version.

    Raises ValueError when the note is not one.
    """
    noted = parquet.notes(table).get("brokers")
    try:
        return NO_BROKERS if noted is None else KnownBrokers.from_json(json.loads(noted))
    except (KeyError, TypeError) as error:
        raise ValueError(f"its brokers are {noted}: {error!r}") from None
