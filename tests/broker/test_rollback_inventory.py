"""rollback and the inventory of clients: of the undone run, and one that cannot be read."""

import pytest

from quota_ops.store.places import object_client
from quota_ops.store.places.object_client import open_client
from quota_ops.store.run.files import CLIENT_COUNTS
from tests.broker.going_back import plan_back, reconcile
from tests.lab import Lab
from tests.writing import State

KEY = "producer_byte_rate"
BEFORE: State = {"user=raised": {KEY: 1000.0}, "user=gone": {KEY: 5.0}}
AFTER: State = {"user=raised": {KEY: 1500.0}}


def test_a_cluster_with_an_inventory_of_clients(lab: Lab) -> None:
    """A rollback counts the clients of the undone run's inventory, or none if it had none."""
    reconcile(lab, BEFORE, "c1")
    without = reconcile(lab, AFTER, "c2")
    (lab.folder / "clients.csv").write_text("user,client-id\nb,app\n")
    inventory = {"inventory": "clients.csv"}
    counted = reconcile(lab, BEFORE, "c3", **inventory)

    assert not plan_back(lab, without).has(CLIENT_COUNTS)
    assert plan_back(lab, counted).read(CLIENT_COUNTS).total.clients == 1


@pytest.mark.local_store
def test_an_inventory_that_cannot_be_reached(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that may cut a limit is blocked, and can be overridden; a rollback is not blocked."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
    monkeypatch.setattr(object_client, "MOST_RETRIES", 0)
    open_client.cache_clear()
    lab.desire({"user=a": {KEY: 10.0}})
    lab.run("reconcile")

    lab.desire({"user=a": {KEY: 9.0}}, inventory="s3://nowhere/clients.csv")
    outside = {"QUOTA_OPS_INVENTORIES": "s3://other s3://nowhere/client"}
    elsewhere = lab.call("plan", "demo", environment=outside)
    inside = {"QUOTA_OPS_INVENTORIES": "s3://other s3://nowhere/"}
    blocked = lab.call("plan", "demo", environment=inside)
    allow = ("--allow", "blast_radius", "--allow", "policy_changed", "--reason", "INC-31")
    allowed = lab.call("reconcile", "demo", *allow, environment=inside)
    back = lab.call("rollback", "demo/last", environment=inside)

    why = "s3://nowhere cannot be listed: the store cannot be reached"
    refused = "s3://nowhere/clients.csv was not read: it is not below an address in QUOTA_OPS_INVE"
    assert elsewhere.returncode == 1
    assert f"the clients that lose cannot be counted: {refused}" in elsewhere.stdout
    assert (blocked.returncode, allowed.returncode, back.returncode) == (1, 0, 0), back.stderr
    assert f"blast_radius: the clients that lose cannot be counted: {why}" in blocked.stdout
    assert f"The clients of the inventory are not counted: {why}" in back.stdout
    open_client.cache_clear()
