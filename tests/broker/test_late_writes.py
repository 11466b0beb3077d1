"""Writes of an older run that arrive when a newer run has ended, and the kind that is shown."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from quota_ops.desired.read import read_cluster
from quota_ops.kafka import delivery
from quota_ops.model.commit import Provenance
from quota_ops.model.errors import Refused
from quota_ops.runs.adoption import Attribution, adopt_quotas
from quota_ops.runs.chain import CHAINS, run_stages
from quota_ops.runs.run import start_command_run
from quota_ops.store.run.folder import RunFolder
from tests.broker.late_alters import alter_users
from tests.broker.lossy import IN_FLIGHT, TWICE, UNANSWERED, Lossy
from tests.lab import Lab, error_of
from tests.writing import State

KEY = "producer_byte_rate"
FIRST: State = {"user=alice": {KEY: 10.0}, "user=bob": {KEY: 5.0}}
OLDER: State = {"user=alice": {KEY: 15.0}, "user=bob": {KEY: 5.0}}
NEWER: State = {"user=alice": {KEY: 20.0}, "user=bob": {KEY: 5.0}}
DRIFTS = ("repair", "ask", "report")
FATES = {"unknown": [IN_FLIGHT, UNANSWERED], "settled": [TWICE]}


def each_policy(*fates: str) -> pytest.MarkDecorator:
    """Parametrize with every policy and fate; `make test` runs each of them, not every pair."""
    pairs = [
        pytest.param(
            drift, fate, marks=() if fate == fates[number % len(fates)] else pytest.mark.matrix
        )
        for number, drift in enumerate(DRIFTS)
        for fate in fates
    ]
    return pytest.mark.parametrize(("drift", "fate"), pairs)


def run_at(lab: Lab, commit: str, state: State, drift: str) -> RunFolder:
    """Create a run at a commit that declares this state."""
    lab.desire(state, drift=drift)
    return RunFolder.start(lab.store.new_run("demo"), cluster="demo", commit=commit)


def reconcile(lab: Lab, commit: str, state: State, drift: str) -> None:
    """Run a whole reconcile at a commit, which must succeed."""
    run_stages(lab.resume(run_at(lab, commit, state, drift)), CHAINS["reconcile"])


def assert_late(lab: Lab, older: RunFolder, drift: str) -> None:
    """Assert that the next run shows the older run's value as its late write, and that it ends."""
    assert lab.stored() == OLDER
    next_run = run_at(lab, "newer", NEWER, drift)
    run = lab.resume(next_run, allow={})
    if drift == "repair":
        run_stages(run, CHAINS["reconcile"])
    else:
        error = error_of(run, CHAINS["reconcile"])
        assert (error.exit_code, "late_write: user=alice" in error.message) == (1, True)
        assert lab.stored() == OLDER
    rows = [(row.entity, row.kind, row.run) for row in next_run.differences()]
    assert rows == [("user=alice", "late_write", older.place.name)]
    run_stages(lab.start(), CHAINS["reconcile"])
    assert lab.stored() == lab.known() == NEWER


@pytest.mark.parametrize("drift", DRIFTS)
def test_a_response_ends_no_memory(lab: Lab, drift: str) -> None:
    """A request that arrives, and is answered, after a newer run is a late write in the next run.

    The run that sent it does not say that the newer one takes precedence.
    """
    reconcile(lab, "first", FIRST, drift)
    older = run_at(lab, "older", OLDER, drift)
    newer = partial(reconcile, lab, "newer", NEWER, drift)
    slow = Lossy(lab.cluster, iter([newer]))

    error = error_of(lab.resume(older, connect=lambda: slow), CHAINS["reconcile"])

    assert error.message == "commit newer was applied since this plan was made"
    assert error.remedy == (
        f"The cluster stores values of this run, not of the later one: user=alice {KEY}. "
        "To correct them: quota-ops reconcile demo"
    )
    assert_late(lab, older, drift)


