"""The text of each column of a row."""

from math import inf, nan

import pytest
from msgspec.structs import replace

from quota_ops.model.clusters.cluster_facts import Absent
from quota_ops.model.plans.ledger_edits import CLEARED
from quota_ops.model.quotas.difference import Action, Difference, Kind
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.runs.outcome import Outcome, Status
from quota_ops.model.runs.verification import BrokerResult, RowVerdict, Verdict
from quota_ops.report.outline import cells
from quota_ops.report.outline.past import find_since
from quota_ops.report.outline.row_status import ReportRow, RowStatus
from tests.unit.report_sample import (
    AGREED,
    ALICE_OTHERS,
    ALICE_RAISED,
    BROKERS,
    DEFAULT_RAISED,
    ETL_REMOVED,
    LEGACY,
    OPERATOR,
    difference,
)


def row_of(one: Difference, **more: object) -> ReportRow:
    """Return a row without a place."""
    return replace(ReportRow(one, RowStatus.PENDING), **more)


GONE = difference({"user": "x"}, "k", (Kind.GONE, Action.FORGET), None, None, **AGREED)


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (DEFAULT_RAISED, ("↓", "100 %", "25 %", "-75 %", "after 2026-11-14 10:00 UTC")),
        (ETL_REMOVED, ("✂", "20 MiB/s", "none", "cleared", "")),
        (ALICE_RAISED, ("↑", "10 MiB/s", "15 MiB/s", "+50 %", "")),
        (ALICE_OTHERS, ("+", "none", "20 MB/s", "new", "")),
        (LEGACY, ("", "5 MiB/s", "stays", "", "unknown")),
        (GONE, ("", "none", "none", "", "after 2026-11-14 10:00 UTC")),
        (ALICE_RAISED._replace(before=nan), ("↓", "nan", "15 MiB/s", "replaced", "")),
        (ALICE_RAISED._replace(after=2.0**63), ("↑", "10 MiB/s", "unlimited", "lifted", "")),
        (ALICE_RAISED._replace(before=2.0**63), ("↓", "unlimited", "15 MiB/s", "limited", "")),
        (
            DEFAULT_RAISED._replace(before=inf),
            ("↓", "inf", "25 %", "replaced", "after 2026-11-14 10:00 UTC"),
        ),
        (
            DEFAULT_RAISED._replace(before=25.0, after=25.1),
            ("↑", "25 %", "25.1 %", "+0.4 %", "after 2026-11-14 10:00 UTC"),
        ),
        (
            DEFAULT_RAISED._replace(action=Action.REPORT),
            ("", "100 %", "25 %", "", "after 2026-11-14 10:00 UTC"),
        ),
    ],
)
def test_values(one: Difference, words: tuple[str, ...]) -> None:
    """Current, desired, change and since are shown with units and zones."""
    row = row_of(one)

    assert (
        cells.sign(row),
        cells.current(row),
        cells.desired(row),
        cells.change(row),
        find_since(row, None),
    ) == words


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ({"user": None}, "every user"),
        ({"client-id": None}, "every client"),
        ({"ip": "10.0.0.1"}, "IP address 10.0.0.1"),
        ({"user": "alice", "client-id": None}, "user alice, any other client"),
        ({"user": None, "client-id": "app"}, "any other user, client app"),
        ({"user": "a b"}, 'user "a b"'),
        ({"zone": None}, "zone=<default>"),
    ],
)
def test_people(names: dict[str, str | None], words: str) -> None:
    """An entity is shown as people write it, the user first; an unknown type as Kafka has it."""
    said = cells.list_entity_names(Entity.of(names))

    assert ", ".join(f"{noun} {name}".strip() for noun, name in said) == words


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (ALICE_RAISED, "payments.yaml:8"),
        (ETL_REMOVED, "(was etl.yaml, at 9c0ffee)"),
        (ETL_REMOVED._replace(commit=None), "(was etl.yaml)"),
        (ETL_REMOVED._replace(kind=Kind.CLEARED), "(was etl.yaml, before 9c0ffee)"),
        (
            ETL_REMOVED._replace(kind=Kind.RETURNED, memory=CLEARED, run="4711"),
            "(was etl.yaml, before 9c0ffee)  (cleared by run 4711)",
        ),
        (LEGACY, ""),
    ],
)
def test_source(one: Difference, words: str) -> None:
    """A row names the line in Git that declares it, or the file that did."""
    assert cells.source(row_of(one)) == words


REFUSED = Outcome(1, "user=alice", ("k",), Status.REFUSED, 44, "POLICY_VIOLATION", "No.")
ACCEPTED = Outcome(1, "user=alice", ("k",), Status.ACCEPTED)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (row_of(ALICE_RAISED), ""),
        (row_of(ALICE_RAISED, validated=ACCEPTED), "would be accepted"),
        (row_of(ALICE_RAISED, validated=REFUSED), "refused: No. (POLICY_VIOLATION)"),
        (row_of(ALICE_RAISED, validated=ACCEPTED, applied=ACCEPTED), "accepted, verified"),
        (row_of(ALICE_RAISED, applied=ACCEPTED._replace(status=Status.NOT_SENT)), "not sent"),
        (
            row_of(
                ALICE_RAISED,
                applied=ACCEPTED,
                verdict=RowVerdict(
                    "user=alice",
                    "producer_byte_rate",
                    1.0,
                    Verdict.DIFFERS,
                    ((1, None), (2, 2.0**20), (3, None)),
                ),
            ),
            "brokers 1, 3 store none; broker 2 stores 1 MiB/s",
        ),
        (
            row_of(
                ALICE_RAISED,
                applied=ACCEPTED,
                verdict=RowVerdict(
                    "user=alice",
                    "producer_byte_rate",
                    1.0,
                    Verdict.DIFFERS,
                    ((1, ALICE_RAISED.target),),
                ),
            ),
            "broker 1 stores 15 MiB/s; verify expected 1 B/s, as desired.parquet of the run has it",
        ),
        (
            row_of(ALICE_RAISED, verdict=RowVerdict("user=alice", "k", 1.0, Verdict.UNANSWERED)),
            "no broker responded",
        ),
        (row_of(OPERATOR), "left alone: protected by cluster.yaml"),
        (
            row_of(DEFAULT_RAISED._replace(action=Action.REPORT)),
            "only reported: cluster.yaml sets drift: report",
        ),
    ],
)
def test_answer(row: ReportRow, words: str) -> None:
    """The last response of a broker to a row is shown."""
    assert cells.result(row, BROKERS) == words


def test_a_row_is_verified_on_the_brokers_that_responded() -> None:
    """A row is not called verified without the number of brokers that nobody could query."""
    row = row_of(ALICE_RAISED, applied=ACCEPTED)
    absent = BrokerResult.of_absent(Absent(3, "kafka-3:9094", "is fenced"))
    assert cells.result(row, (*BROKERS[:2], absent)) == "accepted, verified on 2 of 3 brokers"
    assert cells.result(row) == "accepted"


def test_a_row_without_a_plan() -> None:
    """A verify without a plan shows no kind and no earlier value: both are unknown."""
    row = row_of(ALICE_RAISED, planned=False)
    assert (cells.kind(row), cells.current(row), cells.desired(row)) == ("", "", "15 MiB/s")
