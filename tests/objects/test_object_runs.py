"""The commands with a run store in a bucket, on a real broker and a real S3 server."""

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.model.ledger_edits import VERIFIED
from quota_ops.store import ledger
from quota_ops.store.run_folder import PAGE, RunFolder
from quota_ops.store.run_store import ENVIRONMENT, find_run_store
from tests.cli.test_screens import KEY
from tests.lab import Lab, open_lab
from tests.objects.server import S3Server


@pytest.fixture(name="lab")
def _lab(broker: RunningBroker, tmp_path: Path) -> Iterator[Lab]:
    with open_lab(broker, tmp_path) as lab:
        yield lab


def test_a_quota_lives_in_a_bucket(lab: Lab, s3: S3Server, address: str) -> None:
    """Reconcile, hold, runs, show and prune work as with a folder, and leave no file."""
    environment = {**s3.environment(), ENVIRONMENT: address}
    store = find_run_store(address)

    def run(*arguments: str) -> str:
        ended = lab.cli(*arguments, environment=environment)
        assert (ended.returncode, ended.stderr) == (0, "")
        return ended.stdout

    lab.desire({"user=alice": {KEY: 1000.0}, "user=bob": {KEY: 2000.0}})
    assert f"report: {address}/runs/demo/" in run("reconcile", "demo")
    lab.desire({"user=alice": {KEY: 1100.0}, "user=bob": {KEY: 2100.0}})
    run("hold", "demo", "--names", "user=bob", "--until", "1h", "--reason", "INC-31")
    run("reconcile", "demo")
    assert lab.stored() == {"user=alice": {KEY: 1100.0}, "user=bob": {KEY: 2000.0}}

    lab.desire({"user=alice": {KEY: 1200.0}, "user=bob": {KEY: 2100.0}})
    planned = run("plan", "demo")
    run(*shlex.split(planned.partition("\nnext: quota-ops ")[2]))

    rows = ledger.read(store.ledger(lab.cluster.cluster_id)).rows
    known = {row.entity: row.value for row in rows if row.state == VERIFIED}
    assert known == {"user=alice": 1200.0, "user=bob": 2000.0}

    listed = run("runs", "demo")
    runs = store.runs("demo")
    assert len(runs) == 3
    assert all(one.name in listed for one in runs)
    assert "user=alice" in run("show", "last")
    assert all(RunFolder(one).has(PAGE) for one in runs)
    assert run("prune", "--keep", "1d").startswith(f"Nothing to remove from {address}")
    assert {one.name for one in lab.root.iterdir()} == {
        ".cache",
        "desired_state",
        "demo.properties",
    }


def test_nothing_is_sent_without_write_permission(
    lab: Lab, s3: S3Server, address: str, login: Callable[[str], None]
) -> None:
    """A run that could not record what it writes is refused, and the cluster stays as it is."""
    login("reader")
    lab.desire({"user=alice": {KEY: 1000.0}})

    ended = lab.cli(
        "reconcile", "demo", environment={**s3.environment("reader"), ENVIRONMENT: address}
    )

    assert ended.returncode == 2
    assert "cannot be written: these credentials lack the permission\n" in ended.stderr
    assert lab.stored() == {}
    assert find_run_store(address).root.walk() == ()
