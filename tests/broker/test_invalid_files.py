"""A quotas file with problems stops what depends on it, and nothing else, on a real broker."""

import json
from pathlib import Path

from quota_ops.model.quotas.specification import parse_exactly
from quota_ops.store.ledger.holds import holds_now
from quota_ops.store.run.files import CHECKED, PAGE, REPORT
from tests.lab import Lab

KEY = "producer_byte_rate"
LEFT = "search.yaml (owner search) is invalid: line 3: limts is not a field of a quota."


def write_file(folder: Path, name: str, owner: str, *lines: str) -> None:
    """Write a quotas file."""
    text = "\n".join((f"owner: {owner}", "quotas:", *lines))
    (folder / name).write_text(f"{text}\n", "utf-8")


def entry(user: str, rate: str, field: str = "limits") -> str:
    """Return the line of a quota."""
    return f"  - {{user: {user}, {field}: {{{KEY}: {rate}}}}}"


def test_an_invalid_file_stops_its_own_quotas_alone(lab: Lab) -> None:
    """The screen, the report, JSON, metrics and exit codes name the file, its owner and its rows.

    Others are changed, and what the file declared last, or may declare now, stays as it is stored.
    """
    both = {"user=alice": {KEY: 1048576.0}, "user=moved": {KEY: 1048576.0}}
    lab.desire(both, clear_unmanaged=True)
    write_file(lab.folder, "search.yaml", "search", entry("bob", "2 MiB"), entry("eve", "3 MiB"))
    assert lab.call("reconcile", "demo").returncode == 0

    lab.desire({"user=alice": {KEY: 2097152.0}}, clear_unmanaged=True)
    write_file(lab.folder, "search.yaml", "search", entry("bob", "9 MiB", "limts"))
    lab.put({"user=eve": {KEY: 1000.0}, "user=stranger": {KEY: 5000.0}})
    planned = lab.call("plan", "demo")
    assert lab.call("reconcile", "demo").returncode == 6
    assert lab.call("check", "demo").returncode == 2

    assert planned.returncode == 6, planned.stdout + planned.stderr
    assert LEFT in planned.stdout
    assert (
        "Until it is corrected, nothing is cleared on demo, and 3 quotas stay as stored, not "
        "judged: quota-ops check demo shows every problem."
    ) in planned.stdout
    assert "1 to change of 1, 0 in sync, 3 not judged, 1 unmanaged" in planned.stdout
    rates = {name.removeprefix("user="): keys[KEY] for name, keys in lab.stored().items()}
    assert rates == {
        "alice": 2097152.0,
        "bob": 2097152.0,
        "eve": 1000.0,
        "moved": 1048576.0,
        "stranger": 5000.0,
    }
    for command in ("report", "verify"):
        shown = lab.call(command, "demo")
        assert (command, shown.returncode) == (command, 6)
        assert LEFT in shown.stdout
    run = lab.runs[-2]
    report = run.read_json(REPORT)
    assert report["answer"] == {
        "status": "Unknown",
        "sentence": "search.yaml (owner search) is invalid, so it is unknown whether demo matches "
        "Git; 3 not judged; 1 of 1 quota in sync; 1 unmanaged.",
    }
    assert (report["counts"]["not_judged"], report["counts"]["in_sync"]) == (3, 1)
    assert [file["file"] for file in report["invalid"]] == ["search.yaml"]
    for name in ("report.txt", PAGE):
        assert LEFT in (run.place / name).read().decode(), name
    metrics = lab.call("metrics").stdout
    for metric, value in (("quotas_not_judged", 3), ("files_invalid", 1), ("quotas_in_sync", 1)):
        assert f'quota_ops_{metric}{{cluster="demo"}} {value}.0' in metrics

    history = " ".join(lab.call("history", "demo", "--entity", "user=eve").stdout.split())
    assert f"{KEY} drifted, seen by 3 runs none -> 1 kB/s" in history, history

    group = ("demo", "--file", "search.yaml")
    held = lab.call("hold", *group, "--until", "1h", "--reason", "INC-31")
    assert ": file search.yaml (" in held.stdout, held.stderr
    assert held.stderr == (
        "search.yaml is invalid: only its quotas in the ledger are known. To see "
        "every problem: quota-ops check demo\n"
    )
    (recorded,) = holds_now(lab.records.holds)
    assert recorded.who.covers(parse_exactly(("user=eve",), (), ()))
    assert recorded.who.covers(parse_exactly(("user=bob",), (), ()))
    assert lab.call("release", *group).returncode == 0

    write_file(lab.folder, "search.yaml", "search", entry("bob", "9 MiB"))
    mended = json.loads(lab.call("plan", "demo", "--format", "json").stdout)
    kinds = {row["entity"]: row["kind"] for row in mended["rows"]}
    assert kinds == {
        "user=bob": "pending",
        "user=eve": "changed_since",
        "user=moved": "removed",
        "user=stranger": "unmanaged",
    }
    assert mended["invalid"] == []


