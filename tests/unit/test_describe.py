"""describe without a cluster: its formats, its filter, and invalid snapshots."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from quota_ops.cli import main

SNAPSHOT = r"""
{"entity": {"user": "alice", "client-id": null}, "key": "producer_byte_rate", "value": 1048576.0}
{"entity": {"user": "alice"}, "key": "request_percentage", "value": 12.5}
{"entity": {"user": "alice"}, "key": "producer_byte_rate", "value": 9.223372036854776e+18}
{"entity": {"user": "<default>"}, "key": "request_percentage", "value": "nan"}
{"entity": {"ip": "::1"}, "key": "connection_creation_rate", "value": 5.0}
{"entity": {"ip": "0:0:0:0:0:0:0:1"}, "key": "connection_creation_rate", "value": 6.0}
{"entity": {"client-id-prefix": "app"}, "key": "producer_byte_rate", "value": 5.0}
{"entity": {"user": "bo,b\n"}, "key": "future_key", "value": 5.5}
"""
TABLE = r"""
entity                          key                       value
client-id-prefix=app            producer_byte_rate        5 B/s
client-id=<default>,user=alice  producer_byte_rate        1 MiB/s
ip=0:0:0:0:0:0:0:1              connection_creation_rate  6 connections/s
ip=::1                          connection_creation_rate  5 connections/s
user="<default>"                request_percentage        nan
user="bo,b\n"                   future_key                5.5
user=alice                      producer_byte_rate        unlimited
user=alice                      request_percentage        12.5 %
8 quotas on snapshot.jsonl
"""
TEXT = r"""
{client-id-prefix=app}
  producer_byte_rate=5.0
{user=alice, client-id=<default>}
  producer_byte_rate=1048576.0
{ip=0:0:0:0:0:0:0:1}
  connection_creation_rate=6.0
{ip=::1}
  connection_creation_rate=5.0
{user="<default>"}
  request_percentage=nan
{user="bo,b\n"}
  future_key=5.5
{user=alice}
  producer_byte_rate=unlimited
  request_percentage=12.5
"""
YAML = r"""
owner: unassigned

quotas:
  - user: alice
    client-id: {default: true}
    limits:
      producer_byte_rate: 1 MiB
  - user: alice
    limits:
      producer_byte_rate: unlimited
      request_percentage: 12.5
# left out: client-id-prefix=app  producer_byte_rate: unknown entity type client-id-prefix
# left out: ip=0:0:0:0:0:0:0:1  the same address as ::1: brokers apply the one changed last
# left out: ip=::1  the same address as 0:0:0:0:0:0:0:1: brokers apply the one changed last
# left out: user="<default>"  request_percentage is nan, which YAML cannot declare
# left out: user="bo,b\n"  future_key: unknown quota key
"""


@pytest.fixture(autouse=True)
def _snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("snapshot.jsonl").write_text(SNAPSHOT, "utf-8")


def describe(*arguments: str) -> Result:
    """Run the command on the snapshot."""
    return CliRunner().invoke(main, ["describe", "--actual", "snapshot.jsonl", *arguments])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [([], TABLE), (["--format", "text"], TEXT), (["--format", "yaml"], YAML)],
)
def test_what_people_read(arguments: Sequence[str], expected: str) -> None:
    """Every row is shown, with unknown types and keys, each name on one harmless line."""
    assert describe(*arguments).output == expected.lstrip()


def test_jsonl_is_the_snapshot_in_order() -> None:
    """A snapshot that describe writes is read back as the same rows."""
    header, *rows = lines = describe("--format", "jsonl").output.splitlines()

    assert header == f'{{"cluster_id": null, "filter": null, "rows": {len(rows)}}}'
    assert sorted(rows) == sorted(SNAPSHOT.strip().split("\n"))
    Path("snapshot.jsonl").write_text("\n".join(lines), "utf-8")
    assert describe("--format", "jsonl").output.splitlines() == lines


def test_json_is_one_array() -> None:
    """The array contains the objects of the lines."""
    _, *rows = describe("--format", "jsonl").output.splitlines()

    assert json.loads(describe("--format", "json").output) == list(map(json.loads, rows))


@pytest.mark.parametrize(
    ("arguments", "entities"),
    [
        (["--names", "user=alice"], ["user=alice,client-id", "user=alice"]),
        (["--names", "user=alice", "--strict"], ["user=alice"]),
        (["--names", "user=alice", "--defaults", "client-id"], ["user=alice,client-id"]),
        (["--any", "user", "--strict"], ["user=<default>", "user=bo,b\n", "user=alice"]),
        (["--names", "user=bo,b\n"], ["user=bo,b\n"]),
        (["--defaults", "user"], []),
        (["--names", "ip="], []),
    ],
)
def test_the_filter(arguments: Sequence[str], entities: Sequence[str]) -> None:
    """Only matching entities are listed; no match is not an error."""
    result = describe("--format", "jsonl", *arguments)

    found = [json.loads(one)["entity"] for one in result.output.splitlines()[1:]]
    assert list(dict.fromkeys(map(as_text, found))) == entities
    assert result.exit_code == 0


def as_text(entity: dict[str, str | None]) -> str:
    """Format an entity as types, with names where there are names."""
    return ",".join(kind if name is None else f"{kind}={name}" for kind, name in entity.items())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"entity": {"user": "a"}, "key": "k"}', "snapshot.jsonl:1: this is not a row"),
        (b"\nnonsense", "snapshot.jsonl:2: this is not a row"),
        (b'{"entity": {}, "key": "k", "value": 1}', "snapshot.jsonl:1: this is not a row"),
        (b"\xff", "snapshot.jsonl is not UTF-8"),
        (None, "snapshot.jsonl cannot be read: No such file or directory"),
    ],
)
def test_a_snapshot_that_is_none(content: bytes | None, message: str) -> None:
    """A file that cannot be read completely is rejected, with its line."""
    if content is None:
        Path("snapshot.jsonl").unlink()
    else:
        Path("snapshot.jsonl").write_bytes(content)
    result = describe()

    assert result.exit_code == 2
    assert result.stdout == ""
    assert message in result.stderr
