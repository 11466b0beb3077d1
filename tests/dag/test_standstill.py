"""Pauses and holds stop writes in Airflow too, and drift reports continue."""

from datetime import UTC, datetime, timedelta

import pytest

from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.model.plans.hold import Hold
from quota_ops.model.quotas.specification import parse_exactly
from quota_ops.store.ledger import holds
from quota_ops.store.places.run_store import RunStore, open_place
from tests.dag.repository import Quotas, Repository
from tests.dag.test_reconcile import DONE, said
from tests.places import on_disk

pytestmark = pytest.mark.usefixtures("embedded")


def test_nothing_is_written(demo: Repository, quotas: Quotas) -> None:
    """The plan is made and validated, apply fails with the reason, and the drift DAG succeeds."""
    demo.add_policy("demo", "paused: broker upgrade")

    run = demo.run("reconcile_demo")

    ends = {"apply": "failed", "verify": "skipped", "report": "failed"}
    assert (run.state, run.tasks, run.tries["apply"]) == ("failed", DONE | ends, 1)
    assert said(run, "apply").startswith("demo is paused: broker upgrade")
    assert quotas.stored() == {}
    assert demo.run("drift").state == "success"


def test_what_is_held_is_left(demo: Repository, quotas: Quotas, broker: RunningBroker) -> None:
    """The run succeeds without the held quota, and its report shows until when, who and why."""
    now = datetime.now(UTC)
    who = parse_exactly(["user=alice"], [], [])
    hold = Hold(who, now + timedelta(hours=1), "anna", "a load test", now)
    holds.add(RunStore(open_place(demo.store)).of_cluster(broker.config.cluster_id).holds, hold)

    run = demo.run("reconcile_demo")

    assert (run.state, run.tasks) == ("success", DONE)
    assert quotas.stored() == {}
    assert hold.text in (on_disk(run.folder()) / "report.txt").read_text()
