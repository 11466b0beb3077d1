"""The command explain: what a line or an entity becomes, from the files alone."""

import json
from pathlib import Path

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


def explain(root: Path, what: str, *more: str) -> str:
    """Return what the command prints for the cluster demo, as of the first of December."""
    folder = root / "desired_state" / "demo"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cluster.yaml").write_text(CLUSTER)
    (folder / "team.yaml").write_text(TEAM)
    where = ["--desired-state", str(folder.parent), "--as-of", "2026-12-01T00:00Z"]
    ended = CliRunner().invoke(main, ["explain", "demo", what, *where, *more])
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
        "changes": [
            {"at": "2026-12-02T00:00:00Z", "value": 10485760.0},
            {"at": "2026-12-03T00:00:00Z", "value": None},
        ],
    }


def test_every_limit_one_a_line(tmp_path: Path) -> None:
    """The option --expanded of check prints each limit as one object a line, or as a table."""
    explain(tmp_path, "user=alice")
    where = ["--desired-state", str(tmp_path / "desired_state"), "--as-of", "2026-12-02T00:00Z"]
    lines = CliRunner().invoke(main, ["check", "demo", "--expanded", "--format", "jsonl", *where])
    table = CliRunner().invoke(main, ["check", "demo", "--expanded", *where])

    found = [json.loads(line) for line in lines.stdout.splitlines()]
    assert [(one["entity"], one["value"], one["line"]) for one in found] == [
        ({"user": "alice"}, 10485760.0, 4),
        ({"user": "bob"}, 10485760.0, 4),
        ({"user": "carol"}, 1.0, 8),
        ({"user": "hourly"}, 5242880.0, 12),
        ({"user": "daily"}, 5242880.0, 12),
    ]
    assert [line.split()[0] for line in table.stdout.splitlines()[:6]] == [
        "entity",
        *("user=alice", "user=bob", "user=carol", "user=hourly", "user=daily"),
    ]
