"""alter on a real broker: what is written, what is rejected, and what is recorded."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from quota_ops.cli import main
from quota_ops.kafka.cluster import Cluster
from quota_ops.model.quotas.difference import Action
from quota_ops.model.quotas.entity import Entity
from quota_ops.store.places.run_store import find_run_store, open_place
from quota_ops.store.run.files import PLAN
from quota_ops.store.run.folder import RunFolder
from tests.looking import seen_in_time
from tests.places import on_disk
from tests.writing import empty

P, C = "producer_byte_rate", "consumer_byte_rate"


@pytest.fixture(name="cluster")
def _cluster(demo: Cluster, tmp_path: Path) -> Iterator[Cluster]:
    """Create a desired state for the shared broker; its quotas are cleared at the end."""
    folder = tmp_path / "desired_state" / "demo"
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(
        f"cluster_id: {demo.cluster_id}\nconnection: demo\nprotect: [{{user: kafka-operator}}]\n"
        "guards: {small_byte_rate: 0, small_percentage: 0, raise_factor: 100000}\n"
    )
    (folder / "team.yaml").write_text(
        "owner: team\nquotas:\n  - {user: alice, limits: {producer_byte_rate: 10 MiB}}\n"
    )
    yield demo
    empty(demo)


def alter(*arguments: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(main, ["alter", "demo", *arguments])


def changes(*arguments: str) -> list[dict[str, Any]]:
    """Return the result of each key in the command's JSON."""
    found: list[dict[str, Any]] = json.loads(alter(*arguments, "--format", "json").stdout)[
        "changes"
    ]
    return found


def run_of(result: Result) -> str:
    """Return the folder of the run, as the command shows it."""
    return next(line for line in result.stdout.splitlines() if line.startswith("run: "))[5:]


Rows = set[tuple[str, str, float]]


def stored(cluster: Cluster) -> Rows:
    """Return what the cluster stores."""
    return {(row.entity.text, row.key, row.value) for row in cluster.describe()}


def settled(cluster: Cluster, expected: Rows) -> Rows:
    """Return what the cluster stores as soon as it is as expected, or after a minute."""
    return seen_in_time(lambda: stored(cluster), expected)


def test_set_and_delete(cluster: Cluster) -> None:
    """One alter sets a key and deletes another; its run folder has both; Git's entry is quoted."""
    assert alter("--names", "user=alice", "--add", f"{P}=3 MiB,{C}=5").exit_code == 0
    before = {("user=alice", P, 3 * 2.0**20), ("user=alice", C, 5.0)}
    assert settled(cluster, before) == before
    lift = ("--allow", "unlimited", "--reason", "INC-31")
    result = alter("--names", "user=alice", "--add", f"{P}=unlimited", "--delete", C, *lift)

    run = run_of(result)
    assert result.stdout == (
        f"demo ({cluster.cluster_id}): altered\n"
        "\n"
        "entity      key                 before   after      result\n"
        "user=alice  consumer_byte_rate  5 B/s    none       accepted\n"
        "  no longer limited: user alice\n"
        "  Git does not declare it either\n"
        "user=alice  producer_byte_rate  3 MiB/s  unlimited  accepted\n"
        "  team.yaml:3 declares 10 MiB/s: guard takeover blocks the run that would set it\n"
        "\n"
        "unlimited: user=alice producer_byte_rate and 1 more would lift the limit of clients "
        "(overridden: INC-31)\n"
        "\n"
        "1 of 1 broker agrees\n"
        f"run: {run}\n"
        "\n"
        "To keep it, declare it in Git:\n"
        "\n"
        "quotas:\n"
        "  # team.yaml:3: replaces the entry of user=alice\n"
        "  - user: alice\n"
        "    limits:\n"
        "      producer_byte_rate: unlimited\n"
    )
    assert [
        (row.batch, row.action, *row.id, row.before, row.after)
        for row in RunFolder(open_place(Path(run))).differences()
    ] == [
        (1, Action.CLEAR, "user=alice", C, 5.0, None),
        (1, Action.SET, "user=alice", P, 3 * 2.0**20, 2.0**63),
    ]
    outcomes = json.loads((Path(run) / "applied.json").read_text())["outcomes"]
    assert [(outcome["entity"], outcome["status"]) for outcome in outcomes] == [
        ("user=alice", "accepted")
    ]
    rows = {("user=alice", P, 2.0**63)}
    assert settled(cluster, rows) == rows


