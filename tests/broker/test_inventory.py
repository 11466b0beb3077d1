"""The clients that a cluster knows: what each identity may read, and what is unknown of them."""

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from confluent_kafka import Consumer
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    KafkaAdminClient,
    NewTopic,
    ResourcePattern,
    ResourceType,
)

from quota_ops.kafka.inventory import read_clients
from quota_ops.kafka.preflight import preflight
from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.model.usage.digest import DIGEST, DigestRow
from quota_ops.sql.embedded_effects import read_inventory
from quota_ops.sql.inventory import find_inventory
from quota_ops.store.history.digests import list_past_days, write_digest
from quota_ops.store.places import parquet
from quota_ops.store.places.run_store import RunStore, open_place
from tests.broker.rights import USERS, connection_of, properties_of, rights, scram_logins, wait_for
from tests.calling import call_cli
from tests.lab import Lab

DESCRIBE = ACL(
    "User:reader",
    "*",
    ACLOperation.DESCRIBE,
    ACLPermissionType.ALLOW,
    ResourcePattern(ResourceType.CLUSTER, "kafka-cluster"),
)
CLUSTER = "cluster_id: {}\nconnection: demo\n"


def leave_day(folder: Path, cluster_id: str) -> None:
    """Leave a recorded day in which etl of alice used 990 B/s, and bob any amount."""
    (day,) = list_past_days(datetime.now(UTC), 1)
    rows = [
        DigestRow(day, "1", "producer_byte_rate", user, client_id, 0, 142, (3600,), 990.0, False)
        for user, client_id in (("alice", "etl"), ("bob", None))
    ]
    digest = parquet.from_rows(DIGEST, rows)
    write_digest(RunStore(open_place(folder)), cluster_id, day, digest)


def call(folder: Path, broker: RunningBroker, user: str, *options: str) -> tuple[int, str, str]:
    """Return the exit code and both outputs of the command for a user."""
    cluster = folder / "desired_state" / "demo"
    cluster.mkdir(parents=True, exist_ok=True)
    (cluster / "cluster.yaml").write_text(CLUSTER.format(broker.config.cluster_id), "utf-8")
    connection = folder / "demo.properties"
    connection.write_text(properties_of(broker, user), "utf-8")
    connection.chmod(0o600)
    arguments = ["inventory", "demo", "--connection", str(connection), *options]
    ended = call_cli(arguments, {"HOME": str(folder)}, folder)
    return ended.returncode, ended.stdout, ended.stderr


def test_users_acls_and_members(secured_broker: RunningBroker, tmp_path: Path) -> None:
    """Admin sees all; whoever may describe the cluster alone sees no members; none sees nothing."""
    server, reader = secured_broker.bootstrap(), connection_of(secured_broker, "reader")
    with (
        rights(secured_broker),
        scram_logins(secured_broker),
        closing(KafkaAdminClient(bootstrap_servers=server)) as admin,
    ):
        admin.create_topics([NewTopic("inventory", 1, 1)])
        member = Consumer(
            {"bootstrap.servers": server, "group.id": "inventory", "client.id": "=bälance,1"}
        )
        try:
            member.subscribe(["inventory"])
            while not member.assignment():
                member.poll(0.1)
            code, shown, error = call(tmp_path, secured_broker, "admin")
            kept = call(tmp_path, secured_broker, "admin", "--out", "clients.jsonl")
            unknown = call(tmp_path, secured_broker, "admin", "--rates", "--run-store", "store")
            leave_day(tmp_path / "store", secured_broker.config.cluster_id)
            rated = call(tmp_path, secured_broker, "admin", "--rates", "--run-store", "store")
            admin.create_acls([DESCRIBE])
            cluster = preflight(reader, secured_broker.config.cluster_id)
            wait_for(lambda: read_clients(reader, cluster)[1].skipped, None)
            limited = read_clients(reader, cluster)
            admin.delete_acls([DESCRIBE])
            refused = call(tmp_path, secured_broker, "none", "--out", "clients.csv")
        finally:
            member.close()
            admin.delete_topics(["inventory"])

    users = sorted(USERS)
    lines = ['<unknown>,"=bälance,1"', *(f"{user},<unknown>" for user in users)]
    assert unknown[:2] == (2, "")
    assert unknown[2].startswith("no day of the last 30 is recorded in ")
    rates = ['<unknown>,"=bälance,1",', "alice,etl,990", *(f"{user},<unknown>," for user in users)]
    heading = "user,client-id,producer_byte_rate"
    assert rated[:2] == (0, "\n".join([heading, *sorted(rates), ""]))
    assert (code, shown) == (0, "\n".join(["user,client-id", *lines, ""]))
    assert error.startswith("1 cell would be a formula in a spreadsheet, such as =bälance,1: ")
    assert kept == (0, "", f"clients.jsonl: {len(lines)} clients\n")
    assert [source.skipped for source in limited][:2] == [None, None]
    assert limited[2].skipped == "1 of 1 group: Broker: Group authorization failed"
    assert {user for user, _ in limited[1].clients} == {"reader", "writer"}
    refusal = "you are not authorized (this needs Describe on the cluster)"
    assert not (tmp_path / "clients.csv").exists()
    assert (refused[0], refused[1]) == (3, "")
    assert refused[2].startswith(f"skipped the SCRAM users: {refusal}\nskipped the ACLs: ")

    (tmp_path / "first.csv").write_text(shown, "utf-8")
    found, same = (
        read_inventory(find_inventory(open_place(tmp_path / name))).select(["user", "client-id"])
        for name in ("first.csv", "clients.jsonl")
    )
    assert (found.num_rows, sorted(found.to_pylist(), key=str)) == (
        len(lines),
        sorted(same.to_pylist(), key=str),
    )


def test_a_cluster_without_clients(lab: Lab) -> None:
    """Each source is named, and nothing is written: an inventory without clients is invalid."""
    lab.desire({})
    ended = lab.call("inventory", "demo", "--out", str(lab.root / "clients.csv"))

    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        "skipped the ACLs: the cluster has no authorizer\n"
        "cluster demo shows no client: it has no SCRAM users and no members of consumer groups\n"
        "  Nothing was written. Write the inventory by hand, or export the clients from where they "
        "are registered.\n"
    )
    assert not (lab.root / "clients.csv").exists()
