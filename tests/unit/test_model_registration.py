"""Which brokers count: by the registration, by earlier runs, and by cluster.yaml."""

import pytest

from quota_ops.model.clusters.cluster_facts import (
    Absent,
    KnownBrokers,
    Registered,
    find_absent,
    find_needless,
)

ONE, TWO = Registered(1, "b:1", fenced=False), Registered(2, "b:2", fenced=False)
FENCED = Registered(3, "b:3", fenced=True)
KNOWN = KnownBrokers((1, 2, 3), {3: "run-7"})


def test_the_registration_decides_where_it_is_known() -> None:
    """An unregistered broker is gone, whatever earlier runs recorded; a fenced one counts."""
    assert find_absent({1, 2}, (ONE, TWO), KNOWN, stalled=(3,)) == ()
    assert find_absent({1, 2}, (ONE, TWO, FENCED)) == (Absent(3, "b:3", "is fenced"),)
    assert find_absent({1}, (ONE, TWO)) == (Absent(2, "b:2", "joined after the run began"),)


def test_what_runs_noted_counts_where_the_cluster_names_no_fenced_broker() -> None:
    """Before Kafka 4.0: the brokers of the last verified run, and those that stopped following."""
    since = "is missing, first noticed by run run-7"
    assert find_absent({1, 2}, None, KNOWN, stalled=(3, 4)) == (
        Absent(3, None, since),
        Absent(4, None, "stopped following the metadata"),
    )
    assert find_absent({1, 2, 3}, None, KNOWN) == ()
    assert find_absent({1, 2}, None) == ()


def test_a_retired_broker_keeps_its_reason() -> None:
    """cluster.yaml gives the reason; a retired broker that returns is live like any other."""
    retired = {3: "scaled down"}
    absent = (Absent(3, "b:3", "is fenced", "scaled down"),)
    assert find_absent({1, 2}, (ONE, TWO, FENCED), retired=retired) == absent
    assert find_absent({1, 2, 3}, (ONE, TWO, FENCED), retired=retired) == ()


def test_an_entry_for_a_broker_that_is_back_or_unregistered_has_no_effect() -> None:
    """An entry for a live or unregistered broker is needless; before Kafka 4.0, for a live one."""
    retired = {4: "sold", 3: "scaled down", 1: "disk"}
    alive, gone = (1, "is alive"), (4, "is not registered")

    assert find_needless({1, 2}, (ONE, TWO, FENCED), retired) == (alive, gone)
    assert find_needless({1, 2}, None, retired) == (alive,)
    assert find_needless({1, 2}, (ONE, TWO), {}) == ()


@pytest.mark.parametrize(
    ("known", "registered", "absent", "after"),
    [
        (KnownBrokers(), (ONE, TWO), (), KnownBrokers((1, 2))),
        (
            KnownBrokers((1, 2, 3)),
            (ONE, TWO, FENCED),
            (Absent(3, "b:3", "is fenced"),),
            KnownBrokers((1, 2, 3), {3: "run-8"}),
        ),
        (KNOWN, None, (Absent(3, None, "is missing"),), KNOWN),
        (KNOWN, None, (Absent(3, None, "is missing", "scaled down"),), KnownBrokers((1, 2))),
        (KNOWN, (ONE, TWO), (), KnownBrokers((1, 2))),
        (KNOWN, None, (Absent(4, None, "stopped"),), KnownBrokers((1, 2, 3), {4: "run-8"})),
    ],
)
def test_what_a_verified_run_notes(
    known: KnownBrokers,
    registered: tuple[Registered, ...] | None,
    absent: tuple[Absent, ...],
    after: KnownBrokers,
) -> None:
    """The first run that found a broker absent stays recorded until it is back or retired."""
    assert known.after("run-8", (1, 2), registered, absent) == after


def test_a_broker_in_a_sentence() -> None:
    """A sentence about a broker has its address if it is known."""
    assert Absent(3, "b:3", "is fenced").named == "broker 3 at b:3"
    assert Absent(3, None, "is missing").named == "broker 3"
