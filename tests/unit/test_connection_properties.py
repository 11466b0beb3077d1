"""Any content of a connection file gives a connection, or one error that names a place."""

import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quota_ops.kafka.client.description import Broker
from quota_ops.kafka.connection import Connection, find_connection
from quota_ops.kafka.connection.jaas import parse_jaas
from quota_ops.kafka.connection.java_properties import read_java
from quota_ops.kafka.connection.settings import ALIASES, SETTINGS
from quota_ops.model.errors import InvalidInput
from quota_ops.model.plans.policy import CONNECTION_NAME

JAVA = ["sasl.jaas.config", "ssl.truststore.type", "ssl.keystore.type", "ssl.keystore.location"]
PIECES = [
    *("PEM", "SASL_SSL", "OAUTHBEARER", "PLAIN", "oidc", "a.PlainLoginModule required "),
    *('password="s";', "${env:HOME}", "${file:/dev/null}", "https://a/b", "-----BEGIN "),
    *("\\", "\\u00", '"', "'", ";", "=", " ", "/", "\n", "\0", "\x85", "\ud83d\ude00"),
]
NAMES = st.sampled_from([*SETTINGS, *ALIASES, *JAVA, "acks", ""])
VALUES = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=6).map("".join)
LINES = st.lists(st.builds("{}={}".format, NAMES, VALUES), max_size=8)
SERVERS = ["kafka-1", ".", ":", "9092", "[", "]", "::1", ",", " ", "ssl://", "ä", "0", "99999"]
PRINTABLE = st.text(st.characters(min_codepoint=1, max_codepoint=255), max_size=20)


@given(LINES)
def test_a_file_is_a_connection_or_an_error(lines: list[str]) -> None:
    """No text gives anything but a connection or InvalidInput with the name of the file."""
    text = "\n".join(["bootstrap.servers=a:1", *lines])
    try:
        parsed = Connection.parse(text, name="demo", source="demo.properties", folder=Path("/none"))
        said = parsed.source
    except InvalidInput as error:
        said = str(error)
    assert "demo.properties" in said


@given(PRINTABLE)
def test_a_quoted_password_is_read_as_it_was_meant(password: str) -> None:
    """Any text, escaped for JAAS and then for a properties file, is read back unchanged."""
    octal = "".join(f"\\{ord(char):03o}" for char in password)
    jaas = f'a.PlainLoginModule required password="{octal}";'
    escaped = jaas.replace("\\", "\\\\")
    (entry,) = read_java(f"sasl.jaas.config={escaped}", source="-")
    assert entry.value == jaas
    assert parse_jaas(entry.value, "-").options == {"password": password}


@given(st.lists(st.sampled_from(SERVERS) | st.text(max_size=3), max_size=6).map("".join))
def test_an_address_that_is_taken_can_be_looked_up(server: str) -> None:
    """An address is rejected with its line, or is a host and a valid port."""
    try:
        Connection.of({"bootstrap.servers": server}, name="demo", source="demo.properties")
    except InvalidInput as error:
        assert str(error).startswith("demo.properties: ")  # noqa: PT017 - half of the promise
        return
    for at in map(Broker.at, server.split(",")):
        assert at.host.encode("idna")
        assert 0 < at.port < 65536


@given(st.from_regex(CONNECTION_NAME, fullmatch=True))
@example("x" * 200)
def test_a_name_that_check_takes_can_be_looked_for(name: str) -> None:
    """Such a name is a file that exists or not, never an impossible file name."""
    with pytest.raises(InvalidInput, match=f"^there is no connection {re.escape(name)}. Searched"):
        find_connection(name)
