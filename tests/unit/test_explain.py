"""The command explain: what a line or an entity becomes, from the files alone."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from quota_ops.cli import main

CLUSTER = """\
cluster_id: MkU3OEVBNTcwNTJENDM2Qg
connection: demo
profiles:
  silver: {producer_byte_rate: 10 MiB}
"""
TEAM = """\
owner: team
quotas:
  - user: [alice, bob]
    profile: silver
    overrides:
      - {until: 2026-12-02T00:00Z, limits: {producer_byte_rate: 20 MiB}}
    until: 2026-12-03T00:00Z
  - {user: carol, limits: {request_percentage: 1}}
groups:
  - name: jobs
    members: [{user: hourly}, {user: daily}]
    budget: {consumer_byte_rate: 10 MiB}
"""
APPS = """\
owner: apps
quotas:
  - {user: alice, client-id: {default: true}, limits: {producer_byte_rate: 1 MiB}}
"""
ALICE = """\
user=alice
  producer_byte_rate: 20 MiB/s, team.yaml:6: list of 2, override until 2026-12-02T00:00:00Z, then 10 MiB/s
    from 2026-12-02T00:00:00Z: 10 MiB/s, team.yaml:4: list of 2, profile silver (cluster.yaml:4), until 2026-12-03T00:00:00Z, then none
    from 2026-12-03T00:00:00Z: none
"""  # noqa: E501 - as it is printed
GROUP = """\
user=hourly
  consumer_byte_rate: 5 MiB/s, team.yaml:12: group jobs, 1 of 2 of 10 MiB/s
user=daily
  consumer_byte_rate: 5 MiB/s, team.yaml:12: group jobs, 1 of 2 of 10 MiB/s
"""


def explain(root: Path, *asked: str) -> str:
    """Return what the command prints for the cluster demo, as of the first of December."""
    folder = root / "desired_state" / "demo"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cluster.yaml").write_text(CLUSTER)
    (folder / "team.yaml").write_text(TEAM)
    where = ["--desired-state", str(folder.parent), "--as-of", "2026-12-01T00:00Z"]
    ended = CliRunner().invoke(main, ["explain", "demo", *where, *asked])
    assert ended.exit_code == 0, ended.output
    return ended.stdout


def test_an_entity_and_a_line(tmp_path: Path) -> None:
    """An entity, a line of an entry, a line of a group and one of a profile are explained."""
    both = ALICE + ALICE.replace("alice", "bob")

    assert explain(tmp_path, "user=alice") == ALICE
    assert explain(tmp_path, "team.yaml:7") == both
    assert explain(tmp_path, str(tmp_path / "desired_state/demo/team.yaml:3")) == both
    assert explain(tmp_path, "team.yaml:11") == GROUP
    profile = explain(tmp_path, "cluster.yaml:4", "--as-of", "2026-12-02T00:00Z")
    assert [line for line in profile.splitlines() if line.startswith("user")] == [
        "user=alice",
        "user=bob",
    ]


def test_the_same_for_programs(tmp_path: Path) -> None:
    """With --format json each limit has its place, its derivation and its changes."""
    [found] = json.loads(explain(tmp_path, "user=alice", "--format", "json"))["limits"]

    assert found == {
        "cluster": "demo",
        "entity": {"user": "alice"},
        "key": "producer_byte_rate",
        "value": 20971520.0,
        "file": "team.yaml",
        "line": 6,
        "from": "list of 2, override until 2026-12-02T00:00:00Z, then 10 MiB/s",
        "until": "2026-12-02T00:00:00Z",
        "whole": None,
        "changes": [
            {"at": "2026-12-02T00:00:00Z", "value": 10485760.0},
            {"at": "2026-12-03T00:00:00Z", "value": None},
        ],
    }


def test_every_limit_one_a_line(tmp_path: Path) -> None:
    """Without a line or an entity, every limit is explained, also as one object a line."""
    lines = explain(tmp_path, "--as-of", "2026-12-02T00:00Z", "--format", "jsonl").splitlines()
    text = explain(tmp_path)

    assert [(one["entity"], one["value"], one["line"]) for one in map(json.loads, lines)] == [
        ({"user": "alice"}, 10485760.0, 4),
        ({"user": "bob"}, 10485760.0, 4),
        ({"user": "carol"}, 1.0, 8),
        ({"user": "hourly"}, 5242880.0, 12),
        ({"user": "daily"}, 5242880.0, 12),
    ]
    carol = "user=carol\n  request_percentage: 1 %, team.yaml:8\n"
    assert text == ALICE + ALICE.replace("alice", "bob") + carol + GROUP


NEWQ = """\
owner: team
quotas:
  - user: newq
    limits: {request_percentage: 1}
    overrides:
      - {from: 2026-12-02T00:00Z, until: 2026-12-03T00:00Z, limits: {consumer_byte_rate: 9 MiB}}
      - {from: 2026-12-05T00:00Z, until: 2026-12-06T00:00Z, limits: {consumer_byte_rate: 8 MiB}}
