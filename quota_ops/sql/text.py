"""The SQL that both engines run, with the limits of a batch."""

from importlib.resources import files

MAX_KEYS = 5_000
"""Changed keys in one request: half of the number that a broker rejects (QuorumController)."""
MAX_BYTES = 1_048_576
"""Bytes of records in one request: an eighth of KafkaRaftClient.MAX_BATCH_SIZE_BYTES."""


def diff_text() -> str:
    """Return diff.sql: from desired, actual, ledger, holds and clusters to differences."""
    return _read("diff.sql")


def batches_text(max_keys: int = MAX_KEYS, max_bytes: int = MAX_BYTES) -> str:
    """Return batches.sql: from differences to batches, closed at `max_keys` or `max_bytes`."""
    return _read("batches.sql").format(
        max_keys=max_keys, max_bytes=max_bytes, whole=max_keys * max_bytes
    )


HISTORY_VIEWS = ("ends", "drifts", "quotas", "days", "owners")
"""The views of the history, in the order in which they are made of each other."""


def history_text(view: str) -> str:
    """Return the SQL of one of HISTORY_VIEWS; its file names its input."""
    return _read(f"history_{view}.sql")


def resolve_text(*, spreadsheet: bool = False) -> str:
    """Return resolve.sql: from clients, quota_keys and limits to the columns of RESOLVED.

    A spreadsheet would run a cell such as `=cmd()`. With `spreadsheet`, a name that begins like a
    formula gets an apostrophe in front.
    """
    rows = _read("resolve.sql")
    return _read("spreadsheet.sql").format(resolved=rows) if spreadsheet else rows


def _read(name: str) -> str:
    return files("quota_ops.sql").joinpath(name).read_text(encoding="utf-8")
