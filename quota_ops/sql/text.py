"""The SQL texts, as both engines run them."""

from importlib.resources import files

MAX_KEYS = 5_000
"""Changed keys in one request: half of what a broker refuses (QuorumController's bound)."""
MAX_BYTES = 1_048_576
"""Bytes of records in one request: an eighth of KafkaRaftClient.MAX_BATCH_SIZE_BYTES."""


def diff_text() -> str:
    """Three sides in, `differences` out."""
    return _read("diff.sql")


def batches_text(max_keys: int = MAX_KEYS, max_bytes: int = MAX_BYTES) -> str:
    """`differences` in, `batches` out; a batch is closed at so many keys or bytes."""
    return _read("batches.sql").format(
        max_keys=max_keys, max_bytes=max_bytes, whole=max_keys * max_bytes
    )


def resolve_text(*, spreadsheet: bool = False) -> str:
    """`clients`, `quota_keys` and `limits` in, RESOLVED out.

    For a `spreadsheet`, which runs a cell such as `=cmd()`, a name that begins as a formula does
    has an apostrophe before it.
    """
    rows = _read("resolve.sql")
    return _read("spreadsheet.sql").format(resolved=rows) if spreadsheet else rows


def _read(name: str) -> str:
    return files("quota_ops.sql").joinpath(name).read_text(encoding="utf-8")
