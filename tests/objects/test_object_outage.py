"""Commands whose run store fails after they have written to the cluster or to the ledger."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import count

import pytest

from quota_ops.model.errors import InvalidInput
from quota_ops.store.ledger import claims, holds, ledger, ledger_end
from quota_ops.store.places import numbered_files, object_client, objects
from quota_ops.store.places.object_client import open_client
from quota_ops.store.places.run_store import find_run_store
from tests.cli.test_screens import KEY
from tests.faults.table import ALL
from tests.lab import Lab, error_of
from tests.objects.proxy import Faults

RETRIES = object_client.MOST_RETRIES
NAMES = ("--names", "user=alice")
SOONEST, EACH = (5, 24) if ALL else (62, 120)
"""The requests of a run at which an outage begins."""
WHY = ("--reason", "INC-31")
IMPATIENT = """
from quota_ops.cli import main
from quota_ops.store.places import object_client
object_client.MOST_RETRIES = 1
main(["reconcile", "demo"])
"""


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch, faults: Faults) -> Iterator[None]:
    """Let each request to the store fail at once during the outage."""
    del faults
    begin_impatience(monkeypatch)
    yield
    open_client.cache_clear()


def begin_impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each request to an overloaded store fail at once."""
    monkeypatch.setattr(object_client, "MOST_RETRIES", 1)
    monkeypatch.setattr(objects, "PATIENCE", timedelta(0))
    open_client.cache_clear()


