"""Into which file a quota is written, for whoever will read and own the files."""

import re
from enum import StrEnum

from quota_ops.desired.export.quotas_text import UNASSIGNED
from quota_ops.model.entity import CLIENT_ID, IP, USER, Entity

_DEFAULTS = "defaults"
_OF_TYPES = {
    (USER,): "users",
    (CLIENT_ID,): "clients",
    (CLIENT_ID, USER): "users-clients",
    (IP,): "addresses",
}
_WORD = re.compile(r"[-._:/@= ]")
_UNSAFE = re.compile(r"[^a-z0-9]+")
_LONGEST = 60


class GroupBy(StrEnum):
    """What the quotas of a file have in common."""

    TYPE = "type"
    """The types of their entities; all defaults are together, because they touch everybody."""
    USER = "user"
    """Their user; those without one are grouped by type."""
    PREFIX = "prefix"
    """The first word of their user, else of their client id: `payments-app` is in payments."""
    ONE = "one"
    """Nothing: one file has them all."""


def group_of(entity: Entity, by: GroupBy) -> str:
    """The name of the group; it is the name of a file too."""
    names = entity.as_dict()
    name = names.get(USER) if by is GroupBy.USER else names.get(USER) or names.get(CLIENT_ID)
    if by is GroupBy.ONE:
        return "quotas"
    if by is GroupBy.TYPE or name is None:
        return _DEFAULTS if entity.has_default else _OF_TYPES[entity.types]
    return _file_name(name if by is GroupBy.USER else _WORD.split(name)[0])


def _file_name(name: str) -> str:
    plain = _UNSAFE.sub("-", name.lower()).strip("-")[:_LONGEST]
    return f"{plain}-quotas" if plain == "cluster" else plain or "others"


def owner_of(group: str, by: GroupBy) -> str:
    """Who owns a group until somebody says otherwise."""
    return group if by in {GroupBy.USER, GroupBy.PREFIX} else UNASSIGNED