def test_validate_only_writes_nothing(cluster: Cluster) -> None:
    """Validate-only lists the broker's text and code for each entity, and writes nothing."""
    lines = (
        {"entity": {"user": "alice"}, "key": P, "value": "10 MiB"},
        {"entity": {"user": "bob", "client-id": None}, "key": P, "value": 0},
        {"entity": {"group": "a"}, "key": P, "value": 1},
        {"entity": {"ip": "10.0.0.1", "user": None}, "key": P, "value": None},
        {"entity": {"user": "carol"}, "key": "future_key", "value": 1},
        {"entity": {"user": "carol"}, "key": C, "value": 1},
    )
    Path("changes.jsonl").write_text("\n".join(map(json.dumps, lines)))
    result = alter("--from", "changes.jsonl", "--validate-only", "--format", "json")

    answers = {
        one["entity"]: (one["status"], one["code"], one["error"], one["message"])
        for one in json.loads(result.stdout)["changes"]
    }
    assert answers == {
        "user=alice": ("accepted", 0, None, None),
        "client-id=<default>,user=bob": refused("Quota producer_byte_rate must be greater than 0"),
        "group=a": refused("Unhandled client quota entity type: group"),
        "ip=10.0.0.1,user=<default>": refused(
            "Invalid quota entity combination, IP entity shouldnot be combined with User or "
            "ClientId"
        ),
        "user=carol": refused("Invalid configuration key future_key"),
    }
    assert result.exit_code == 1
    assert result.stderr.startswith("the broker rejects 4 of 5 entities:\n  typed  ")
    assert result.stderr.endswith("\n  Nothing was written. Fix the lines above.\n")
    assert stored(cluster) == set()


def refused(words: str) -> tuple[str, int, str, str]:
    """Return a rejection with the broker's message."""
    return "refused", 42, "INVALID_REQUEST", words


def test_one_refusal_stops_all(cluster: Cluster) -> None:
    """Nothing is written if the broker would reject any of it."""
    lines = (
        {"entity": {"user": "alice"}, "key": P, "value": 5},
        {"entity": {"user": "bob"}, "key": P, "value": 0},
    )
    Path("changes.jsonl").write_text("\n".join(map(json.dumps, lines)))
    result = alter("--from", "changes.jsonl")

    assert result.exit_code == 1
    assert "validated, nothing written" in result.stdout
    assert "\n  once written: team.yaml:3 declares 10 MiB/s: guard takeover" in result.stdout
    assert "To keep it" not in result.stdout
    assert (
        CliRunner()
        .invoke(main, ["show", "last"])
        .stdout.startswith("Not altered: nothing was written on demo, by ")
    )
    assert stored(cluster) == set()


def test_what_was_only_asked_is_not_kept(cluster: Cluster) -> None:
    """Validate-only prints no YAML to keep; `show` distinguishes validated changes from written."""
    asked = alter("--names", "user=alice", "--add", f"{P}=3 MiB", "--validate-only")
    only_asked = CliRunner().invoke(main, ["show", "last"]).stdout
    read_back = CliRunner().invoke(main, ["verify", "--run", "last"])
    digest = RunFolder(open_place(Path(run_of(asked)))).read(PLAN).digest
    resumed = [
        CliRunner().invoke(main, [*command, "--run", "last"]).stderr
        for command in (("plan",), ("effects",), ("reconcile", "--approve", digest))
    ]
    alter("--names", "user=alice", "--add", f"{P}=3 MiB")
    altered = CliRunner().invoke(main, ["show", "last"]).stdout

    assert (asked.exit_code, "To keep it" in asked.stdout) == (0, False)
    assert only_asked.partition("\n")[0].endswith(
        ": the broker would accept all of it, and was only validated."
    )
    assert re.search(r"Requested changes(.|\n)* would be accepted", only_asked)
    assert all(" is an alter, and " in error for error in resumed), resumed
    assert read_back.exit_code == 2
    assert (
        " wrote nothing that could be verified: no broker accepted its change" in read_back.stderr
    )
    assert re.search(r"\nAltered\n(.|\n)* accepted", altered)
    assert altered.startswith("Altered: 1 of 1 change on demo was written, by ")
    assert settled(cluster, {("user=alice", P, 3 * 2.0**20)}) == stored(cluster)