@each_policy(*FATES)
def test_a_value_that_was_read_back_can_arrive_again(
    lab: Lab, drift: str, fate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that reads its own value back remembers a request that got no response."""
    monkeypatch.setattr(delivery, "PATIENCE", 0.5)
    reconcile(lab, "first", FIRST, drift)
    lossy = Lossy(lab.cluster, iter(FATES[fate]))
    older = run_at(lab, "older", OLDER, drift)
    run = lab.resume(older, connect=lambda: lossy)
    if fate == "settled":
        run_stages(run, CHAINS["reconcile"])
    else:
        assert "user=alice  unknown" in error_of(run, CHAINS["reconcile"]).message
    assert lab.known() == OLDER
    reconcile(lab, "newer", NEWER, drift)

    lossy.deliver()

    assert_late(lab, older, drift)


@each_policy("delayed", IN_FLIGHT, TWICE)
def test_an_alter_that_arrives_late_is_named(
    lab: Lab, drift: str, fate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write of an alter is drift until a run follows it, and from then on a late write.

    So it is if it is answered after the newer run, if it arrives without an answer, and if a copy
    arrives of a request whose value was read back.
    """
    monkeypatch.setattr(delivery, "PATIENCE", 0.5)
    reconcile(lab, "first", FIRST, drift)
    newer = partial(reconcile, lab, "newer", NEWER, drift)
    network = Lossy(lab.cluster, iter([newer] if fate == "delayed" else [fate] * 2))
    altered = alter_users(lab, network, {"user=alice": 15.0})
    if fate != "delayed":
        kinds = [row.kind for row in lab.run("diff").differences()]
        assert kinds == (["drifted"] if fate == TWICE else ["in_sync"])
        run_stages(lab.resume(run_at(lab, "newer", NEWER, drift)), CHAINS["reconcile"])
        network.deliver()

    assert_late(lab, altered, drift)


def test_an_alter_without_a_response_is_read_back(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody refused it: it is unknown, until verify finds what has arrived on all brokers."""
    monkeypatch.setattr(delivery, "PATIENCE", 0.5)
    lab.desire({})
    network = Lossy(lab.cluster, iter([IN_FLIGHT] * 2))
    run = alter_users(lab, network, {"user=alice": 15.0})
    unknown = lab.call("runs").stdout
    network.deliver()

    found = lab.call("verify", "--run", str(run.place))

    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.splitlines()[:2] == ["applied: 1 accepted", "broker 1 agrees"]
    assert "  Unknown, apply incomplete  " in unknown
    assert "  Altered, apply incomplete  1  " in lab.call("runs").stdout
    assert lab.call("show", "last").stdout.partition("\n")[0] == (
        "Altered: 1 of 1 change on demo was written, by anna; 1 of 1 broker agrees."
    )


def test_a_ledger_that_fails_while_an_alter_is_sent(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    """The alter is written, and a warning tells why runs may take its values for late writes."""
    lab.desire({})
    damaged = lab.records.ledger / "00000009.parquet"
    network = Lossy(lab.cluster, iter([partial(damaged.create, b"PAR1")]))

    alter_users(lab, network, {"user=alice": 15.0})

    lab.wait_for({"user=alice": {KEY: 15.0}})
    (warning,) = (text for name, _, text in caplog.record_tuples if name.startswith("quota_ops"))
    assert warning.startswith(
        "runs may not know that this alter sent these values, if they arrive late: the ledger does "
        f"not parse: {damaged}"
    )


@dataclass
class SlowDescription:
    """A cluster whose description of this number arrives after something else has happened."""

    cluster: Any
    act: Callable[[], object]
    number: int = 1

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.cluster, name)
        return partial(self._late, method) if name in {"describe", "describe_values"} else method

    def _late(self, describe: Callable[..., object], *arguments: Any) -> object:
        found = describe(*arguments)
        self.number -= 1
        if self.number == 0:
            self.act()
        return found


@dataclass
class OldMetadata:
    """A cluster whose first description is an earlier one."""

    cluster: Any
    found: list[Any]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cluster, name)

    def describe(self) -> list[Any]:
        """Return the earlier description."""
        return self.found


def test_what_a_run_changes_after_it_was_described(lab: Lab) -> None:
    """An alter and an adopt that described the cluster before a run wrote it change nothing."""
    reconcile(lab, "first", FIRST, "report")
    newer = partial(reconcile, lab, "newer", NEWER, "report")

    run = alter_users(lab, SlowDescription(lab.cluster, newer), {"user=alice": 15.0})

    apply = run.stage_result("apply")
    assert (apply.status, str(apply.message).partition("\n")[0]) == (
        "refused",
        "user=alice producer_byte_rate has changed since it was described: 10 B/s -> 20 B/s",
    )
    assert lab.stored() == lab.known() == NEWER

    back = partial(reconcile, lab, "third", FIRST, "report")
    desired = read_cluster(lab.folder)
    folder = start_command_run(lab.store, desired.policy, Provenance.given(None))
    with pytest.raises(Refused, match="has changed user=alice producer_byte_rate since"):
        adopt_quotas(
            *(folder, lambda: SlowDescription(lab.cluster, back, 2), lab.records, desired),  # type: ignore[arg-type]
            wanted=None,
            attribution=Attribution("anna", "INC-31", "root"),
        )
    assert lab.stored() == lab.known() == FIRST


def test_a_response_with_old_metadata_is_not_adopted(lab: Lab) -> None:
    """An adopt whose first response has values of before does not overwrite what runs verified."""
    reconcile(lab, "first", FIRST, "report")
    old = list(lab.cluster.describe())
    reconcile(lab, "newer", NEWER, "report")
    desired = read_cluster(lab.folder)
    folder = start_command_run(lab.store, desired.policy, Provenance.given(None))

    words = "broker 1 responded with different values of user=alice producer_byte_rate"
    with pytest.raises(Refused, match=words):
        adopt_quotas(
            *(folder, lambda: OldMetadata(lab.cluster, old), lab.records, desired),  # type: ignore[arg-type]
            wanted=None,
            attribution=Attribution("anna", "INC-31", "root"),
        )

    assert lab.stored() == lab.known() == NEWER
