"""The tables for resolving the limits of many clients in one pass."""

from collections.abc import Iterable
from typing import NamedTuple

from quota_ops.model.quotas.entity import CLIENT_ID, USER
from quota_ops.model.quotas.quota import CLIENT_KEYS
from quota_ops.model.quotas.rows import StoredQuota
from quota_ops.model.quotas.tables import derive_table
from quota_ops.precedence.resolution import find_level


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
"""The clients to resolve; no user means ANONYMOUS, and no client id means that it sends none."""

LIMITS = derive_table("limits", LimitRow)
"""Every stored limit of users and client ids with the rank of its level; null is a default."""

RESOLVED = derive_table("resolved", ResolvedRow, client_id=CLIENT_ID)
"""The limit that applies to each client and key; null is unlimited. Clients with the same
`shared_by` columns share the limit, and an empty one means any name."""


def list_limits(stored: Iterable[StoredQuota]) -> list[LimitRow]:
    """List the stored quotas that a broker looks up by user or client id."""
    rows = []
    for entity, key, value in stored:
        level = find_level(entity)
        if level is not None and level.rank is not None and key in CLIENT_KEYS:
            names = entity.as_dict()
            user, client_id = names.get(USER), names.get(CLIENT_ID)
            rows.append(LimitRow(key, level.rank, user, client_id, entity.text, value))
    return rows
