"""Authentication with OAuth tokens, at a real broker that verifies their signature."""

import logging
import time
from pathlib import Path
from typing import Any

import pytest

from quota_ops.kafka.cluster import open_cluster
from quota_ops.kafka.connection import Connection
from quota_ops.model.errors import QuotaOpsError
from quota_ops.model.quotas.alteration import Alteration
from quota_ops.model.quotas.entity import Entity
from tests.broker.conftest import Listeners
from tests.broker.token_endpoint import CLIENT, SCOPE, SECRET
from tests.clock import PROMPTLY
from tests.yaml_cases import load_yaml

FAILURES = load_yaml(
    (Path(__file__).parents[1] / "cases/connection/tokens.yaml").read_text("utf-8")
)
JAVA = f"""\
bootstrap.servers=${{ADDRESS}}
security.protocol=SASL_SSL
ssl.truststore.type=PEM
ssl.truststore.location=ca.pem
sasl.mechanism=OAUTHBEARER
sasl.oauthbearer.token.endpoint.url=${{ISSUER}}/token
sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required \\
  clientId="{CLIENT}" clientSecret="{SECRET}" scope="{SCOPE}" extension_pool="p 1";
"""
LIBRDKAFKA = f"""\
bootstrap.servers=${{ADDRESS}}
security.protocol=sasl_ssl
sasl.mechanism=OAUTHBEARER
sasl.oauthbearer.method=oidc
sasl.oauthbearer.token.endpoint.url=${{URL}}
sasl.oauthbearer.client.id={CLIENT}
sasl.oauthbearer.client.secret=${{SECRET}}
sasl.oauthbearer.scope=${{SCOPE}}
https.ca.location=${{CA}}
ssl.ca.location=ca.pem
"""


def connect(listeners: Listeners, text: str, **words: str) -> Connection:
    """Read a connection file with some words replaced."""
    for name, word in {
        "URL": "${ISSUER}/token",
        "SECRET": SECRET,
        "SCOPE": SCOPE,
        "CA": "ca.pem",
        **words,
        "ADDRESS": listeners.addresses["TOKENS"],
        "ISSUER_TLS": listeners.tokens.https,
        "ISSUER": listeners.tokens.http,
        **listeners.addresses,
    }.items():
        text = text.replace(f"${{{name}}}", word)
    return Connection.parse(text, name="demo", source="demo.properties", folder=listeners.folder)


@pytest.mark.parametrize(
    ("text", "url"), [(JAVA, ""), (LIBRDKAFKA, "${ISSUER_TLS}/token")], ids=["java", "https"]
)
def test_a_token_lets_both_clients_in(
    text: str, url: str, listeners: Listeners, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each client gets a token and connects with it, without a message."""
    with open_cluster(connect(listeners, text, URL=url), cluster_id=listeners.cluster_id) as found:
        assert found.describe() == ()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("case", FAILURES, ids=lambda case: case["case"])
def test_every_way_to_get_no_token(
    case: Any, listeners: Listeners, caplog: pytest.LogCaptureFixture
) -> None:
    """Each failure to get a token has its class and text within five seconds, without a secret."""
    caplog.set_level(logging.DEBUG)
    connection = connect(listeners, LIBRDKAFKA, **case["words"])
    started = time.monotonic()
    with pytest.raises(QuotaOpsError) as error, open_cluster(connection, cluster_id=None):
        pass
    assert time.monotonic() - started < PROMPTLY
    words = case["message"].replace("${ADDRESS}", listeners.addresses["TOKENS"])
    words = words.replace("${NOBODY}", listeners.addresses["NOBODY"])
    words = words.replace("${ISSUER_TLS}", listeners.tokens.https)
    assert str(error.value) == words.replace("${ISSUER}", listeners.tokens.http)
    assert type(error.value).__name__ == case["error"]
    assert SECRET not in str(error.value) + caplog.text


def test_a_login_is_renewed(listeners: Listeners) -> None:
    """A broker that requires a new login from time to time gets it, by the token still valid."""
    connection = connect(listeners, LIBRDKAFKA)
    with open_cluster(connection, cluster_id=None) as cluster:
        asked = len(listeners.tokens.asked)
        for _ in range(2):
            time.sleep(0.7)
            cleared = Alteration(Entity.of({"user": "nobody"}), (("producer_byte_rate", None),))
            assert [response.code for response in cluster.apply([cleared])] == [0]
        assert len(listeners.tokens.asked) == asked
