"""Limits as people write and read them."""

import pytest

from quota_ops.model.quotas.quota import QUOTA_KEYS, QuotaKey, format_limit, parse_limit

KEYS = tuple(QUOTA_KEYS.values())


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_unlimited_is_read_as_it_is_shown(key: QuotaKey) -> None:
    """Every key has exactly one value that is written and shown as `unlimited`."""
    value = parse_limit(key, "unlimited")

    assert format_limit(key.name, value) == "unlimited"
    assert format_limit(key.name, value - 1024) != "unlimited"


def test_unlimited_is_what_quota_config_says() -> None:
    """Long.MAX_VALUE for bytes, Integer.MAX_VALUE for all others, as the doubles that are sent."""
    assert {key.name: key.unlimited for key in KEYS} == {
        "producer_byte_rate": float(2**63 - 1),
        "consumer_byte_rate": float(2**63 - 1),
        "request_percentage": 2147483647.0,
        "controller_mutation_rate": 2147483647.0,
        "connection_creation_rate": 2147483647.0,
    }
