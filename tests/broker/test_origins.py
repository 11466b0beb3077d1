"""What a plan shows about a value that the ledger lacks: who set it, and since when."""

import json
import re

from tests.cli.test_screens import KEY
from tests.lab import Lab
from tests.places import delete_all

WHO = ("--names", "user=bob")


def since(lab: Lab) -> tuple[str, str]:
    """Return the text below the row of bob, and the column `since` of the report."""
    shown = lab.call("plan", "demo").stdout.splitlines()
    at = next(number for number, one in enumerate(shown) if one.split()[:2] == ["!", "takeover"])
    report = lab.call("show", "last").stdout.splitlines()
    row = next(one for one in report if one.split()[:2] == ["!", "takeover"])
    found = re.search(r"team\.yaml:\d+ +(.*)", row)
    return shown[at + 1].strip(), found[1] if found else row


def test_nothing_is_claimed_of_what_nobody_saw(lab: Lab) -> None:
    """In the first run on a cluster it is unknown who set an existing value, and when."""
    lab.desire({"user=bob": {KEY: 10.0}})
    lab.put({"user=bob": {KEY: 7.0}})
    below, column = since(lab)

    assert below == "who set it, and when, is unknown"
    assert column.startswith("unknown")
    below, column = since(lab)
    assert below.endswith(" already; who set it is unknown")
    assert column.startswith("unknown")


def test_a_value_that_appeared_between_two_runs_is_told(lab: Lab) -> None:
    """Later runs show which run did not find a value; a plan of a snapshot does not count."""
    lab.desire({"user=alice": {KEY: 10.0}})
    run = lab.run("reconcile").place.name
    snapshot = lab.root / "snapshot.jsonl"
    snapshot.write_text(lab.call("describe", "demo", "--format", "jsonl").stdout)
    lab.put({"user=alice": {KEY: 10.0}, "user=bob": {KEY: 7.0}})
    lab.desire({"user=bob": {KEY: 10.0}})
    expected = f"not there in run {run}"

    below, column = since(lab)
    assert below == expected
    assert column.startswith("after 20")
    assert "user=bob" in lab.call("plan", "demo", "--actual", str(snapshot)).stdout
    assert "takeover" in lab.call("diff", "demo").stdout
    assert since(lab) == (below, column)

    snapshot.write_text(lab.call("describe", "demo", "--format", "jsonl").stdout)
    offline = lab.call("plan", "demo", "--actual", str(snapshot)).stdout
    assert "takeover" in offline
    assert expected not in offline


def test_a_value_that_was_released_is_told(lab: Lab) -> None:
    """For a released value a plan shows who released it, in which run and why."""
    lab.desire({"user=bob": {KEY: 7.0}})
    lab.run("reconcile")
    lab.call("release", "demo", "--from-ledger", *WHO, "--reason", "search owns it", "--by", "anna")
    lab.desire({"user=bob": {KEY: 10.0}})

    assert since(lab)[0].startswith("released from the ledger by anna in run 20")
    assert since(lab)[0].endswith(": search owns it")
    lab.put({"user=bob": {KEY: 8.0}})
    assert since(lab)[0].endswith(": search owns it, and changed since")

    lab.put({"user=bob": {KEY: None}})
    gone = lab.run("diff").place.name
    lab.put({"user=bob": {KEY: 7.0}})
    assert since(lab)[0] == f"not there in run {gone}"


def test_the_last_run_that_wrote_a_value_is_told(lab: Lab) -> None:
    """The last run that wrote a value is shown, even if the ledger that recorded it is lost."""
    lab.desire({"user=alice": {KEY: 10.0}, "user=bob": {KEY: 7.0}})
    lab.run("reconcile")
    released = ("release", "demo", "--from-ledger", *WHO, "--reason", "search", "--by", "anna")
    assert lab.call(*released).returncode == 0
    adopted = ("adopt", "demo", *WHO, "--reason", "back", "--by", "bert")
    assert lab.call(*adopted).returncode == 0
    lab.desire({"user=alice": {KEY: 10.0}})
    cleared = lab.run("reconcile").place.name
    lab.put({"user=alice": {KEY: 10.0}, "user=bob": {KEY: 8.0}})
    lab.desire({"user=alice": {KEY: 10.0}, "user=bob": {KEY: 10.0}})
    below, column = since(lab)
    assert column.startswith(f"(cleared by run {cleared})")

    delete_all(lab.records.ledger)
    below, column = since(lab)
    assert below == f"cleared by run {cleared}, and set since"
    assert column.startswith("after 20")


def test_a_value_that_alter_set_is_told(lab: Lab) -> None:
    """For a value set by `alter`, the JSON of a plan has who set it and in which run."""
    lab.desire({"user=alice": {KEY: 10.0}})
    lab.run("reconcile")
    lab.call("alter", "demo", *WHO, "--add", f"{KEY}=7")
    lab.wait_for({"user=alice": {KEY: 10.0}, "user=bob": {KEY: 7.0}})
    rows = json.loads(lab.call("plan", "demo", "--format", "json").stdout)["rows"]

    (origin,) = (row["origin"] for row in rows if row["entity"] == "user=bob")
    assert origin.startswith("set by ")
    assert " with alter in run 20" in origin
