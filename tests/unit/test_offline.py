"""diff and plan on a snapshot, and how they treat rows of unknown types and keys."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from quota_ops.cli import main
from quota_ops.desired.read import read_policy
from quota_ops.model.plans import ledger_edits
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.rows import LedgerRow
from quota_ops.store.ledger import ledger
from quota_ops.store.places.run_store import RunStore, open_place
from tests.places import on_disk
from tests.yaml_cases import load_yaml

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
UNKNOWN = tuple(
    pytest.param(case, id=f"{Entity.of(case['entity'])} {case['key']}")
    for case in load_yaml((Path(__file__).parents[1] / "cases" / "unknown.yaml").read_text("utf-8"))
)
ALLOW = "--allow", "unlimited", "--reason", "nobody uses it"
ALICE = '{"entity": {"user": "alice"}, "key": "producer_byte_rate", "value": 1024.0}\n'


@pytest.fixture(name="store", autouse=True)
def _store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunStore:
    """Create a cluster folder, and a ledger with a verified run, so that plans clear rows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QUOTA_OPS_RUN_STORE", str(tmp_path / "store"))
    folder = tmp_path / "desired_state" / "demo"
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(
        f"cluster_id: {CLUSTER_ID}\nconnection: nowhere\nclear_unmanaged: true\n"
    )
    (folder / "team.yaml").write_text(
        "owner: team\nquotas:\n  - {user: bob, limits: {producer_byte_rate: 10 MiB}}\n"
    )
    store = RunStore(open_place(tmp_path / "store"))
    row = LedgerRow(
        CLUSTER_ID,
        "user=x",
        "producer_byte_rate",
        1.0,
        ledger_edits.VERIFIED,
        *(None,) * 3,
        "r",
        "t",
    )
    ledger.change(
        store.of_cluster(CLUSTER_ID),
        lambda rows: ledger_edits.confirm(rows, [row]),
        policy=read_policy(folder),
    )
    return store


def run(command: str, *arguments: str) -> Result:
    """Run a command on the snapshot."""
    line = [command, "demo", "--actual", "snapshot.jsonl", *arguments]
    return CliRunner().invoke(main, line)


def differences(command: str) -> list[dict[str, Any]]:
    """Return every row that differs, as in the run's JSON."""
    result = run(command, "--format", "json")
    found: list[dict[str, Any]] = json.loads(result.stdout)["rows"]
    return found


@pytest.mark.parametrize("case", UNKNOWN)
def test_what_we_do_not_know_is_shown_and_never_planned(case: Any) -> None:
    """The unknown row is reported with its reason; the known one beside it is cleared."""
    row = {"entity": case["entity"], "key": case["key"], "value": 7.0}
    Path("snapshot.jsonl").write_text(ALICE + json.dumps(row) + "\n")

    found = {(one["entity"], one["key"]): one for one in differences("plan")}

    unknown = found[Entity.of(case["entity"]).text, case["key"]]
    assert (unknown["kind"], unknown["action"], unknown["before"]) == ("unmanaged", "report", 7.0)
    assert unknown.get("hands_off") == case["left"]
    assert found["user=alice", "producer_byte_rate"]["action"] == "clear"
    again = CliRunner().invoke(
        main, ["describe", "--actual", "snapshot.jsonl", "--format", "jsonl"]
    )
    assert row in [json.loads(line) for line in again.stdout.splitlines()]


def test_a_plan_on_a_snapshot_says_that_nobody_was_asked() -> None:
    """The guards judge the plan, no broker is queried, and the screen shows both."""
    Path("snapshot.jsonl").write_text(ALICE)
    result = run("plan", "--detailed-exitcode", *ALLOW)

    assert result.exit_code == 4
    assert ["pending", "user=bob", "producer_byte_rate"] in [
        line.split()[:3] for line in result.stdout.splitlines()
    ]
    assert result.stdout.splitlines()[-1] == (
        "offline, against snapshot.jsonl: not validated by a broker"
    )


def test_a_diff_on_a_snapshot() -> None:
    """The three sides are joined as with a cluster."""
    Path("snapshot.jsonl").write_text(ALICE)

    assert [(one["entity"], one["kind"], one["action"]) for one in differences("diff")] == [
        ("user=alice", "unmanaged", "clear"),
        ("user=bob", "pending", "set"),
        ("user=x", "gone", "forget"),
    ]


def test_a_table_is_the_same_in_every_form() -> None:
    """JSON Lines and CSV have the rows of JSON: a line each, and the same columns in CSV."""
    Path("snapshot.jsonl").write_text(ALICE)
    rows = differences("plan")
    in_lines = run("plan", "--format", "jsonl").stdout
    in_csv = run("plan", "--format", "csv").stdout

    assert [json.loads(text) for text in in_lines.splitlines()] == rows
    columns = list(dict.fromkeys(name for row in rows for name in row))
    assert list(csv.reader(in_csv.splitlines())) == [
        columns,
        *([_as_cell(row.get(name)) for name in columns] for row in rows),
    ]


def _as_cell(value: Any) -> str:
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return "" if value is None else str(value)


def test_a_form_that_a_command_does_not_have() -> None:
    """It is a usage error that lists the forms which the command has."""
    result = CliRunner().invoke(main, ["ping", "demo", "--format", "csv"])

    assert result.exit_code == 2
    assert "'csv' is not one of 'text', 'json'." in result.stderr


