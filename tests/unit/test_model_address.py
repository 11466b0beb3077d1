"""An address is one address, in whatever spelling it was stored."""

import pytest

from quota_ops.model.quotas.rows import LostLimit
from quota_ops.precedence.resolution import (
    explain_same_address,
    find_shortest,
    normalize_address,
    read_address,
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("010.0.0.7", "10.0.0.7"),
        ("10", "0.0.0.10"),
        ("10.7", "10.0.0.7"),
        ("10.1.515", "10.1.2.3"),
        ("2130706433", "127.0.0.1"),
        ("::1", "::1"),
        ("[::1]", "::1"),
        ("0:0::1", "::1"),
        ("2001:0DB8:0:0:0:0:0:7", "2001:db8::7"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("::10.0.0.7", "::a00:7"),
        ("fe80::1%1", "fe80::1"),
        ("localhost", None),
        ("10.0.0.0/8", None),
        ("256.0.0.1", None),
        ("10.0.0.256", None),
        ("4294967296", None),
        ("1.2.3.4.5", None),
        ("1.2.3.4.", None),
        (" 10.0.0.7", None),
        ("0x7f.0.0.1", None),
        ("[10.0.0.7]", None),
        ("[::1", None),
        ("", None),
        ("9" * 5000, None),
    ],
)
def test_a_name_is_the_address_that_brokers_take_it_for(name: str, expected: str | None) -> None:
    """Old and long spellings are parsed; host names, ranges and mistakes are rejected."""
    assert normalize_address(name) == expected


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("2001:0DB8::7", "2001:db8::7"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("010.0.0.7", None),
        ("10", None),
        ("[::1]", None),
        ("fe80::1%1", None),
        ("localhost", None),
    ],
)
def test_what_a_person_types_has_one_meaning(typed: str, expected: str | None) -> None:
    """What some programs read as another address, or that leads to one interface, is rejected."""
    assert read_address(typed) == expected


@pytest.mark.parametrize(
    ("entity", "shortest", "how"),
    [
        ("ip=010.0.0.7", "ip=10.0.0.7", "in another spelling"),
        ("ip=gateway", None, "if the broker resolves the name to it"),
        ("ip=<default>", None, "if the broker resolves the name to it"),
    ],
)
def test_another_name_of_a_declared_address(entity: str, shortest: str | None, how: str) -> None:
    """The spelling that Git may have is known, and the reason names what brokers do with both."""
    assert find_shortest(entity) == shortest
    assert explain_same_address(entity).startswith(f"the same address {how}: each broker applies ")


def test_a_limit_that_brokers_lost() -> None:
    """The reason names the other spelling, which was cleared."""
    lost = LostLimit("ip=10.0.0.1", "connection_creation_rate", 5.0, "ip=::ffff:10.0.0.1")
    assert lost.id == ("ip=10.0.0.1", "connection_creation_rate")
    assert lost.words == (
        "stored, but not in force since ip=::ffff:10.0.0.1, the same address in another spelling, "
        "was cleared"
    )
