"""The table of stored limits, for resolving the limits of many clients in one pass."""

from collections.abc import Iterable
from typing import NamedTuple

from quota_ops.model.quotas.entity import CLIENT_ID, USER
from quota_ops.model.quotas.quota import CLIENT_KEYS
from quota_ops.model.quotas.rows import StoredQuota
from quota_ops.model.quotas.tables import derive_table
from quota_ops.precedence.resolution import find_level


class LimitRow(NamedTuple):
    """A row of LIMITS."""

    key: str
    rank: int
    user_name: str | None
    client_id: str | None
    entity: str
    value: float


LIMITS = derive_table("limits", LimitRow)
"""Every stored limit of users and client ids with the rank of its level; null is a default."""


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