def list_loaded(*arguments: str) -> set[str]:
    """Return the modules that a process has loaded at the end of a command."""
    program = (
        "import sys; from quota_ops.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "finally: print(*sorted(sys.modules), file=sys.stderr)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True
    )
    return set(ended.stderr.split())


def test_what_a_check_loads() -> None:
    """A check loads no Kafka client, engine or Arrow, which take longer than the check itself."""
    loaded = list_loaded("check", "demo")

    assert "yaml" in loaded
    assert loaded.isdisjoint({"kafka", "confluent_kafka", "pyarrow", "duckdb", "obstore"})


def test_what_a_plan_loads() -> None:
    """A plan loads no part of pyarrow that takes 50 ms and 16 MB, and no client of a bucket."""
    Path("snapshot.jsonl").write_text(ALICE)
    loaded = list_loaded("plan", "demo", "--actual", "snapshot.jsonl", *ALLOW)

    assert {"pyarrow.parquet", "duckdb"} <= loaded
    assert loaded.isdisjoint({"pyarrow.compute", "pyarrow.dataset", "pyspark", "pandas"})
    assert loaded.isdisjoint({"obstore", "boto3", "quota_ops.store.places.objects"})


def test_a_snapshot_is_filtered_by_the_types_that_it_has(tmp_path: Path) -> None:
    """A type of the file is accepted even if no broker supports it; a misspelled one is not."""
    file = tmp_path / "redpanda.jsonl"
    prefix = '{"entity": {"client-id-prefix": "app-"}, "key": "producer_byte_rate", "value": 7.0}\n'
    file.write_text(ALICE + prefix)
    found, unknown = (
        CliRunner().invoke(main, ["describe", "--actual", str(file), "--any", kind])
        for kind in ("client-id-prefix", "client-id-prefx")
    )

    assert found.output.splitlines()[1:] == [
        "client-id-prefix=app-  producer_byte_rate  7 B/s",
        f"1 quota that fits client-id-prefix=<any> on {file}",
    ]
    assert (unknown.exit_code, "Unsupported entity type client-id-prefx" in unknown.output) == (
        2,
        True,
    )


@pytest.mark.parametrize("content", [None, "", "garbage"])
def test_a_plan_that_clears_by_a_ledger_whose_end_is_not_known(
    content: str | None, store: RunStore
) -> None:
    """A power cut may remove the note: a person decides if the ledger is the last one."""
    Path("snapshot.jsonl").write_text(ALICE)
    ends = store.root / "ledger_ends" / CLUSTER_ID
    on_disk(ends).unlink() if content is None else on_disk(ends).write_text(content)

    result = run("plan")

    assert result.exit_code == 1
    assert (
        "old_ledger: user=alice producer_byte_rate would be cleared based on a ledger that may be "
        "an older copy: the run store has no record of its newest file (ledger_ends is lost or "
        "damaged)\n"
    ) in result.stdout
    assert run("plan", "--allow", "old_ledger", *ALLOW).exit_code == 0


def test_each_plan_shows_that_the_newest_file_of_the_ledger_was_changed(store: RunStore) -> None:
    """A plan that clears nothing shows it too, because the kinds of its rows may be wrong."""
    Path("snapshot.jsonl").write_text(ALICE.replace("alice", "bob"))
    end = store.root / "ledger_ends" / CLUSTER_ID
    on_disk(end).write_text(f"00000001.parquet {'0' * 64}")

    result = run("plan")

    assert result.exit_code == 1  # guard takeover
    assert (
        "\nThis run read a changed ledger, or another copy of it: its 00000001.parquet is not the "
        "file that a run wrote last. The kinds and owners of rows may be wrong.\n"
    ) in result.stdout


@pytest.mark.parametrize(
    "place",
    [
        f"ledger/{CLUSTER_ID}/00000099.parquet",
        f"ledger_ends/{CLUSTER_ID}",
        f"holds/{CLUSTER_ID}/00000001.json",
        f"approvals/{CLUSTER_ID}/DIGEST-0001.json",
        "runs/demo/RUN/run.json",
        "runs/demo/RUN/actual.parquet",
        "at_work/demo/RUN",
        "sequence/00000000.runs/00000001.json",
    ],
)
def test_a_pipe_in_the_run_store_keeps_nobody_waiting(place: str, store: RunStore) -> None:
    """A pipe never blocks: it is named, or skipped where damage is skipped."""
    Path("snapshot.jsonl").write_text(ALICE)
    planned = json.loads(run("plan", "--format", "json").stdout)
    (earlier,) = store.runs("demo")
    place = place.replace("RUN", earlier.name).replace("DIGEST", planned["plan"]["digest"])
    pipe = on_disk(store.root) / place
    pipe.unlink(missing_ok=True)
    pipe.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(pipe)

    results = [
        run("plan", *ALLOW),
        CliRunner().invoke(main, ["runs"]),
        CliRunner().invoke(main, ["show", earlier.name]),
        CliRunner().invoke(main, ["prune", "--keep", "1d", "--dry-run"]),
        CliRunner().invoke(main, ["diff", "--run", str(earlier)]),
    ]

    for result in results:
        assert result.exit_code in {0, 2}, result.output
        if result.exit_code == 2:
            assert "is a pipe or a device, not a file" in result.stderr
            assert str(pipe) in result.stderr
