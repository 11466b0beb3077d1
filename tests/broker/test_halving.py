"""Requests that a real broker rejects as a whole, and the result of each entity in them."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

import pytest

from quota_ops.kafka import delivery
from quota_ops.kafka.cluster import Cluster
from quota_ops.model.quotas.alteration import Alteration, group_alterations
from quota_ops.model.quotas.difference import Action, Difference, Kind
from quota_ops.model.runs.outcome import EntityResponse, Outcome, Status
from tests.broker.late_alters import alter_users
from tests.broker.stage_runs import KEY, outcomes
from tests.lab import Lab

RECORDS = 10_000
"""What QuorumController takes in one request."""


class Counted:
    """A call that counts its entities each time, and the responses."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.requests: list[tuple[int, set[str]]] = []

    def apply(self, asked: Sequence[Alteration]) -> tuple[EntityResponse, ...]:
        """Write, and count."""
        answers = self._cluster.apply(asked)
        self.requests.append((len(asked), {answer.name for answer in answers}))
        return answers


def rows(names: Sequence[str]) -> list[Difference]:
    """Return a limit for each user."""
    return [
        Difference("c", f"user={name}", KEY, Kind.PENDING, Action.SET, before=None, after=1.0)
        for name in sorted(names)
    ]


@contextmanager
def cleared(lab: Lab, written: Sequence[Difference], at_once: int) -> Iterator[Counted]:
    """Yield a cluster that is empty again at the end."""
    yield Counted(lab.cluster)
    for start in range(0, len(written), at_once):
        gone = [row._replace(action=Action.CLEAR) for row in written[start : start + at_once]]
        assert {response.code for response in lab.cluster.apply(group_alterations(gone))} == {0}
    lab.wait_for({})


def gateway(bad: Collection[str], apply: delivery.Send) -> delivery.Send:
    """Create a gateway that rejects every request that contains one of these entities."""

    def ask(some: Sequence[Alteration]) -> tuple[EntityResponse, ...]:
        if any(alteration.entity.text in bad for alteration in some):
            return tuple(
                EntityResponse(alteration.entity, 44, "POLICY_VIOLATION", "no")
                for alteration in some
            )
        return apply(some)

    return ask


def test_more_records_than_a_controller_takes(lab: Lab) -> None:
    """POLICY_VIOLATION on every entity is not about any one: each half is accepted."""
    asked = rows([f"u{number:05}" for number in range(RECORDS + 1)])
    with cleared(lab, asked, RECORDS) as counted:
        outcomes = delivery.send_rows(1, asked, counted.apply, lab.cluster.validate)

        assert counted.requests == [
            (10_001, {"POLICY_VIOLATION"}),
            (5_000, {"NONE"}),
            (5_001, {"NONE"}),
        ]
        assert {outcome.status for outcome in outcomes} == {Status.ACCEPTED}
        assert [outcome.entity for outcome in outcomes] == [row.entity for row in asked]
        lab.wait_for({row.entity: {KEY: 1.0} for row in asked})


def test_more_bytes_than_a_controller_takes(lab: Lab) -> None:
    """Over 8 MiB the controller resigns: the halves are sent when one leads again."""
    asked = rows([f"u{number:03}" + "x" * 32_000 for number in range(270)])
    with cleared(lab, asked, 100) as counted:
        outcomes = delivery.send_rows(1, asked, counted.apply, lab.cluster.validate)

        assert counted.requests == [
            (270, {"UNKNOWN_SERVER_ERROR"}),
            (135, {"NONE"}),
            (135, {"NONE"}),
        ]
        assert {outcome.status for outcome in outcomes} == {Status.ACCEPTED}
        lab.wait_for({row.entity: {KEY: 1.0} for row in asked})


def test_entities_that_spoil_every_request(lab: Lab) -> None:
    """Two of sixteen entities are found and rejected alone, in few requests."""
    asked = rows([f"u{number:02}" for number in range(16)])
    bad = {asked[3].entity, asked[12].entity}
    with cleared(lab, asked, 100) as counted:
        outcomes = delivery.send_rows(1, asked, gateway(bad, counted.apply), lab.cluster.validate)

        assert {
            outcome.entity for outcome in outcomes if outcome.status is not Status.ACCEPTED
        } == bad
        assert outcomes[3] == Outcome(
            1, asked[3].entity, (KEY,), Status.REFUSED, 44, "POLICY_VIOLATION", "no"
        )
        assert [count for count, _ in counted.requests] == [2, 1, 4, 4, 1, 2]
        lab.wait_for({row.entity: {KEY: 1.0} for row in asked if row.entity not in bad})


def test_one_bad_entity_of_a_one_off(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Alter finds it as apply does, and writes the others."""
    lab.desire({})
    names = [f"user=u{number}" for number in range(4)]
    monkeypatch.setattr(lab.cluster, "apply", gateway({"user=u2"}, lab.cluster.apply))

    run = alter_users(lab, lab.cluster, dict.fromkeys(names, 1.0))

    monkeypatch.undo()
    assert {name for name, status in outcomes(run).items() if status is not Status.ACCEPTED} == {
        "user=u2"
    }
    lab.wait_for({name: {KEY: 1.0} for name in names if name != "user=u2"})
