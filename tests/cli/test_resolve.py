"""resolve on the command line: on a broker and on a snapshot."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from quota_ops.lab.kafka.broker import RunningBroker
from tests.lab import Lab, open_lab
from tests.writing import State

SOURCE = "Source: not in Git; not managed: who set it, and when, is unknown.\n"
MIB = 2.0**20
STATE: State = {
    "user=alice": {"producer_byte_rate": 15 * MIB, "controller_mutation_rate": 5.0},
    "client-id=app,user=<default>": {"producer_byte_rate": 5 * MIB},
    "user=<default>": {"producer_byte_rate": 10 * MIB, "request_percentage": 50.0},
    "user=replicator": {"producer_byte_rate": 2.0**63},
    "client-id=<default>": {"producer_byte_rate": 2 * MIB},
    "ip=10.20.0.7": {"connection_creation_rate": 50.0},
    "ip=<default>": {"connection_creation_rate": 900.0},
}
ALICE_APP = ("--user", "alice", "--client-id", "app")


@pytest.fixture(name="lab", scope="module")
def _lab(broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Create a cluster that stores STATE, and a snapshot of it."""
    with open_lab(broker, tmp_path_factory.mktemp("resolve")) as lab:
        lab.desire({})
        lab.put(STATE)
        snapshot = lab.call("describe", "demo", "--format", "jsonl")
        (lab.root / "snapshot.jsonl").write_text(snapshot.stdout, "utf-8")
        yield lab