def test_a_lost_list_of_invalid_files_is_no_empty_one(lab: Lab) -> None:
    """If checked.json is lost or damaged, the run ends before its rows could look removed."""
    lab.desire({"user=alice": {KEY: 1048576.0}})
    write_file(lab.folder, "search.yaml", "search", entry("bob", "1 MiB"))
    assert lab.call("reconcile", "demo").returncode == 0
    write_file(lab.folder, "search.yaml", "search", entry("bob", "1 MiB", "limts"))
    lab.call("diff", "demo")
    place = lab.runs[-1].place
    for content in (b"{", None):
        if content is None:
            (place / CHECKED).delete()
        else:
            (place / CHECKED).replace(content)
        described = lab.call("describe", "--run", str(place))
        assert (described.returncode, CHECKED in described.stderr) == (2, True), described.stderr


def test_two_files_with_the_same_user(lab: Lab) -> None:
    """If two branches gave a user two quotas, both files stay as stored, and another is applied."""
    lab.desire({"user=alice": {KEY: 1048576.0}})
    write_file(lab.folder, "a.yaml", "payments", entry("pay", "1 MiB"))
    write_file(lab.folder, "b.yaml", "search", entry("find", "1 MiB"))
    assert lab.call("reconcile", "demo").returncode == 0

    lab.desire({"user=alice": {KEY: 2097152.0}})
    write_file(lab.folder, "a.yaml", "payments", entry("pay", "2 MiB"), entry("new", "1 MiB"))
    write_file(lab.folder, "b.yaml", "search", entry("find", "2 MiB"), entry("new", "3 MiB"))
    done = lab.call("reconcile", "demo")

    assert done.returncode == 6, done.stdout + done.stderr
    for file, owner in (("a.yaml", "payments"), ("b.yaml", "search")):
        assert (
            f"{file} (owner {owner}) is invalid: line 4: user=new is declared twice" in done.stdout
        )
    assert {name: keys[KEY] for name, keys in lab.stored().items()} == {
        "user=alice": 2097152.0,
        "user=find": 1048576.0,
        "user=pay": 1048576.0,
    }


def test_a_ceiling_counts_the_quotas_of_an_invalid_file(lab: Lab) -> None:
    """They stay as stored, so another file of the same owner cannot use their part of the total."""
    lab.desire({"user=carol": {KEY: 1e6}}, ceilings={"team": {"total": {KEY: "30 MB"}}})
    write_file(lab.folder, "a.yaml", "team", entry("alice", "20 MB"))
    lab.run("reconcile")
    write_file(lab.folder, "b.yaml", "team", entry("bob", "20 MB"))
    write_file(lab.folder, "a.yaml", "team", entry("alice", "20 MB", "limts"))

    ended = lab.call("reconcile", "demo")

    assert "above_ceiling: " in ended.stdout
    assert lab.stored() == {"user=alice": {KEY: 20e6}, "user=carol": {KEY: 1e6}}
