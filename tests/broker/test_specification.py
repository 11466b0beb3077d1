"""KIP-546's filter: the same entities as the broker's filter, and the same errors."""

import json
from collections.abc import Iterator, Sequence
from itertools import product

import pytest
from kafka.protocol.admin.client_quotas import DescribeClientQuotasRequest

from quota_ops.kafka.client.broker_client import BrokerClient
from quota_ops.kafka.cluster import open_cluster
from quota_ops.kafka.connection import Connection
from quota_ops.kafka.messages import get_error_name, parse_quotas
from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.model.errors import InvalidInput
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.filter import Match
from quota_ops.model.quotas.specification import parse_filter
from tests.writing import empty, write

USERS, CLIENTS = ("alice", None), ("app", None)
SHAPES: tuple[dict[str, str | None], ...] = (
    *({"user": user} for user in (*USERS, "<default>", "a,b")),
    *({"client-id": client} for client in CLIENTS),
    *({"user": user, "client-id": client} for user, client in product(USERS, CLIENTS)),
    {"ip": "10.0.0.1"},
    {"ip": None},
)
STORED = frozenset(map(Entity.of, SHAPES))
Part = tuple[str, Match, str | None]
CHOICES: dict[str, tuple[tuple[Match, str | None] | None, ...]] = {
    kind: (None, (Match.DEFAULT, None), (Match.ANY, None), *((Match.EXACT, name) for name in names))
    for kind, names in {
        "user": ("alice", "bob", "<default>", ""),
        "client-id": ("app",),
        "ip": ("10.0.0.1", ""),
    }.items()
}
EVERY = tuple(
    tuple((kind, *choice) for kind, choice in zip(CHOICES, chosen, strict=True) if choice)
    for chosen in product(*CHOICES.values())
)
ODD: tuple[tuple[Part, ...], ...] = (
    (("group", Match.EXACT, "a"),),
    (("", Match.ANY, None),),
    (("user", Match.EXACT, "alice"), ("user", Match.EXACT, "alice")),
    (("user", Match.EXACT, "alice"), ("user", Match.ANY, None)),
    (("group", Match.EXACT, "a"), ("", Match.DEFAULT, None)),
    (("user", Match.EXACT, "a"), ("ip", Match.DEFAULT, None), ("group", Match.ANY, None)),
    (("group", Match.DEFAULT, None), ("group", Match.DEFAULT, None)),
)


@pytest.fixture(name="client", scope="module")
def _client(broker: RunningBroker) -> Iterator[BrokerClient]:
    """Connect to the broker while it stores the entities of STORED."""
    text = f"bootstrap.servers={broker.bootstrap()}"
    connection = Connection.parse(text, name="demo", source="a test")
    # So many that they do not hold this test's own connections back.
    many = {"connection_creation_rate": 1e6}
    limits = {
        entity.text: many if entity.types == ("ip",) else {"producer_byte_rate": 5.0}
        for entity in STORED
    }
    with open_cluster(connection, cluster_id=None) as cluster:
        write(cluster, limits)
        client = BrokerClient(connection, cluster.brokers[0], 10.0)
        yield client
        client.close()
        empty(cluster)


def by_the_broker(client: BrokerClient, parts: Sequence[Part], *, strict: bool) -> object:
    """Return the entities that the broker's own filter accepts, or its error."""
    components = [(kind, match.value, name) for kind, match, name in parts]
    request = DescribeClientQuotasRequest(components=components, strict=strict)
    response = client.send(request, 10.0)
    if response.error_code:
        return f"{response.error_message} ({get_error_name(response.error_code)})"
    return {row.entity for row in parse_quotas(response.entries)}


def by_us(parts: Sequence[Part], *, strict: bool) -> object:
    """Return the same by quota-ops' filter, on the stored entities."""
    said: dict[Match, list[str]] = {match: [] for match in Match}
    for kind, match, name in parts:
        said[match].append(kind if name is None else f"{kind}={json.dumps(name)}")
    try:
        wanted = parse_filter(
            said[Match.EXACT], said[Match.DEFAULT], said[Match.ANY], strict=strict
        )
    except InvalidInput as error:
        return error.message
    return {entity for entity in STORED if wanted.accepts(entity)}


@pytest.mark.parametrize("strict", [False, True])
def test_our_filter_is_the_brokers(client: BrokerClient, *, strict: bool) -> None:
    """Both filters accept the same entities, and reject the same filters, for all three types."""
    order = {Match.EXACT: 0, Match.DEFAULT: 1, Match.ANY: 2}
    for mix in (*EVERY, *ODD):
        parts = sorted(mix, key=lambda part: order[part[1]])  # the order in which flags are read
        assert by_us(parts, strict=strict) == by_the_broker(client, parts, strict=strict), parts