def resolve(lab: Lab, *arguments: str) -> str:
    """Return standard output of a resolve that succeeds without warnings."""
    done = lab.call("resolve", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_ladder(lab: Lab) -> None:
    """--explain shows all eight levels in order, the one that applies, and its total effect."""
    key = ("--key", "producer_byte_rate")

    assert resolve(lab, "demo", *ALICE_APP, *key, "--explain") == (
        "producer_byte_rate for user alice, client app on demo (1 broker)\n"
        "\n"
        "  1  user and client       user=alice, client-id=app            -\n"
        "  2  user, any client      user=alice, client-id=<default>      -\n"
        "  3  user                  user=alice                           15 MiB/s  <- applies\n"
        "  4  any user, client      user=<default>, client-id=app        5 MiB/s   overridden\n"
        "  5  any user, any client  user=<default>, client-id=<default>  -\n"
        "  6  any user              user=<default>                       10 MiB/s  overridden\n"
        "  7  client                client-id=app                        -\n"
        "  8  any client            client-id=<default>                  2 MiB/s   overridden\n"
        "\n"
        "15 MiB/s on each broker, shared by all of alice's clients without a quota of their "
        f"client id that comes first; at most 15 MiB/s over the cluster.\n{SOURCE}"
    )


def test_the_text_of_every_key(lab: Lab) -> None:
    """By default each key has its value, its source, what it overrides, and who shares it."""
    assert resolve(lab, "demo", "--names", "user=alice,client-id=app", "--ip", "10.20.0.7") == (
        "{user=alice, client-id=app}\n"
        "  producer_byte_rate=15728640.0  15 MiB/s of {user=alice} (level 3, user)\n"
        "    overrides 5 MiB/s of {user=<default>, client-id=app} (level 4, user-default+client-id)"
        "\n"
        "    overrides 10 MiB/s of {user=<default>} (level 6, user-default)\n"
        "    overrides 2 MiB/s of {client-id=<default>} (level 8, client-id-default)\n"
        "    15 MiB/s on each broker, shared by all of alice's clients without a quota of "
        f"their client id that comes first; at most 15 MiB/s over the cluster.\n    {SOURCE}"
        "  consumer_byte_rate=unlimited\n"
        "    Nothing limits it.\n"
        "  request_percentage=50.0  50 % of {user=<default>} (level 6, user-default)\n"
        "    50 % of one thread's time on each broker, shared by all of alice's clients without "
        "a quota of their client id that comes first (a separate limit for each user); at most 50 "
        f"% over the cluster.\n    {SOURCE}"
        "  controller_mutation_rate=5.0  5 mutations/s of {user=alice} (level 3, user)\n"
        "    5 mutations/s over the whole cluster, at its active controller, shared by all of "
        f"alice's clients without a quota of their client id that comes first.\n    {SOURCE}"
        "{ip=10.20.0.7}\n"
        "  connection_creation_rate=50.0  50 connections/s of {ip=10.20.0.7} (ip)\n"
        "    overrides 900 connections/s of {ip=<default>} (ip-default)\n"
        "    50 connections/s on each node, brokers and controllers alike, from 10.20.0.7.\n"
        f"    {SOURCE}"
    )


def test_json(lab: Lab) -> None:
    """--format json has for each key value, level, rank, entity, what it overrides, who shares."""
    said = json.loads(resolve(lab, "demo", *ALICE_APP, "--ip", "10.0.0.1", "--format", "json"))

    assert list(said) == [
        "producer_byte_rate",
        "consumer_byte_rate",
        "request_percentage",
        "controller_mutation_rate",
        "connection_creation_rate",
    ]
    assert said["producer_byte_rate"] == rung(15 * MIB, "user", 3, {"user": "alice"}) | {
        "overridden": [
            rung(5 * MIB, "user-default+client-id", 4, {"user": None, "client-id": "app"}),
            rung(10 * MIB, "user-default", 6, {"user": None}),
            rung(2 * MIB, "client-id-default", 8, {"client-id": None}),
        ],
        "shared_by": {"user": "alice", "client-id": ""},
    }
    assert said["consumer_byte_rate"] == rung(None, None, None, None) | {
        "overridden": [],
        "shared_by": {"user": "", "client-id": "app"},
    }
    assert said["connection_creation_rate"] == rung(900.0, "ip-default", None, {"ip": None}) | {
        "overridden": [],
        "shared_by": {"ip": "10.0.0.1"},
    }


def rung(value: object, level: object, rank: object, entity: object) -> dict[str, object]:
    """Return the JSON of one level's limit."""
    return {"value": value, "level": level, "rank": rank, "entity": entity}


def test_a_snapshot_says_the_same(lab: Lab) -> None:
    """A snapshot gives the result of its cluster, without a connection; CLUSTER must match."""
    asked = (*ALICE_APP, "--ip", "10.0.0.1", "--format", "json")

    assert resolve(lab, "--actual", "snapshot.jsonl", *asked) == resolve(lab, "demo", *asked)
    assert resolve(lab, "demo", "--actual", "snapshot.jsonl", *asked) == resolve(
        lab, "demo", *asked
    )


def test_a_client_without_a_client_id(lab: Lab) -> None:
    """Without --client-id the limits for client ids are shown, and that they do not apply."""
    said = resolve(
        lab, "--actual", "snapshot.jsonl", "--user", "bob", "--key", "producer_byte_rate"
    )

    assert said == (
        '{user=bob, client-id=""}\n'
        "  producer_byte_rate=10485760.0  10 MiB/s of {user=<default>} (level 6, user-default)\n"
        "    10 MiB/s on each broker, shared by all of bob's clients without a quota of their "
        "client id that comes first (a separate limit for each user); at most that times the "
        "number of brokers over the cluster.\n"
        "    A connection without a client id escapes every limit for client ids: 2 MiB/s of "
        "{client-id=<default>} (level 8, client-id-default).\n"
    )


def test_who_is_exempted(lab: Lab) -> None:
    """An unlimited value is shown as an exemption, with its entity."""
    said = resolve(lab, "demo", "--user", "replicator", "--key", "producer_byte_rate")

    assert "{user=replicator} exempts it: nothing limits it.\n" in said


@pytest.mark.parametrize("value", ["nan", "inf", 1e308])
def test_a_value_that_limits_nobody(lab: Lab, value: object) -> None:
    """A number above every rate is shown as an exemption, and so is one that no rate is above."""
    row = {"entity": {"user": "bob"}, "key": "request_percentage", "value": value}
    (lab.root / "taken.jsonl").write_text(json.dumps(row), "utf-8")

    said = resolve(lab, "--actual", "taken.jsonl", "--user", "bob", "--key", "request_percentage")

    assert said.endswith("\n    {user=bob} exempts it: nothing limits it.\n")


def test_a_type_that_apache_kafka_does_not_have(lab: Lab) -> None:
    """A stored limit of a foreign type is named, and no client is called unlimited for sure."""
    row = {"entity": {"client-id-prefix": "ap"}, "key": "producer_byte_rate", "value": 1048576}
    (lab.root / "taken.jsonl").write_text(json.dumps(row), "utf-8")
    asked = ("--actual", "taken.jsonl", "--client-id", "app", "--key", "producer_byte_rate")
    stored = "1 MiB/s is stored for client-id-prefix=ap, a type of entity that Apache Kafka"
    assert resolve(lab, *asked).splitlines()[1:] == [
        "  producer_byte_rate=unlimited",
        "    No entity type of Apache Kafka limits it.",
        f"    {stored} does not have: brokers that have it may apply it to this client.",
    ]


def test_a_prefix_that_brokers_do_not_know(lab: Lab) -> None:
    """`User:alice` is resolved as that name, with a hint about the name that was meant."""
    said = resolve(lab, "demo", "--user", "User:alice", "--key", "producer_byte_rate")

    assert "level 6" in said
    assert "Brokers compare only the name: use --user alice.\n" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "resolve needs to know whose limit: --user, --client-id or --ip."),
        (("--user", "a"), "no cluster is specified"),
        (("demo", "--user", ""), "--user is empty."),
        (("demo", "--ip", "localhost"), "--ip localhost is not an IP address."),
        (("demo", "--ip", "010.20.0.7"), "--ip 010.20.0.7 is not an IP address."),
        (("demo", "--names", "ip=fe80::1%eth0"), "--ip fe80::1%eth0 is not an IP address."),
        (("demo", "--user", "a", "--names", "user=b"), "user is given as 'a' and as 'b'."),
        (("demo", "--names", "group=b"), "--names group=: brokers limit by user, client-id, ip."),
        (
            ("demo", "--user", "a", "--key", "connection_creation_rate"),
            "connection_creation_rate applies only to IP addresses.",
        ),
        (
            ("demo", "--ip", "::1", "--key", "request_percentage"),
            "request_percentage does not apply to IP addresses.",
        ),
        (("--actual", "broken.jsonl", "--user", "a"), "broken.jsonl:2: this is not a row of"),
        (("--actual", "twice.jsonl", "--user", "a"), "twice.jsonl:2: user=a has k twice."),
    ],
)
def test_what_cannot_be_resolved(lab: Lab, arguments: tuple[str, ...], message: str) -> None:
    """A question that makes no sense ends with 2 and names the mistake."""
    row = '{"entity": {"user": "a"}, "key": "k", "value": 1}\n'
    (lab.root / "broken.jsonl").write_text(row + '{"entity": {}}\n', "utf-8")
    (lab.root / "twice.jsonl").write_text(row + row, "utf-8")

    done = lab.call("resolve", *arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(message)


def test_the_place_of_a_file_that_is_not_there(lab: Lab, tmp_path: Path) -> None:
    """A missing snapshot is named."""
    done = lab.call("resolve", "--actual", str(tmp_path / "gone.jsonl"), "--user", "a")

    assert done.returncode == 2
    assert done.stderr == f"{tmp_path / 'gone.jsonl'} cannot be read: No such file or directory\n"
