"""Kafka's own kafka-configs.sh as a reference for describe and alter."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from quota_ops.cli import main
from quota_ops.desired.foreign import read_foreign_files
from quota_ops.kafka.cluster import Cluster
from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.tool import Tool
from tests.broker.kafka_configs import started_kafka_configs
from tests.looking import seen_in_time
from tests.writing import empty

WORDS = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}
TYPES = {"user": "users", "client-id": "clients", "ip": "ips"}
RATES = {"producer_byte_rate": 10_000_000.0, "request_percentage": 12.5}
CONNECTIONS = {"connection_creation_rate": 50.0}
Quotas = Mapping[Entity, Mapping[str, float]]


def quotas_of(*names: Mapping[str, str | None]) -> Quotas:
    """Return entities, each with the keys of its type."""
    return {Entity.of(name): CONNECTIONS if "ip" in name else RATES for name in names}


BY_KAFKA = quotas_of(
    {"user": "CN=alice, O=shop"},
    {"user": None},
    {"client-id": "100%25"},
    {"client-id": None},
    {"user": "名前", "client-id": " a\nb "},
    {"user": None, "client-id": None},
    {"user": "alice", "client-id": None},
    {"ip": "2001:db8::7"},
    {"ip": None},
)
BY_US = quotas_of(
    {"user": "a b,c=d"},
    {"user": "<default>"},
    {"user": None},
    {"client-id": "名前"},
    {"client-id": None},
    {"user": "100%25", "client-id": "line\nend"},
    {"user": None, "client-id": '"quoted"'},
    {"user": "alice", "client-id": None},
    {"user": None, "client-id": None},
    {"ip": "10.0.0.1"},
    {"ip": None},
)


@pytest.fixture(name="cluster")
def _cluster(demo: Cluster) -> Iterator[Cluster]:
    """Return the shared broker, and a desired state; its quotas are cleared at the end."""
    Path("desired_state/demo").mkdir(parents=True)
    Path("desired_state/demo/cluster.yaml").write_text(
        f"cluster_id: {demo.cluster_id}\nconnection: demo\n"
    )
    yield demo
    empty(demo)


def wait_for(cluster: Cluster, expected: Quotas) -> Quotas:
    """Return what the cluster stores as soon as it is as expected, or after a minute."""

    def look() -> Quotas:
        quotas: dict[Entity, dict[str, float]] = {}
        for row in cluster.describe():
            quotas.setdefault(row.entity, {})[row.key] = row.value
        return quotas

    return seen_in_time(look, expected)


def test_what_kafkas_command_sets_we_describe(broker: RunningBroker, cluster: Cluster) -> None:
    """Every entity shape, with difficult names, is described as the same entity."""
    with started_kafka_configs(broker) as kafka_configs:
        for entity, keys in BY_KAFKA.items():
            added = ",".join(f"{key}={value}" for key, value in keys.items())
            call = ["--alter", "--add-config", added]
            for kind, name in entity.user_first:
                call += ["--entity-type", TYPES[kind]]
                call += ["--entity-default"] if name is None else ["--entity-name", name]
            kafka_configs(*call)

    assert wait_for(cluster, BY_KAFKA) == BY_KAFKA
    lines = CliRunner().invoke(main, ["describe", "demo", "--format", "jsonl"]).stdout.splitlines()
    _, *said = [json.loads(line) for line in lines]
    assert {(Entity.of(one["entity"]), one["key"], one["value"]) for one in said} == {
        (entity, key, value) for entity, keys in BY_KAFKA.items() for key, value in keys.items()
    }


def test_what_we_set_kafkas_command_prints(broker: RunningBroker, cluster: Cluster) -> None:
    """Kafka's command prints every entity shape that alter writes as it was meant."""
    changes = [
        {"entity": entity.as_dict(), "key": key, "value": value}
        for entity, keys in BY_US.items()
        for key, value in keys.items()
    ]
    Path("changes.jsonl").write_text("\n".join(map(json.dumps, changes)))
    override = ["--allow", "default_touched", "--reason", "a test"]
    altered = CliRunner().invoke(main, ["alter", "demo", "--from", "changes.jsonl", *override])
    assert (altered.exit_code, altered.stderr) == (0, "")
    assert wait_for(cluster, BY_US) == BY_US

    shapes = (("users",), ("clients",), ("users", "clients"), ("ips",))
    with started_kafka_configs(broker) as kafka_configs:
        printed = [
            kafka_configs("--describe", *(w for t in one for w in ("--entity-type", t)))
            for one in shapes
        ]

    Path("printed.txt").write_text("".join(printed))
    quotas = read_foreign_files([(Tool.KAFKA_CONFIGS, Path("printed.txt"))])
    assert {(quota.entity, quota.key, quota.value) for quota in quotas} == {
        (entity, key, value) for entity, keys in BY_US.items() for key, value in keys.items()
    }, "import reads what Kafka's command prints"
    found = [one for text in printed for one in read(text)]
    assert dict(found) == {words(entity): dict(keys) for entity, keys in BY_US.items()}


def words(entity: Entity) -> str:
    """Return an entity as Kafka's command prints it."""
    return ", ".join(
        f"the default {WORDS[kind]}" if name is None else f"{WORDS[kind]} '{name}'"
        for kind, name in entity.user_first
    )


def read(text: str) -> Iterator[tuple[str, dict[str, float]]]:
    """Return the entities and quotas that Kafka's command prints; a name may contain a line end."""
    for part in text.split("Quota configs for ")[1:]:
        match = re.fullmatch(r"(.*) are ([^ ]+=.*)", part.strip(), re.DOTALL)
        assert match is not None
        pairs = (pair.split("=") for pair in match[2].split(", "))
        yield match[1], {key: float(value) for key, value in pairs}
