"""The tables by which many clients are resolved at once."""

from collections.abc import Iterable
from typing import NamedTuple

from quota_ops.model.entity import CLIENT_ID, USER
from quota_ops.model.rows import StoredQuota
from quota_ops.model.tables import derive_table
from quota_ops.precedence.resolution import CLIENT_KEYS, level_of


class ClientRow(NamedTuple):
    """A row of CLIENTS."""

    user: str | None
    client_id: str | None


class LimitRow(NamedTuple):
    """A row of LIMITS."""

    key: str
    rank: int
    user_name: str | None
    client_id: str | None
    entity: str
    value: float


class ResolvedRow(NamedTuple):
    """A row of RESOLVED."""

    user: str | None
    client_id: str | None
    key: str
    value: float | None
    level: str | None
    rank: int | None
    entity: str | None
    shared_by_user: str
    shared_by_client_id: str


CLIENTS = derive_table("clients", ClientRow, client_id=CLIENT_ID)
"""Who is asked for; no user is ANONYMOUS, and no client id is what a client sends that has none."""

LIMITS = derive_table("limits", LimitRow)
"""Every stored limit for users and client ids by the rank of its level; null is a default."""

RESOLVED = derive_table("resolved", ResolvedRow, client_id=CLIENT_ID)
"""What holds for each client and key, nothing (null) being unlimited; whoever has the same
`shared_by` columns shares the limit, and an empty one is everybody."""


def limit_rows(stored: Iterable[StoredQuota]) -> list[LimitRow]:
    """The rows of LIMITS: what a broker looks up by user or client id, and nothing else."""
    rows = []
    for entity, key, value in stored:
        level = level_of(entity)
        if level is not None and level.rank is not None and key in CLIENT_KEYS:
            names = entity.as_dict()
            user, client_id = names.get(USER), names.get(CLIENT_ID)
            rows.append(LimitRow(key, level.rank, user, client_id, entity.text, value))
    return rows
