"""Names in labels, as Kafka encodes and JMX quotes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quota_ops.usage.labels import decode_client_id, decode_user, encode_client_id, encode_user

SEEN = (  # of real brokers
    ("C%3DDE%2CO%3DAcme%20Inc%2CCN%3Dsvc%3Apay%2F1%2A%C3%BC", "C=DE,O=Acme Inc,CN=svc:pay/1*ü"),
    ("alice", "alice"),
)


@pytest.mark.parametrize(("label", "user"), SEEN)
def test_a_user_is_percent_encoded(label: str, user: str) -> None:
    """A user is encoded as Kafka's Sanitizer does."""
    assert (decode_user(label), encode_user(user)) == (user, label)


def test_a_client_id_is_quoted_if_jmx_needs_it() -> None:
    """A client id is quoted as ObjectName.quote does, and only if it has special characters."""
    quoted = '"anon app:1\\*/ü, \\"q\\"=1"'
    assert decode_client_id(quoted) == 'anon app:1*/ü, "q"=1'
    assert encode_client_id('anon app:1*/ü, "q"=1') == quoted
    assert encode_client_id("web-1.app %41") == "web-1.app %41" == decode_client_id("web-1.app %41")


@given(st.text())
def test_each_name_survives(name: str) -> None:
    """A name that is encoded and decoded is the same again."""
    assert decode_client_id(encode_client_id(name)) == name


@given(st.text().filter(lambda name: name.isprintable()))
def test_each_user_survives(name: str) -> None:
    """A user that is encoded and decoded is the same again."""
    assert decode_user(encode_user(name)) == name
