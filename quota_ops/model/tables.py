"""The tables that travel between stages: column names and types as plain data.

`cluster` is Kafka's cluster id everywhere, `entity` is the text of
`quota_ops.model.entity`, values are in the key's own unit.
"""

from dataclasses import dataclass

TEXT = "string"
NUMBER = "double"
COUNT = "int"
FLAG = "boolean"


@dataclass(frozen=True, slots=True)
class Column:
    """A column's name and type (string, double, int, boolean) and whether null may stand in it.

    Files from before it was added lack an `added` column: all its values are null there.
    """

    name: str
    type: str
    nullable: bool = False
    added: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A named list of columns; its artefact is NAME.parquet in the run folder."""

    name: str
    columns: tuple[Column, ...]

    @property
    def file(self) -> str:
        """The name of the table's file in a run folder."""
        return f"{self.name}.parquet"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(column.name for column in self.columns)


_KEY = (Column("cluster", TEXT), Column("entity", TEXT), Column("key", TEXT))

DESIRED = Table(
    "desired",
    (
        *_KEY,
        Column("value", NUMBER),
        Column("owner", TEXT, nullable=True),
        Column("reason", TEXT, nullable=True),
        Column("file", TEXT),
        Column("line", COUNT),
    ),
)
"""What Git says: one row for each limit, with the place that asks for it."""

ACTUAL = Table(
    "actual",
    (
        *_KEY,
        Column("value", NUMBER),
        Column("in_scope", FLAG),
        Column("hands_off", TEXT, nullable=True),
    ),
)
"""What the cluster holds; `hands_off` says why a row is never written (protected, unknown)."""

LEDGER = Table(
    "ledger",
    (
        *_KEY,
        Column("value", NUMBER, nullable=True),
        Column("state", TEXT),
        Column("owner", TEXT, nullable=True),
        Column("file", TEXT, nullable=True),
        Column("commit", TEXT, nullable=True),
        Column("run", TEXT),
        Column("at", TEXT),
        Column("sequence", COUNT, nullable=True, added=True),
    ),
)
"""The rows that are ours. `state` is `verified`, or `intended` for a write that was about to be
sent; a null value is an intended clear. A key has at most one row of each of these states. Beside
them are rows that are only remembered, one for each value of a key: `superseded`, a write that may
still arrive, and `cleared`, a value that a run cleared. `sequence` is the number of the run that
wrote it; null for adopted rows, and for rows older than numbers are."""

CLUSTERS = Table(
    "clusters",
    (
        Column("cluster", TEXT),
        Column("drift", TEXT),
        Column("clear_unmanaged", FLAG),
        Column("superseded_from", TEXT),
        Column("cleared_from", TEXT),
    ),
)
"""What decides per cluster: the drift policy, whether unmanaged rows in scope are cleared, and from
which time on (UTC) superseded writes and cleared rows of the ledger are remembered."""

HOLDS = Table("holds", (Column("cluster", TEXT), Column("entity", TEXT), Column("held", TEXT)))
"""The entities that a person holds, one row each: `held` says until when, who and why."""

DIFFERENCES = Table(
    "differences",
    (
        *_KEY,
        Column("kind", TEXT),
        Column("action", TEXT),
        Column("before", NUMBER, nullable=True),
        Column("after", NUMBER, nullable=True),
        Column("verified", NUMBER, nullable=True),
        Column("owner", TEXT, nullable=True),
        Column("reason", TEXT, nullable=True),
        Column("file", TEXT, nullable=True),
        Column("line", COUNT, nullable=True),
        Column("commit", TEXT, nullable=True),
        Column("run", TEXT, nullable=True),
        Column("since", TEXT, nullable=True),
        Column("hands_off", TEXT, nullable=True),
        Column("held", TEXT, nullable=True),
        Column("memory", TEXT, nullable=True, added=True),
    ),
)
"""Each row on which the three sides do not agree: `before` the cluster's value, `after` Git's,
`verified` the value that the ledger knows; `commit`, `run` and `since` of the ledger's row.
`memory` is `superseded` or `cleared` where that row is one that the ledger only remembers."""

BATCHES = Table(
    "batches",
    (
        Column("cluster", TEXT),
        Column("batch", COUNT),
        *_KEY[1:],
        Column("before", NUMBER, nullable=True),
        Column("after", NUMBER, nullable=True),
    ),
)
"""What is sent, in which request: a null `after` clears the key; an entity is in one batch."""