def test_what_is_protected_is_left_alone(cluster: Cluster) -> None:
    """An alter of a protected entity is refused as a whole, and names the entry of `protect`."""
    result = alter("--names", "user=kafka-operator", "--delete", P)

    assert (result.exit_code, result.stdout, stored(cluster)) == (1, "", set())
    assert result.stderr.startswith("user=kafka-operator is protected: cluster.yaml lists")


def test_names_as_they_are(cluster: Cluster) -> None:
    """A name with commas, spaces, a line end and quotes arrives byte for byte."""
    name = 'a,client-id=b, "c"\n%20<default>'
    found = changes("--names", f"user={name}", "--names", "client-id= ", "--add", f"{P}=5")

    assert [one["status"] for one in found] == ["accepted"]
    entity = Entity.of({"user": name, "client-id": " "}).text
    rows = {(entity, P, 5.0)}
    assert settled(cluster, rows) == rows


def test_a_name_that_is_nearly_a_stored_one(cluster: Cluster) -> None:
    """The alter goes on, because the name may be new, and asks whether the other one is meant."""
    alter("--names", "user=alice", "--add", f"{P}=5")
    assert settled(cluster, {("user=alice", P, 5.0)}) == {("user=alice", P, 5.0)}

    told = [alter("--names", f"user={name}", "--add", f"{P}=5") for name in ("alcie", "alice")]

    hint = (
        "user=alcie  QO123 notice  user alcie is nearly user alice, which has a quota. "
        "Did you mean alice?"
    )
    assert [(one.exit_code, hint in one.stdout.splitlines()) for one in told] == [
        (0, True),
        (0, False),
    ]


def test_yaml_with_problems_stops_nobody(cluster: Cluster) -> None:
    """An alter writes although the YAML is invalid, and shows that what Git declares is unknown."""
    (Path("desired_state") / "demo" / "broken.yaml").write_text("owner: [")
    result = alter("--names", "user=alice", "--add", f"{P}=5")

    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == (
        "It is unknown what the next run does: the files of Git are invalid. They are listed by: "
        "quota-ops check"
    )
    rows = {("user=alice", P, 5.0)}
    assert settled(cluster, rows) == rows


