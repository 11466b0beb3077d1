"""The columns of digests, which outlive the version that wrote them."""

from quota_ops.model.usage.digest import DELAYS, DIGEST, USE, DelayRow, UseRow


def test_the_columns_of_a_digest() -> None:
    """A stored digest has these columns, and only names, buckets and the highest may be empty."""
    assert [(column.name, column.type, column.nullable) for column in DIGEST.columns] == [
        ("day", "string", False),
        ("broker", "string", False),
        ("key", "string", False),
        ("user_name", "string", True),
        ("client_id", "string", True),
        ("idle", "int", False),
        ("bucket", "int", True),
        ("seconds", "list of int", False),
        ("highest", "double", True),
        ("throttled", "boolean", False),
        ("seen", "list of int", False),
    ]
    assert (DIGEST.file, USE.file, DELAYS.file) == (
        "digest.parquet",
        "use.parquet",
        "delays.parquet",
    )


def test_rows_that_are_made_from_digests() -> None:
    """A row of use has both names of a client, a row of delays the runs in which it was seen."""
    use = UseRow("1", "producer_byte_rate", "alice", None, 0, 60, 0, 0, 1, 2, 3, False)
    delays = DelayRow("alice", "1", (0, 90), (60, 120), 0, 0, 0, 0, 3)

    assert use.names == ("alice", None)
    assert delays.seen == [(0, 60), (90, 120)]
