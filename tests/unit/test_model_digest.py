"""The columns of digests, which outlive the version that wrote them."""

from quota_ops.model.usage.digest import DELAYS, DIGEST, USE


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
