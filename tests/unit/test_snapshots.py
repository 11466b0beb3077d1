"""A snapshot is used only for its cluster, and as complete only if it is complete."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from quota_ops.cli import main
from quota_ops.model.errors import InvalidInput
from quota_ops.model.quotas.alteration import read_changes
from quota_ops.model.quotas.snapshot import SnapshotHeader, read_header, read_snapshot

OURS, OTHER = "MkU3OEVBNTcwNTJENDM2Qg", "b3RoZXItY2x1c3Rlci1pZA"
ROWS = (
    '{"entity": {"user": "alice"}, "key": "producer_byte_rate", "value": 1024.0}\n'
    '{"entity": {"user": "bob"}, "key": "request_percentage", "value": 50.0}\n'
)
FILES = {
    "ours": f'{{"cluster_id": "{OURS}", "filter": null}}\n{ROWS}',
    "other": f'{{"cluster_id": "{OTHER}", "filter": null}}\n{ROWS}',
    "part": f'{{"cluster_id": "{OURS}", "filter": "user=<any>"}}\n{ROWS}',
    "old": ROWS,
    "unnamed": f'{{"cluster_id": null, "filter": null}}\n{ROWS}',
    "damaged": f'\n{{"cluster_id": 7}}\n{ROWS}',
    "empty": "\n",
    "counted": f'{{"cluster_id": "{OURS}", "filter": null, "rows": 2}}\n{ROWS}',
    "cut": f'{{"cluster_id": "{OURS}", "filter": null, "rows": 3}}\n{ROWS}',
    "only a header": f'{{"cluster_id": "{OURS}", "filter": null, "rows": 0}}\n',
    "nonsense": "nonsense",
    "joined": f'{{"cluster_id": "{OURS}", "filter": null}}\n' * 2,
}
WHOLE = {
    "ours": None,
    "other": f"other.jsonl is of cluster {OTHER}, but cluster.yaml has {OURS}.",
    "part": "part.jsonl has only the quotas that match user=<any>.",
    "old": "old.jsonl contains no cluster id, so quota-ops cannot check that it is of demo "
    f"({OURS}). A snapshot that describe writes now names its cluster.",
    "unnamed": "unnamed.jsonl contains no cluster id, so quota-ops cannot check that it is of demo "
    f"({OURS}). A snapshot that describe writes now names its cluster.",
    "empty": "empty.jsonl is empty: the describe that should have written it probably failed.",
    "counted": None,
    "cut": "cut.jsonl has 2 of 3 rows: it was cut off or changed.",
    "only a header": None,
    "nonsense": "nonsense.jsonl:1: this is not a row of a snapshot.",
    "damaged": "damaged.jsonl:2: cluster_id and filter must be text or null, rows a number.",
    "joined": "joined.jsonl:2: this is not a row of a snapshot.",
}
"""For each file, the first line on stderr of a command that needs all quotas of a cluster."""
UNFILTERED = WHOLE | {"part": None}
WORKS = ("ours", "old", "unnamed", "counted", "only a header")
ON_DEMO = {
    "plan demo": (WHOLE, WORKS),
    "diff demo": (WHOLE, WORKS),
    "resolve demo --user alice": (WHOLE, WORKS),
    "describe demo": (UNFILTERED, (*WORKS, "part")),
    "import demo --into imported": (UNFILTERED, (*WORKS, "part")),
}
"""For each command, its message for each file, and the files that it accepts."""


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Create the files beside a cluster's folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QUOTA_OPS_RUN_STORE", str(tmp_path / "store"))
    folder = Path("desired_state") / "demo"
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(f"cluster_id: {OURS}\nconnection: nowhere\n")
    for name, text in FILES.items():
        Path(f"{name}.jsonl").write_text(text)


def run(command: str, *arguments: str) -> Result:
    """Run a command."""
    return CliRunner().invoke(main, [*command.split(), *arguments])


@pytest.mark.parametrize("command", ON_DEMO)
@pytest.mark.parametrize("file", FILES)
def test_a_snapshot_of_another_cluster_or_of_a_part_is_refused(command: str, file: str) -> None:
    """Each command refuses an unsuitable snapshot with a reason, and accepts one without an id."""
    says, uses = ON_DEMO[command]
    result = run(command, "--actual", f"{file}.jsonl")

    assert (result.stderr.partition("\n")[0] or None) == says[file]
    assert result.exit_code == (0 if file in uses else 2)


@pytest.mark.parametrize(
    ("file", "exit_code", "first"),
    [
        ("other", 2, WHOLE["other"]),
        ("damaged", 2, WHOLE["damaged"]),
        ("joined", 2, "joined.jsonl:2: this is not a change."),
        ("ours", 2, "there is no connection nowhere"),
    ],
)
def test_alter_takes_a_snapshot_of_its_own_cluster(file: str, exit_code: int, first: str) -> None:
    """Alter rejects another cluster's snapshot before it connects, and skips a valid header."""
    result = run("alter demo", "--from", f"{file}.jsonl")

    assert (result.exit_code, result.stderr.partition("\n")[0][: len(first)]) == (exit_code, first)


def test_without_a_cluster_a_snapshot_says_whose_it_is() -> None:
    """Without a CLUSTER, describe names the snapshot and the cluster id in it, if any."""
    found = [
        run("describe", "--actual", f"{file}.jsonl").stdout.splitlines()[-1]
        for file in ("other", "part", "old")
    ]

    assert found == [
        f"2 quotas on other.jsonl ({OTHER})",
        f"2 quotas on part.jsonl ({OURS})",
        "2 quotas on old.jsonl",
    ]


def test_import_of_a_part_says_so() -> None:
    """A partial import is allowed, with a warning."""
    assert run("import demo --into new --actual part.jsonl").stdout.splitlines() == [
        "part.jsonl has only the quotas that match user=<any>.",
        "new: 2 quotas of 2 stored ones in 1 file",
    ]


def test_import_writes_the_cluster_that_the_snapshot_names() -> None:
    """Without a cluster.yaml, import takes the id from the snapshot, which must have one."""
    (Path("desired_state") / "demo" / "cluster.yaml").unlink()

    assert run("import demo --actual old.jsonl").stderr.startswith(
        "old.jsonl contains no cluster id\n"
    )
    assert run("import demo --actual other.jsonl").exit_code == 0
    text = (Path("desired_state") / "demo" / "cluster.yaml").read_text()
    assert f"cluster_id: {OTHER}\n" in text


def test_a_snapshot_of_a_snapshot_keeps_what_was_left_out() -> None:
    """A snapshot made from another names its cluster and the filters of both."""
    wanted = ("--names", "user=alice", "--strict", "--format", "jsonl")
    headers = [
        json.loads(run("describe", "--actual", f"{file}.jsonl", *wanted).stdout.splitlines()[0])
        for file in ("ours", "part", "old")
    ]

    assert headers == [
        {"cluster_id": OURS, "filter": "user=alice", "rows": 1},
        {"cluster_id": OURS, "filter": "user=<any> and user=alice", "rows": 1},
        {"cluster_id": None, "filter": "user=alice", "rows": 1},
    ]


def test_a_file_without_a_line_has_no_header() -> None:
    """An empty file of changes belongs to no cluster."""
    assert read_header(["", " "], "changes.jsonl") == SnapshotHeader()


@pytest.mark.parametrize("read", [read_changes, read_snapshot])
def test_a_line_that_is_nested_deep(read: Callable[[list[str], str], object]) -> None:
    """A deeply nested line is rejected like any other invalid line."""
    with pytest.raises(InvalidInput, match=r"^file:1: this is not a "):
        read(["[" * 3000], "file")
