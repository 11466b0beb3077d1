"""verify on three brokers: each is queried, an unreachable one is named, and no query hangs."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from getpass import getuser
from pathlib import Path
from threading import Timer

import pytest

from quota_ops.kafka.cluster import Cluster, open_cluster
from quota_ops.kafka.connection import Connection
from quota_ops.kafka.preflight import preflight
from quota_ops.lab.kafka.node import RunningNode
from quota_ops.model.errors import Refused, Unreachable
from quota_ops.model.plans.ledger_edits import INTENDED
from quota_ops.model.plans.policy import Policy, VerifyPolicy
from quota_ops.model.quotas.alteration import group_alterations
from quota_ops.model.runs.outcome import Outcome
from quota_ops.model.runs.verification import BrokerResult, RowVerdict, Verdict
from quota_ops.runs.chain import run_stages
from quota_ops.store.run.files import VERIFICATION
from quota_ops.store.run.folder import RunFolder
from tests.broker.freezing import frozen
from tests.broker.pinging import ping
from tests.broker.stage_runs import KEY, TEN
from tests.faults.machine import Machine
from tests.lab import Lab, error_of, open_lab
from tests.writing import State

pytestmark = pytest.mark.local_store


@pytest.fixture(name="lab")
def _lab(three: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    monkeypatch.setattr("quota_ops.stages.verify.brokers.compute_deadline", lambda _rows: 2.0)
    with open_lab(three.broker, tmp_path, timeout=3.0) as lab:
        yield lab


@pytest.fixture(name="follower")
def _follower(three: Machine) -> RunningNode:
    """Return a node that the others can do without: not the quorum's leader, and not the first."""
    leader = three.leader
    return [node for node in three.nodes.values() if node.id != leader][-1]


def brokers_of(folder: RunFolder) -> tuple[BrokerResult, ...]:
    """Return the result of each broker."""
    return folder.read(VERIFICATION).brokers


def test_a_cluster_is_found_past_a_silent_broker(
    three: Machine, follower: RunningNode, tmp_path: Path
) -> None:
    """Any broker can be the one that the connection names: the others know as much."""
    servers, cluster_id = three.broker.bootstrap(), three.broker.config.cluster_id
    text = f"bootstrap.servers={servers}\n"
    connection = Connection.parse(text, name="demo", source="a test")
    found = []
    for _ in range(4):
        with frozen(follower):  # not for so long that the cluster forgets it
            found.append(preflight(connection, cluster_id))
    with frozen(follower):
        pinged = ping(tmp_path, text, cluster_id)

    assert (pinged.exit_code, pinged.stderr) == (3, "")
    assert pinged.stdout.startswith(f"demo ({cluster_id}, as in cluster.yaml; KRaft)      2 of 3 ")
    assert f"  {follower.address()}  unknown  timed out after " in pinged.stdout
    assert {one.brokers for one in found} == {found[0].brokers}
    assert [broker.id for broker in found[0].brokers] == [1, 2, 3]


@dataclass
class Heard:
    """A Progress that records the brokers' results, round by round."""

    rounds: list[tuple[BrokerResult, ...]] = field(default_factory=list)
    left: list[float] = field(default_factory=list)

    def report_batch(self, batch: int, batches: int, outcomes: Sequence[Outcome]) -> None:
        """Record nothing of apply."""

    def report_brokers(self, brokers: Sequence[BrokerResult], seconds_left: float) -> None:
        """Record the results."""
        self.rounds.append(tuple(brokers))
        self.left.append(seconds_left)


def test_every_broker_is_asked(lab: Lab) -> None:
    """A run succeeds when each broker, queried by its id, stores every row."""
    heard = Heard()
    lab.desire(TEN)

    folder = lab.run("reconcile", progress=heard)

    assert [(broker.broker, broker.lagging, broker.error) for broker in brokers_of(folder)] == [
        (1, 0, None),
        (2, 0, None),
        (3, 0, None),
    ]
    assert heard.rounds[-1] == brokers_of(folder)
    assert heard.left == sorted(heard.left, reverse=True)
    assert lab.known() == TEN


