"""Runs whose store loses a tenth of its responses, after it has done what they confirm."""

import json
import re
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from quota_ops.model.errors import InvalidInput
from quota_ops.model.runs.outcome import DONE
from quota_ops.sql.attempt import DiffAttempt
from quota_ops.sql.job import ComparedRun
from quota_ops.store.ledger import claims, decisions, holds, ledger
from quota_ops.store.places.run_store import find_run_store, open_place
from quota_ops.store.run.files import APPLIED
from quota_ops.store.run.listing import summarize_run
from tests.cli.test_screens import KEY
from tests.engines.publishing import CLUSTER, list_results, read_entities
from tests.faults.table import ALL
from tests.lab import Lab
from tests.objects.proxy import CONFIRMED, LOST, Faults

RUNS = 40 if ALL else 1
EVERY = 10


def play(lab: Lab) -> Counter[str]:
    """Reconcile several times; return the names of what is stored then, and how often each is.

    Each run must have done what its report shows, and the ledger must have every row.
    """
    for number in range(1, RUNS + 1):
        state = {f"user=u{one}": {KEY: 1000.0 * number + one} for one in range(number, number + 3)}
        lab.desire(state)
        folder = lab.run("reconcile")

        assert lab.stored() == lab.known() == state
        assert folder.about().sequence == number
        outcomes = folder.outcomes(APPLIED)
        assert {outcome.status for outcome in outcomes} <= DONE
        assert (
            len({outcome.entity for outcome in outcomes})
            == len(outcomes)
            == (3 if number == 1 else 4)
        )
        assert summarize_run(folder.place).status == "In sync"
    leaves = lab.store.root.walk()
    assert [leaf for leaf in leaves if leaf.path.startswith("at_work/")] == []
    return Counter(re.sub(r"(?<=[/@])2[^/@]*(?=[/@-])", "RUN", leaf.path) for leaf in leaves)


@pytest.mark.timeout(1800)
def test_no_row_is_lost_and_nothing_is_done_twice(lab: Lab, address: str, faults: Faults) -> None:
    """With a tenth of the responses lost, runs store exactly what they store without losses."""
    expected = play(replace(lab, address=f"{address}/calm"))
    lab.put({f"user=u{one}": {KEY: None} for one in range(RUNS + 3)})
    faults.puts, faults.lose_every = 0, EVERY

    assert play(replace(lab, address=f"{address}/lossy")) == expected
    assert faults.puts > EVERY * RUNS


def test_lost_responses_while_an_attempt_of_spark_ends(address: str, faults: Faults) -> None:
    """The attempt recognizes its own manifest and repeats lost writes; its result is whole."""
    folder = open_place(address) / "run"
    for entity in ("old", "new"):
        with DiffAttempt.begin([ComparedRun(CLUSTER, folder)]) as attempt:
            if entity == "new":
                faults.puts, faults.plan, faults.lose_every = 0, [LOST], 2
            attempt.publish(0, list_results(entity))

    assert faults.puts > 3
    assert read_entities(folder) == ["new", "new"]
    assert json.loads((folder / "diff-0002.json").read())["attempt"] == attempt.place.name
    names = ["differences", "overrides"]
    tables = [f"{name}.parquet" for name in names]
    assert list(folder.list()) == sorted([*tables, "diff-0001.json", "diff-0002.json"])


def test_a_put_is_believed_only_if_the_object_is_there(address: str, faults: Faults) -> None:
    """A store that confirms what it refused has another winner; what it lost is an error."""
    place = open_place(address) / "number"
    place.create(b"ours")

    faults.plan = [CONFIRMED]
    assert place.create(b"theirs") is False
    assert place.read() == b"ours"

    faults.plan = [200]
    with pytest.raises(InvalidInput, match="lost is missing although the store confirmed the wr"):
        (open_place(address) / "lost").create(b"ours")


def test_a_response_that_is_cut_is_no_damage(address: str, faults: Faults) -> None:
    """A cut response is requested again; if it is cut unnoticed, no file is called damaged."""
    records = find_run_store(address).of_cluster("id")
    files = (
        (records.ledger / "00000001.parquet", ledger.read),
        (records.holds / "00000001.json", lambda found: holds.read(found.holds)),
        (records.claims / "00000001.json", lambda found: claims.read(found, 1)),
        (records.approvals / "abc-0001.json", lambda found: decisions.read(found.approvals, "abc")),
    )
    for place, _ in files:
        place.create(b"{" + b" " * 1000 + b"}")
    faults.cut_at = "id/"
    assert all(len(place.read()) == 1002 for place, _ in files)

    faults.cut_each, faults.is_cut_whole = 1, True
    for place, read in files:
        with pytest.raises(InvalidInput) as error:
            read(records)
        assert f"{place} was returned with 501 bytes, and the run store lists 1,002" in str(
            error.value
        )
        assert "leave the file where it is" in str(error.value)


@pytest.mark.parametrize("hours", [5, -5])
def test_the_clock_of_a_store_is_wrong(hours: int, lab: Lab, address: str, faults: Faults) -> None:
    """Runs succeed, a hold names the difference, and `prune` removes no run."""
    lab = replace(lab, address=address)
    faults.clock_lead = timedelta(hours=hours)
    lab.desire({"user=alice": {KEY: 1000.0}})
    lab.run("reconcile")

    held = lab.call("hold", "demo", "--names", "user=alice", "--until", "1h", "--reason", "INC-31")
    pruned = lab.call("prune", "--keep", "1d")

    assert held.returncode == pruned.returncode == 0
    assert held.stderr.startswith("The clock of this machine is ")
    assert ("ahead" if hours < 0 else "behind") in held.stderr
    assert pruned.stdout.startswith("Nothing to remove from ")


@pytest.mark.parametrize(
    ("name", "sent"),
    [("/applied.json", "Sent before that: 1 key accepted"), ("/verification.json", "")],
)
def test_outcomes_that_are_lost_are_not_nothing(
    name: str, sent: str, lab: Lab, address: str, faults: Faults
) -> None:
    """A run whose store loses what it confirms names what it sent, and does not succeed."""
    lab = replace(lab, address=address)
    lab.desire({"user=alice": {KEY: 1000.0}})
    faults.lost_at = name

    ended = lab.call("reconcile", "demo")

    assert ended.returncode != 0
    assert f"{name} is missing although the store confirmed the write" in ended.stderr
    assert sent in ended.stderr
    assert lab.stored() == {"user=alice": {KEY: 1000.0}}
    faults.lost_at = None
    assert lab.call("reconcile", "demo").returncode == 0
