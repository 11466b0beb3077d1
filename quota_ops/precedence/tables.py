"""The tables by which many clients are resolved at once."""

from collections.abc import Iterable
from typing import NamedTuple

from quota_ops.model.entity import CLIENT_ID, USER
from quota_ops.model.rows import StoredQuota
from quota_ops.model.tables import COUNT, NUMBER, TEXT, Column, Table
from quota_ops.precedence.resolution import CLIENT_KEYS, level_of

CLIENTS = Table(
    "clients", (Column(USER, TEXT, nullable=True), Column(CLIENT_ID, TEXT, nullable=True))
)
"""Who is asked for; no user is ANONYMOUS, and no client id is what a client sends that has none."""

LIMITS = Table(
    "limits",
    (
        Column("key", TEXT),
        Column("rank", COUNT),
        Column("user_name", TEXT, nullable=True),
        Column("client_id", TEXT, nullable=True),
        Column("entity", TEXT),
        Column("value", NUMBER),
    ),
)
"""Every stored limit for users and client ids by the rank of its level; null is a default."""

RESOLVED = Table(
    "resolved",
    (
        *CLIENTS.columns,
        Column("key", TEXT),
        Column("value", NUMBER, nullable=True),
        Column("level", TEXT, nullable=True),
        Column("rank", COUNT, nullable=True),
        Column("entity", TEXT, nullable=True),
        Column("shared_by_user", TEXT),
        Column("shared_by_client_id", TEXT),
    ),
)
"""What holds for each client and key, nothing (null) being unlimited; whoever has the same
`shared_by` columns shares the limit, and an empty one is everybody."""


class LimitRow(NamedTuple):
    """A row of LIMITS."""

    key: str
    rank: int
    user_name: str | None
    client_id: str | None
    entity: str
    value: float


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