def test_the_bootstrap_address_stands_for_the_cluster(
    three: Machine, follower: RunningNode, lab: Lab
) -> None:
    """With verify: bootstrap an unreachable broker is not missed, and nothing is claimed of it."""
    near = next(node for node in three.nodes.values() if node is not follower)
    connection = Connection.parse(
        f"bootstrap.servers={near.address()}\n", name="demo", source="a test"
    )
    lab.desire(TEN)

    with (
        frozen(follower),
        open_cluster(connection, cluster_id=None, verify=VerifyPolicy.BOOTSTRAP) as cluster,
    ):
        folder = lab.run("reconcile", connect=lambda: cluster)
        facts = cluster.read_facts(2.0)

    (answer,) = brokers_of(folder)
    assert (answer.broker, answer.lagging, answer.bootstrap) == (near.id, 0, True)
    assert [one.id for one in facts.brokers if one.version] == [near.id]
    assert [broker.id for broker in cluster.brokers] == [1, 2, 3]


def behind(folder: RunFolder) -> dict[int, int | None]:
    """Return how many rows differ on each broker; None if it did not respond."""
    return {broker.broker: broker.lagging for broker in brokers_of(folder)}


def test_a_silent_broker_is_named_and_blocks_no_row(
    lab: Lab, follower: RunningNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that the others store enter the ledger; the run fails until all brokers respond.

    The same holds for an alter, except that its rows never enter the ledger.
    """
    lab.desire(TEN)
    run = lab.planned()
    run_stages(run, ("apply",))

    def open_soon(policy: Policy, connection: Connection) -> AbstractContextManager[Cluster]:
        return open_cluster(connection, cluster_id=policy.cluster_id, timeout=3.0)

    monkeypatch.setattr("quota_ops.kafka.cluster.open_policy", open_soon)
    with frozen(follower):
        error = error_of(run, ("verify", "report"))
    lab.cluster.describe(follower.id)  # a broker that is frozen for nine seconds is fenced
    with frozen(follower):
        altered = lab.call("alter", "demo", "--names", "user=new", "--add", "request_percentage=7")

    altering = lab.runs[-1]
    assert (altered.returncode, altered.stderr) == (
        1,
        (
            f"not every broker stores the desired values: connection demo: broker {follower.id} at "
            f"{follower.address()} cannot be reached: timed out after 1 s.\n"
            "  The others store every row. Verify again when it responds: quota-ops verify --run "
            f"{altering.place}\n"
            "  If only the bootstrap address is reachable, for example over a private link, set "
            "verify: bootstrap in cluster.yaml.\n"
        ),
    )
    assert "\n2 of 3 brokers agree\nrun: " in altered.stdout
    again = lab.call("verify", "--run", str(altering.place))
    assert (again.returncode, again.stderr) == (0, "")
    assert behind(altering) == {1: 0, 2: 0, 3: 0}
    assert lab.call("show", "last").stdout.startswith(
        f"Altered: 1 of 1 change on demo was written, by {getuser()}; 3 of 3 brokers agree.\n"
    )

    assert type(error) is Refused
    assert str(error) == (
        f"not every broker stores the desired values: connection demo: broker {follower.id} at "
        f"{follower.address()} cannot be reached: timed out after 1 s.\n"
        "  The others store every row. Verify again when it responds: quota-ops verify --run "
        f"{run.folder.place}\n"
        "  If only the bootstrap address is reachable, for example over a private link, set "
        "verify: bootstrap in cluster.yaml."
    )
    assert behind(run.folder) == {1: 0, 2: 0, 3: 0} | {follower.id: None}
    assert lab.known() == TEN
    assert lab.known(INTENDED) == {}
    run_stages(run, ("verify",))
    assert behind(run.folder) == {1: 0, 2: 0, 3: 0}


@pytest.mark.usefixtures("lab", "impatient_verify")
def test_a_silent_broker_does_not_use_up_the_time_of_the_others(
    lab: Lab, follower: RunningNode
) -> None:
    """A broker that lagged while an unreachable one was queried is queried once more after it."""
    lab.desire(TEN)
    folder = lab.run("plan")

    connection = Connection.parse(lab.connection_file.read_text(), name="demo", source="")
    with open_cluster(connection, cluster_id=None) as cluster:
        cluster.describe()  # connected before a broker is silent
        rows = folder.batches()[1]
        later = Timer(0.5, lambda: cluster.apply(group_alterations(rows)))
        with frozen(follower):
            later.start()
            error = error_of(lab.resume(folder), ("verify",))
            later.join()

    assert isinstance(error, Refused)
    assert behind(folder) == {1: 0, 2: 0, 3: 0} | {follower.id: None}


def test_rows_that_differ_are_counted_and_named(lab: Lab) -> None:
    """At the deadline, each broker is listed with the number of rows that differ."""
    held: State = {**TEN, "user=u1": {KEY: 5.0}, "user=u2": {KEY: None}}
    lab.put(held)
    lab.desire(TEN)

    folder, error = lab.refused("verify")

    assert isinstance(error, Refused)
    assert str(error) == (
        "all 3 brokers store other values than desired: user=u1 producer_byte_rate is 5 B/s, "
        "Git: 101 B/s; user=u2 producer_byte_rate is none, Git: 102 B/s\n  2 rows differ from Git."
    )
    assert behind(folder) == {1: 2, 2: 2, 3: 2}
    verification = folder.read(VERIFICATION)
    assert verification.verified == 8
    assert verification.verdicts == (
        RowVerdict("user=u1", KEY, 101.0, Verdict.DIFFERS, ((1, 5.0), (2, 5.0), (3, 5.0))),
        RowVerdict("user=u2", KEY, 102.0, Verdict.DIFFERS, ((1, None), (2, None), (3, None))),
    )
    assert not lab.records.ledger.exists()


def test_a_row_that_changes_during_the_run_is_no_fault_of_a_broker(lab: Lab) -> None:
    """A row that the run did not write is listed with its value, and the remedy is a new plan."""
    lab.put({"user=u1": {KEY: 101.0}})
    lab.desire(TEN)
    run = lab.planned()
    run_stages(run, ("apply",))
    lab.put({"user=u1": {KEY: 5.0}})

    error = error_of(run, ("verify", "report"))

    assert isinstance(error, Refused)
    assert str(error) == (
        "all 3 brokers store other values than desired: user=u1 producer_byte_rate is 5 B/s, "
        "Git: 101 B/s\n  1 row differs from Git. This run did not write it: something else "
        "changed it meanwhile, and no broker is at fault. A new plan shows what to do."
    )


def test_no_broker_answers(lab: Lab, three: Machine) -> None:
    """If no broker responds, verify fails as unreachable and records nothing as verified."""
    lab.desire(TEN)
    run = lab.planned()
    run_stages(run, ("apply",))

    with frozen(*three.nodes.values()):
        error = error_of(run, ("verify", "report"))

    assert isinstance(error, Unreachable)
    assert error.message.startswith("no broker could be queried: connection demo: broker 1 at ")
    assert behind(run.folder) == {1: None, 2: None, 3: None}
    assert lab.known() == {}
    assert lab.known(INTENDED) == TEN


@pytest.mark.usefixtures("impatient_verify")
def test_no_broker_answers_where_nothing_is_asked_for(three: Machine, tmp_path: Path) -> None:
    """If no broker responds, verify fails even if Git declares nothing."""
    with open_lab(three.broker, tmp_path, timeout=1.0) as lab:
        lab.desire({})
        folder = lab.run("diff")
        with frozen(*three.nodes.values()):
            error = error_of(lab.resume(folder), ("verify",))

    assert isinstance(error, Unreachable)