def test_without_a_ledger_an_alter_is_blocked(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """What protects entities was not asked then; if a person allows it, what is lost is told."""
    ledger = find_run_store().of_cluster(cluster.cluster_id).ledger
    on_disk(ledger).parent.mkdir(parents=True)
    on_disk(ledger).touch()
    why = f"the ledger cannot be read: {ledger} cannot be listed: Not a directory"

    blocked = alter("--names", "user=alice", "--add", f"{P}=5")
    assert (blocked.exit_code, stored(cluster)) == (1, set())
    assert blocked.stderr.startswith(
        "guards block this plan: unprotected: it is unknown what the last applied cluster.yaml "
        f"protects, and its thresholds: {why}\n  Nothing was written. "
        "To override: --allow unprotected --reason TEXT"
    )
    allowed = ("--allow", "unprotected", "--reason", "INC-31")
    written = alter("--names", "user=alice", "--add", f"{P}=5", *allowed)

    assert written.exit_code == 0
    assert settled(cluster, {("user=alice", P, 5.0)}) == {("user=alice", P, 5.0)}
    assert f"\nIt is unknown what the next run does: {why}\n" in written.stdout
    (warning,) = (text for name, _, text in caplog.record_tuples if name.startswith("quota_ops"))
    assert warning == (
        f"runs may not know that this alter sent these values, if they arrive late: {why}"
    )


def test_an_alter_is_undone(cluster: Cluster) -> None:
    """The values before an alter are restored where they are as it left them; others are named.

    `last` is the last alter that wrote, although a refused one and a plan came after it, and also
    when the folder of the cluster has another name by then.
    """
    (Path("desired_state") / "demo" / "team.yaml").unlink()
    alter("--names", "user=alice", "--add", f"{P}=3 MiB")
    lines = (
        {"entity": {"user": "alice"}, "key": P, "value": 5},
        {"entity": {"user": "bob"}, "key": P, "value": 5},
        {"entity": {"user": "carol"}, "key": P, "value": 5},
    )
    Path("changes.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert alter("--from", "changes.jsonl", "--allow", "cut", "--reason", "why").exit_code == 0
    run = last_run()
    alter("--names", "user=carol", "--add", f"{P}=6")
    allowed = ("--allow", "raise", "--allow", "unlimited", "--reason", "INC-31")
    hold = ("hold", "demo", "--names", "user=bob", "--until", "1h", "--by", "anna")
    CliRunner().invoke(main, [*hold, "--reason", "a test"])

    undone = alter("--undo", run, *allowed)

    assert undone.exit_code == 0, undone.stderr
    assert undone.stderr.splitlines()[0] == (
        "user=carol producer_byte_rate was changed since, and stays as it is"
    )
    release = "To end the hold: quota-ops release demo --names user=bob --reason TEXT"
    assert re.search(rf"user=bob is still held until .* by anna: a test\. {release}", undone.stderr)
    rows = {("user=alice", P, 3 * 2.0**20), ("user=carol", P, 6.0)}
    assert settled(cluster, rows) == rows
    again = alter("--undo", run)
    assert (again.exit_code, again.stdout) == (1, "")
    assert again.stderr == (
        f"the cluster no longer has the values that run {run} set\n"
        "  Nothing was written. Set the values that you want: quota-ops alter --names ...\n"
    )
    assert CliRunner().invoke(main, ["plan", "demo"]).exit_code == 0
    last = last_run()
    assert alter("--undo", last).stderr == (
        f"run {last} is not an alter\n  To roll back a plan: quota-ops rollback {last}\n"
    )
    beside = alter("--undo", run, "--add", f"{P}=1")
    assert beside.stderr.startswith("--undo already contains the entities and their changes\n")

    (Path("desired_state") / "demo").rename(Path("desired_state") / "shop")
    renamed = ("alter", "shop", "--undo", "last", "--allow", "cut", "--reason", "INC-31")
    assert CliRunner().invoke(main, renamed).exit_code == 0
    rows = {("user=alice", P, 5.0), ("user=bob", P, 5.0), ("user=carol", P, 6.0)}
    assert settled(cluster, rows) == rows


def last_run() -> str:
    """Return the name of the last run."""
    runs = CliRunner().invoke(main, ["runs", "demo", "--format", "json"]).stdout
    return str(json.loads(runs)[0]["run"])


FREEZE = "freeze: [{cron: '* * * * *', zone: UTC, duration: 1h, reason: the weekend}]\n"


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        ("paused: moving\n", "paused: moving"),
        (FREEZE, r"frozen until \d{4}-\d\d-\d\d \d\d:\d\d UTC: the weekend"),
    ],
)
def test_a_standstill_is_said(policy: str, why: str, cluster: Cluster) -> None:
    """An alter during a pause writes, and shows that no reconcile reverts it before the end."""
    with (Path("desired_state") / "demo" / "cluster.yaml").open("a") as file:
        file.write(policy)

    result = alter("--names", "user=alice", "--add", f"{P}=5")
    told = json.loads(alter("--names", "user=alice", "--add", f"{P}=5", "--format", "json").stdout)[
        "standstill"
    ]

    back = "no reconcile of these files reverts it before that ends"
    words = rf"demo is {why}\. alter writes anyway; {back}\."
    assert re.search(rf"^{words}$", result.stdout, re.MULTILINE)
    assert re.fullmatch(why, told)
    assert settled(cluster, {("user=alice", P, 5.0)}) == {("user=alice", P, 5.0)}
