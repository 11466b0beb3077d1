"""Limits of the whole cluster while brokers of a real cluster stop, leave and join."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from kafka.admin import KafkaAdminClient, NewTopic

from quota_ops.model.runs.outcome import Status
from quota_ops.runs.chain import RESUMED
from quota_ops.store.run.files import BROKERS, PLAN
from tests.broker.stage_runs import outcomes
from tests.faults.machine import Machine, start_machine
from tests.lab import Lab, error_of, open_lab
from tests.looking import seen_in_time

RATES = """\
owner: team
quotas:
  - {user: etl, cluster_limits: {producer_byte_rate: 300}}
  - {user: shop, topics: [orders], cluster_limits: {producer_byte_rate: 100}}
"""
WHOLE = "{producer_byte_rate: 900}"


@contextmanager
def open_rates(machine: Machine, root: Path) -> Iterator[Lab]:
    """Open a lab with the rates on a machine, whose brokers may have changed."""
    with machine.healed(), open_lab(machine.broker, root) as lab:
        lab.desire({})
        (lab.folder / "team.yaml").write_text(RATES, "utf-8")
        yield lab


def create_orders(machine: Machine) -> None:
    """Create the topic orders with partitions on brokers 1 and 2, and wait until each knows it."""
    admin = KafkaAdminClient(bootstrap_servers=machine.broker.bootstrap())
    partitions = {0: [1, 2], 1: [2, 1]}
    admin.create_topics([NewTopic("orders", -1, -1, replica_assignments=partitions)])
    admin.close()
    for node in machine.broker.nodes:  # the first broker that a new client reaches responds
        client = AdminClient({"bootstrap.servers": node.address()})
        assert seen_in_time(lambda: "orders" in client.list_topics(timeout=10).topics, True)  # noqa: B023


def stored(lab: Lab) -> dict[str, float | None]:
    """Return the stored limit of each user."""
    return {entity: limits["producer_byte_rate"] for entity, limits in lab.stored().items()}


def moved(lab: Lab) -> list[str]:
    """Return what a plan would change, and why, as people read it."""
    return re.findall(r"over [^:]+\)", lab.cli("plan", "demo").stdout)


def test_brokers_stop_leave_and_join(three: Machine, tmp_path: Path) -> None:
    """A restart moves no limit, a broker that leaves does; a plan is stale when it is back.

    A file with a topic that does not exist is left out as invalid ones are; if it is the only
    file, that is an error, and nothing is written.
    """
    with open_rates(three, tmp_path) as lab:
        missing = lab.cli("reconcile", "demo")
        assert (missing.returncode, stored(lab)) == (2, {})
        why = "producer_byte_rate of 100 B/s per cluster: No topic is orders."
        assert f"team.yaml:4:1  {why}" in missing.stderr

        whole, owner = lab.folder / "whole.yaml", "owner: data\nquotas:\n"
        whole.write_text(f"{owner}  - {{user: all, cluster_limits: {WHOLE}}}\n", "utf-8")
        others = lab.cli("reconcile", "demo")
        assert (others.returncode, stored(lab)) == (6, {"user=all": 300.0})
        assert f"team.yaml (owner team) is invalid: line 4: {why} Correct topics" in others.stdout
        assert "nothing is cleared on demo, and 0 quotas stay as stored, not judged.\n" in (
            others.stdout
        )
        whole.unlink()
        create_orders(three)
        first = lab.run("reconcile")
        assert stored(lab) == {"user=etl": 100.0, "user=shop": 50.0}
        assert first.read_json(BROKERS) == {"1": ["orders"], "2": ["orders"], "3": []}

        three.nodes[3].stop()
        assert moved(lab) == []
        three.unregister(3)
        assert moved(lab) == ["over 2 brokers (3 -> 2 brokers)"]
        waiting = lab.run("plan")
        three.start()
        approved = lab.resume(waiting, approve=waiting.read_json(PLAN)["digest"])
        error = error_of(approved, RESUMED)

        assert "3 brokers share the limit now, and 2 did in the plan" in str(error)
        assert outcomes(waiting) == {"user=etl": Status.STALE}
        assert stored(lab) == {"user=etl": 100.0, "user=shop": 50.0}
        assert moved(lab) == []


@pytest.mark.matrix
def test_a_fourth_broker_joins_and_one_leaves(tmp_path: Path) -> None:
    """The limit of each broker falls when a fourth one joins, and rises when one leaves."""
    with start_machine(4, tmp_path / "four") as machine:
        create_orders(machine)
        machine.nodes[4].stop()
        machine.unregister(4)
        with open_rates(machine, tmp_path) as lab:
            assert lab.cli("reconcile", "demo").returncode == 0
            assert stored(lab) == {"user=etl": 100.0, "user=shop": 50.0}
            machine.start()
            assert moved(lab) == ["over 4 brokers (3 -> 4 brokers)"]
            assert lab.cli("reconcile", "demo").returncode == 0
            assert stored(lab) == {"user=etl": 75.0, "user=shop": 50.0}
            machine.nodes[3].stop()
            machine.unregister(3)
            assert moved(lab) == ["over 3 brokers (4 -> 3 brokers)"]
            assert lab.cli("reconcile", "demo").returncode == 0
            assert stored(lab) == {"user=etl": 100.0, "user=shop": 50.0}
