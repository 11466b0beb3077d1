"""A history of which a part cannot be read, on the command line, without a broker."""

import json
import os
import re
from pathlib import Path
from typing import Any

from quota_ops.model.history.history import HISTORY, HistoryRow
from quota_ops.store.history import history
from quota_ops.store.places import parquet
from quota_ops.store.places.run_store import RunStore, open_place
from tests.calling import call_cli

CLUSTER = "cluster_id: MkU3OEVBNTcwNTJENDM2Qg\nconnection: demo\n"
NOTHING: dict[str, Any] = dict.fromkeys(HistoryRow._fields)


def test_what_is_not_counted_is_named_and_ends_with_2(tmp_path: Path) -> None:
    """The rest is shown; a damaged file, a link, a pipe and a linked day are not opened."""
    store = RunStore(open_place(tmp_path / "store"))
    for day in (1, 2):
        at = f"2026-11-0{day}T10:00:00Z"
        run = {"cluster": "demo", "run": at, "started": at, "ended": at, "revision": 1}
        look = {"mode": "look", "status": "In sync", "declared": 3, "in_sync": 3}
        history.append(store, parquet.from_rows(HISTORY, [HistoryRow(**NOTHING | run | look)]))
    first, second = (tmp_path / "store" / "history" / f"date=2026-11-0{day}" for day in (1, 2))
    damaged = next(first.iterdir())
    damaged.write_bytes(b"half")
    (second / "demo@linked@1.parquet").symlink_to(damaged)
    os.mkfifo(second / "demo@pipe@1.parquet")
    (second.parent / "date=2026-11-03").symlink_to(first)
    (tmp_path / "cluster.yaml").write_text(CLUSTER, "utf-8")
    settings = {"QUOTA_OPS_RUN_STORE": str(tmp_path / "store"), "HOME": str(tmp_path)}

    asked = ("history", "demo", "--since", "2026-11-01")
    shown = call_cli(asked, settings, tmp_path)
    policy = ("--policy", "cluster.yaml", "--format", "json")
    tried = call_cli(("backtest", *asked[1:], *policy), settings, tmp_path)
    rows = call_cli(("backtest", *asked[1:], *policy[:3], "csv"), settings, tmp_path)

    assert (shown.returncode, "3 of 3" in shown.stdout) == (2, True)
    *named, remedy = shown.stderr.splitlines()
    assert sorted(re.split(" is | cannot ", line)[0] for line in named) == [
        f"not counted: {damaged}",
        f"not counted: {second}/demo@linked@1.parquet",
        f"not counted: {second}/demo@pipe@1.parquet",
        f"not counted: {second.parent}/date=2026-11-03",
    ]
    assert remedy.startswith(
        "  The result may lack something. Where no command is shown, read a file of"
    )
    assert (tried.returncode, tried.stderr) == (2, "")
    assert (rows.returncode, sorted(rows.stderr)) == (2, sorted(shown.stderr))
    assert len(json.loads(tried.stdout)["not_counted"]) == len(named)


def test_changes_are_in_the_order_of_the_store(tmp_path: Path) -> None:
    """A run whose clock was ahead is before the next run; one that waited is after a later one."""
    store = RunStore(open_place(tmp_path / "store"))
    store.newest_run("demo", "MkU3OEVBNTcwNTJENDM2Qg", None).replace(b"\n")
    for sequence, began, ended in (
        (1, "09:00", "09:01"),
        (2, "13:00", "13:01"),  # its clock is three hours ahead
        (3, "10:01", "10:02"),
        (4, "10:05", "11:30"),  # it waits for its approval
        (5, "10:10", "10:11"),
    ):
        at = {"started": f"2026-11-01T{began}:00Z", "ended": f"2026-11-01T{ended}:00Z"}
        run = {"cluster": "demo", "run": f"run-{sequence}", "sequence": sequence, "revision": 1}
        end = NOTHING | run | at | {"mode": "apply", "status": "In sync"}
        write = {"entity": "user=a", "key": "producer_byte_rate", "outcome": "accepted"}
        history.append(
            store, parquet.from_rows(HISTORY, [HistoryRow(**end), HistoryRow(**end | write)])
        )
    settings = {"QUOTA_OPS_RUN_STORE": str(tmp_path / "store"), "HOME": str(tmp_path)}
    command = ("history", "demo", "--changes", "--since", "2026-11-01", "--format", "json")

    ran = call_cli(command, settings, tmp_path)

    found = [change["run"] for change in json.loads(ran.stdout)["changes"]]
    assert found == ["run-1", "run-2", "run-3", "run-5", "run-4"]