def end_outage(faults: Faults, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the store respond again, and this test wait for it as commands do."""
    faults.refusal = None
    monkeypatch.setattr(object_client, "MOST_RETRIES", RETRIES)
    monkeypatch.setattr(objects, "PATIENCE", object_client.PATIENCE)
    open_client.cache_clear()


@pytest.mark.parametrize(
    "outage_at", [("batch-0001.json", 2), ("verification.json", 1), ("report.txt", 1)]
)
def test_a_run_names_what_it_sent(
    outage_at: tuple[str, int],
    lab: Lab,
    address: str,
    faults: Faults,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If the store fails after the write, the error names the run and what was sent, exit 1."""
    lab = replace(lab, address=address)
    lab.desire({"user=alice": {KEY: 1000.0}})
    faults.outage_at = outage_at

    ended = lab.call("reconcile", "demo")
    end_outage(faults, monkeypatch)

    (run,) = lab.runs
    assert lab.stored() == {"user=alice": {KEY: 1000.0}}
    assert ended.returncode == 1
    assert (
        "cannot be written: the store is overloaded. Sent before that: 1 key accepted\n"
        in ended.stderr
    )
    assert f"This run is demo/{run.place.name}.\n" in ended.stderr


def test_a_task_names_what_it_sent(lab: Lab, address: str, faults: Faults) -> None:
    """If the store fails as apply ends, the error of a DAG's task apply names what was sent."""
    lab = replace(lab, address=address)
    lab.desire({"user=alice": {KEY: 1000.0}})
    run = lab.planned()
    faults.outage_at = ("stage-apply.json", 2)

    error = error_of(run, ("apply",))

    assert error.message.endswith("the store is overloaded. Sent before that: 1 key accepted")


@pytest.mark.parametrize("name", ["clusters.parquet", "differences.parquet"])
def test_a_file_of_a_run_that_is_not_returned(
    name: str, lab: Lab, address: str, faults: Faults
) -> None:
    """A run that cannot read one of its tables names the file and the reason."""
    lab = replace(lab, address=address)
    lab.desire({"user=alice": {KEY: 1000.0}})
    faults.unread_at = f"/{name}"

    ended = lab.call("reconcile", "demo")

    assert ended.returncode in {1, 2}, ended.stderr
    assert f"/{name} cannot be read: the store is overloaded" in ended.stderr


@pytest.mark.timeout(3000)
def test_an_outage_in_the_middle_of_a_run(
    lab: Lab, address: str, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever request an outage begins at, the run does not succeed, and the next completes it."""
    first, last = {"user=a": {KEY: 1e6}, "user=b": {KEY: 1e6}}, {"user=a": {KEY: 2e6}}
    allow = ("--allow", "unlimited", "--reason", "a test")
    for number in count(SOONEST, EACH):
        lab = replace(lab, address=f"{address}/{number}")
        lab.put(first)
        lab.desire(first)
        end_outage(faults, monkeypatch)
        faults.outage_after = None
        assert lab.call("reconcile", "demo", *allow).returncode == 0
        lab.desire(last)
        begin_impatience(monkeypatch)
        faults.requests, faults.outage_after = 0, number
        ended = lab.call("reconcile", "demo", *allow)
        if faults.requests < number:
            break
        stored = lab.stored()
        end_outage(faults, monkeypatch)
        assert (ended.returncode in {1, 2}) == ("overloaded" in ended.stderr), ended.stderr
        assert stored in (first, last)
        assert ("Sent before that" in ended.stderr) == (stored == last), ended.stderr
        again = lab.call("reconcile", "demo", *allow)
        assert again.returncode == 0, (number, ended.stderr, again.stdout)
        assert lab.stored() == lab.known() == last
    assert ended.returncode == 0


ADD = ("--add", f"{KEY}=7")


@pytest.mark.parametrize(
    ("command", "outage_at", "words"),
    [
        (("alter", *ADD), ("batch-0001.json", 2), "Sent before that: 1 key accepted"),
        (("alter", *ADD), ("applied.json", 1), "Sent before that: 1 key accepted"),
        (("alter", *ADD), ("end-0001.json", 1), "Sent before that: 1 key accepted"),
        (("adopt",), ("adopted.json", 1), "Before that: 1 row of the ledger adopted"),
        (
            ("release", "--from-ledger"),
            ("released.json", 1),
            "Before that: 1 row of the ledger released",
        ),
    ],
    ids=["batch", "alter", "end", "adopt", "release"],
)
def test_other_commands_name_what_they_changed(
    command: tuple[str, ...],
    outage_at: tuple[str, int],
    words: str,
    *,
    lab: Lab,
    address: str,
    faults: Faults,
) -> None:
    """The same holds for a one-off change and for changes of the ledger."""
    lab = replace(lab, address=address)
    lab.put({"user=alice": {KEY: 5.0}})
    lab.desire({"user=alice": {KEY: 5.0}}, guards={"small_byte_rate": 0})
    if command[0] == "release":
        lab.note({"user=alice": {KEY: 5.0}})
    faults.outage_at = outage_at

    ended = lab.call(command[0], "demo", *command[1:], *NAMES, *WHY)

    assert (ended.returncode, words in ended.stderr) == (1, True), ended.stderr


def test_a_run_without_an_end_is_settled_by_its_machine(
    lab: Lab, address: str, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once its process has ended, no command calls it running, and the next run settles it."""
    lab = replace(lab, address=address)
    lab.desire({"user=alice": {KEY: 1000.0}})
    faults.outage_at = ("batch-0001.json", 2)
    subprocess.run(
        [sys.executable, "-c", IMPATIENT], env=lab.environment, cwd=lab.root, check=False
    )
    end_outage(faults, monkeypatch)

    (run,) = lab.runs
    listed = lab.call("runs", "demo").stdout
    held = lab.call("hold", "demo", *NAMES, "--until", "1h", *WHY)
    assert lab.call("reconcile", "demo").returncode == 0

    assert " Interrupted " in listed
    assert held.stderr == ""
    assert run.stage_result("apply").message == (
        f"it ended without recording how; run {lab.runs[-1].place.name} recorded its end"
    )


def test_a_file_that_is_not_returned_is_not_damaged(address: str, faults: Faults) -> None:
    """An overloaded store never leads to the advice to move a ledger, a hold or a decision."""
    store = find_run_store(address)
    place = store.of_cluster("id").ledger / "00000001.parquet"
    faults.refusal = 503, "SlowDown"

    for read in (
        partial(numbered_files.read_file, place),
        partial(claims.read, store.of_cluster("id"), 1),
        partial(holds.holds_now, store.of_cluster("id").holds),
        partial(ledger_end.read, store.of_cluster("id")),
        partial(ledger.read, store.of_cluster("id")),
    ):
        with pytest.raises(InvalidInput, match="the store is overloaded") as error:
            read()
        assert "ove the" not in str(error.value)
