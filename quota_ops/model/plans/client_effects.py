"""The effects of changed quotas on the clients of an inventory."""

from collections import namedtuple
from typing import Any, NamedTuple

from msgspec import Struct

from quota_ops.model.quotas.entity import CLIENT_ID, USER
from quota_ops.model.quotas.quota import CLIENT_KEYS
from quota_ops.model.quotas.tables import NUMBER, TEXT, Column, Table, derive_table


class ClientEffectRow(NamedTuple):
    """A row of CLIENT_EFFECTS: what a change does to one limit of one client.

    `before` and `after` are None if nothing limits the client; the level and the entity are those
    of the quota that decides, which may be one that exempts. `observed` is the client's own rate.
    `used` adds up all clients of the inventory that share the limit after the change.
    """

    user: str
    client_id: str
    owner: str | None
    key: str
    verdict: str
    before: float | None
    before_level: str | None
    before_entity: str | None
    after: float | None
    after_level: str | None
    after_entity: str | None
    observed: float | None
    used: float | None
    head_room: float | None
    throttled: bool


class OwnerEffects(NamedTuple):
    """A row of OWNER_EFFECTS: how many clients of an owner a change affects.

    `keys` is the number of rows of CLIENT_EFFECTS. A client counts once for each verdict, and once
    in `losing` if any of its limits is cut or new, or it may get less.
    `throttled` are the clients that use more than such a limit, or than one that is shared
    differently or with more clients.
    """

    owner: str | None
    clients: int
    keys: int
    newly_limited: int
    cut: int
    raised: int
    no_longer_limited: int
    losing: int
    throttled: int
    shared_differently: int
    may_get_less: int
    may_get_more: int


_COLUMNS = (
    Column(USER, TEXT),
    Column(CLIENT_ID, TEXT),
    Column("owner", TEXT, nullable=True),
    *(Column(key, NUMBER, nullable=True) for key in CLIENT_KEYS),
)
_ROW = namedtuple("InventoryRow", ("user", "client_id", "owner", *CLIENT_KEYS))  # type: ignore[misc]  # noqa: PYI024 - a field for each key
INVENTORY: Table[Any] = Table("inventory", _COLUMNS, _ROW)
"""The clients of an inventory, each once; an empty client id means that it sends none.
Each has its owner, and the rate observed of each key."""

CLIENT_EFFECTS = derive_table("client_effects", ClientEffectRow, client_id=CLIENT_ID)
"""Each client and key whose limit changes, or is shared by others than before."""

OWNER_EFFECTS = derive_table("owner_effects", OwnerEffects)
"""The numbers of clients by owner; null for those without one."""


class InventoryEffects(Struct, frozen=True):
    """How a change affects the clients of an inventory, by owner."""

    inventory: str
    """The address of the inventory."""
    owners: tuple[OwnerEffects, ...]
    attempt: str | None = None
    """The folder in the run folder with the rows of CLIENT_EFFECTS; None if they are not kept."""
    computed_from: str | None = None
    """A fingerprint of the differences and the inventory; None if they are not kept."""
    trouble: str | None = None
    """Why the inventory could not be read, so that its clients are not counted."""
    agreed: int = 0
    """How many writes restore a value that was judged before; what they change is not counted."""

    @property
    def total(self) -> OwnerEffects:
        """The numbers of all owners together."""
        columns = zip(*(owner[1:] for owner in self.owners), strict=True)
        numbers = [sum(column) for column in columns] or [0] * (len(OwnerEffects._fields) - 1)
        return OwnerEffects(None, *numbers)