"""


def test_a_limit_that_begins_later_is_listed(tmp_path: Path) -> None:
    """A key that has no limit yet is listed with the time from which it has one."""
    folder = tmp_path / "desired_state" / "demo"
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(CLUSTER)
    (folder / "team.yaml").write_text(NEWQ)
    where = ["--desired-state", str(folder.parent), "--as-of", "2026-12-01T00:00Z"]

    text = CliRunner().invoke(main, ["explain", "demo", "user=newq", *where]).stdout
    shown = CliRunner().invoke(main, ["explain", "demo", *where, "--format", "json"]).stdout

    assert text == (
        "user=newq\n"
        "  request_percentage: 1 %, team.yaml:4\n"
        "  consumer_byte_rate: none\n"
        "    from 2026-12-02T00:00:00Z: 9 MiB/s, team.yaml:6: override until 2026-12-03T00:00:00Z,"
        " then none\n"
        "    from 2026-12-03T00:00:00Z: none\n"
        "    from 2026-12-05T00:00:00Z: 8 MiB/s, team.yaml:7: override until 2026-12-06T00:00:00Z,"
        " then none\n"
        "    from 2026-12-06T00:00:00Z: none\n"
    )
    [_, later] = json.loads(shown)["limits"]
    assert (later["key"], later["value"], later["until"]) == (
        "consumer_byte_rate",
        None,
        "2026-12-02T00:00:00Z",
    )
    assert [change["value"] for change in later["changes"]] == [
        9.0 * 2**20,
        None,
        8.0 * 2**20,
        None,
    ]


RATES = """\
owner: team
quotas:
  - {user: etl, topics: [orders], cluster_limits: {producer_byte_rate: 30 MiB}}
  - {user: web, cluster_limits: {producer_byte_rate: 30 MiB}}
