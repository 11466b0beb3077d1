"""The tables that stages exchange, each declared once: by the class of its rows.

`cluster` is Kafka's cluster id everywhere, `entity` is the text of
`quota_ops.model.quotas.entity`, values are in the key's own unit.
"""

from functools import cached_property
from types import NoneType
from typing import Generic, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from msgspec import Struct

from quota_ops.model.quotas import difference, rows

TEXT = "string"
NUMBER = "double"
COUNT = "int"
FLAG = "boolean"
COUNTS = "list of int"

Row = TypeVar("Row", bound=NamedTuple)

_TYPES = {str: TEXT, float: NUMBER, int: COUNT, bool: FLAG, tuple: COUNTS}


class Column(Struct, frozen=True):
    """A column's name, its type, and whether it is nullable.

    Types are string, double, int, boolean, and list of int.
    """

    name: str
    type: str
    nullable: bool = False


class Table(Struct, Generic[Row], frozen=True, dict=True):
    """A named list of columns; its artifact is NAME.parquet in the run folder."""

    name: str
    columns: tuple[Column, ...]
    row: type[Row]
    """The named tuple of its rows."""

    @property
    def file(self) -> str:
        """The name of the table's file in a run folder."""
        return f"{self.name}.parquet"

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(column.name for column in self.columns)


def derive_table(name: str, row: type[Row], **spelled: str) -> Table[Row]:
    """Derive a table from the named tuple of its rows: a column for each field, in order.

    A field that may be None is nullable. `spelled` maps fields to columns whose names are not valid
    field names.
    """
    columns = []
    for field, hint in get_type_hints(row).items():
        kinds = (hint,) if get_origin(hint) is tuple else get_args(hint) or (hint,)
        kind = next(member for member in kinds if member is not NoneType)
        type_ = next(_TYPES[parent] for parent in kind.__mro__ if parent in _TYPES)
        columns.append(Column(spelled.get(field, field), type_, NoneType in kinds))
    return Table(name, tuple(columns), row)


DESIRED = derive_table("desired", rows.DesiredRow)
"""The limits that Git declares, one row each, with their source."""

DECLARED = derive_table("declared", rows.DesiredRow)
"""The rows of DESIRED before limits of the whole cluster are divided; only runs with such limits
have it."""

ACTUAL = derive_table("actual", rows.ActualRow)
"""The stored quotas; `hands_off` is why a row is never written (protected, unknown)."""

LEDGER = derive_table("ledger", rows.LedgerRow)
"""The managed rows, and what may come back. `state` is `verified`, at most one row of a key;
`intended` for a write that was about to be sent and may still arrive, a row of each run; `altered`
for such a write of an alter; or `cleared` for each value that a run cleared. A null value is an
intended clear, or the verified absence of a value. `sequence` is the number of the run that wrote
the row; null for a row that a person adopted, unless the ledger has other rows of its key."""

CLUSTERS = derive_table("clusters", rows.ClusterRow)
"""The settings of each cluster: the drift policy, whether unmanaged rows in scope are
cleared, and the quotas files with problems, each after a line break and before one."""

HOLDS = derive_table("holds", rows.HoldRow)
"""The entities on hold, one row each: `held` is the end, author and reason of the hold."""

DIFFERENCES = derive_table("differences", difference.Difference)
"""Each row on which the three sides disagree: `before` is the cluster's value, `after` Git's,
`verified` the ledger's; `commit`, `run` and `since` are those of the ledger's row. The commit of
a row that Git declares is the one that declared its value first; null if no run knows it.
`memory` is `intended` for a late write, or `cleared`, if that row is not a managed one. `batch`
numbers the requests that write; all rows of an entity are in one."""

OVERRIDES = derive_table("overrides", rows.OverrideRow)
"""Rows that take clients from declared rows: `declared` is the value that these clients should get,
and `value` the one in force. Not every pair of such rows: of each `side`, a row that is in any pair
is in at least one, and one that is in several in at least two."""