"""


UNDIVIDED = (
    "2 limits of the whole cluster are divided by the brokers at each run. To see the shares:"
    " quota-ops explain demo --brokers N, or a FILE for topics"
)


def test_limits_of_the_whole_cluster(tmp_path: Path) -> None:
    """Without brokers, their shares are unknown and not guessed; --brokers stands in for them."""
    explain(tmp_path, "user=alice")
    folder = tmp_path / "desired_state" / "demo"
    (folder / "team.yaml").write_text(RATES)
    file = tmp_path / "brokers.json"

    def call(command: str, *more: str) -> tuple[int, list[str]]:
        where = [command, "demo", "--desired-state", str(folder.parent), *more]
        ended = CliRunner().invoke(main, where)
        return ended.exit_code, ended.output.replace(str(folder), "demo").splitlines()

    assert call("check")[1][-2:] == [UNDIVIDED, "demo: 2 quotas in 2 files, no problems, 1 finding"]
    unknown, jsonl = call("explain"), call("explain", "--format", "jsonl")
    assert unknown[1] == [
        "user=etl",
        "  producer_byte_rate: 30 MiB/s per cluster, team.yaml:3: 30 MiB/s per cluster",
        "user=web",
        "  producer_byte_rate: 30 MiB/s per cluster, team.yaml:4: 30 MiB/s per cluster",
        UNDIVIDED,
    ]
    assert [(one["value"], one["whole"]) for one in map(json.loads, jsonl[1])] == [
        (None, 31457280.0),
        (None, 31457280.0),
    ]
    file.write_text("{1: [orders], 2: [orders, users], 3: []}")
    known = call("explain", "--brokers", str(file), "--format", "jsonl")
    assert [json.loads(line)["value"] for line in known[1]] == [15728640.0, 10485760.0]
    few = call("explain", "--brokers", "3", "--format", "jsonl")
    assert [json.loads(line)["value"] for line in few[1]] == [None, 10485760.0]
    assert call("explain", "user=etl", "--brokers", "3")[1] == [
        "user=etl",
        "  producer_byte_rate: 30 MiB/s per cluster, team.yaml:3: 30 MiB/s per cluster",
        UNDIVIDED.replace("2 limits of the whole cluster are", "1 limit of the whole cluster is"),
    ]
    shares = "over 3 brokers: 10 MiB/s if one serves it, 30 MiB/s if all do"
    assert call("explain", "user=web", "--brokers", "3")[1] == [
        "user=web",
        f"  producer_byte_rate: 10 MiB/s, team.yaml:4: 30 MiB/s per cluster, {shares}",
    ]
    for given, why in (("0", "is not a number"), ("none.yaml", "cannot be read")):
        assert why in call("check", "--brokers", given)[1][0]
    for text, why in (("{}", "lists no broker"), ("[1", "does not list brokers")):
        file.write_text(text)
        assert why in call("check", "--brokers", str(file))[1][0]


SHARED = "profiles:\n  gold: {producer_byte_rate: 30 MiB}\n"


@pytest.mark.parametrize("name", ["../_shared/tiers.yaml", "_shared/tiers.yaml"])
def test_a_line_of_a_shared_file(tmp_path: Path, name: str) -> None:
    """A line of a shared file is found under the name in an explanation, and under its own."""
    shared = tmp_path / "desired_state" / "_shared"
    shared.mkdir(parents=True)
    (shared / "tiers.yaml").write_text(SHARED)
    folder = tmp_path / "desired_state" / "demo"
    folder.mkdir()
    (folder / "cluster.yaml").write_text(f"{CLUSTER}use: [tiers.yaml]\n")
    (folder / "team.yaml").write_text("owner: team\nquotas: [{user: alice, profile: gold}]\n")
    where = ["--desired-state", str(folder.parent)]

    ended = CliRunner().invoke(main, ["explain", "demo", f"{name}:2", *where])

    assert ended.stdout == (
        "user=alice\n"
        "  producer_byte_rate: 30 MiB/s, team.yaml:2: profile gold (../_shared/tiers.yaml:2)\n"
    )


@pytest.mark.parametrize(
    ("what", "remedy"),
    [
        ("alice", "Did you mean user=alice?"),
        ("user=alcie", "Did you mean user=alice?"),
        ("team.yaml", "Write an entity as plans show it, for example user=alice, or FILE:LINE."),
    ],
)
def test_a_name_alone_is_no_entity(tmp_path: Path, what: str, remedy: str) -> None:
    """The entity that has the name is suggested, so that nobody has to know how entities look."""
    explain(tmp_path, "user=alice")
    (tmp_path / "desired_state" / "demo" / "apps.yaml").write_text(APPS)
    where = ["--desired-state", str(tmp_path / "desired_state"), "--as-of", "2026-12-01T00:00Z"]

    ended = CliRunner().invoke(main, ["explain", "demo", what, *where])

    assert ended.exit_code == 2
    assert ended.stderr == f"demo declares no quota of {what} at this time\n  {remedy}\n"


def test_the_shares_of_brokers_are_judged(tmp_path: Path) -> None:
    """With --brokers, capacity and ceilings are compared with the share that each broker grants."""
    folder = tmp_path / "desired_state" / "demo"
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(
        "cluster_id: MkU3OEVBNTcwNTJENDM2Qg\nconnection: demo\n"
        "capacity: {producer_byte_rate: 90 MiB}\n"
        "ceilings: {team: {producer_byte_rate: 99 MiB}}\n"
    )
    quota = "{user: etl, cluster_limits: {producer_byte_rate: 300 MiB}}"
    (folder / "team.yaml").write_text(f"owner: team\nquotas: [{quota}]\n")
    where = ["--desired-state", str(folder.parent)]

    def check(*more: str) -> str:
        return CliRunner().invoke(main, ["check", "demo", *where, *more]).output

    assert "QO" not in check()
    assert "QO" not in check("--brokers", "4")
    said = check("--brokers", "3")
    assert "demo/team.yaml:2  QO120 warning  producer_byte_rate of user=etl is 100 MiB/s" in said
    assert "on each broker, above the 99 MiB/s that team may declare." in said
    assert "100 MiB/s of producer_byte_rate are promised on each broker, 1.11 times" in said
