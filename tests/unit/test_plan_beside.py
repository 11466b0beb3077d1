"""plan.json is written in a fork while brokers validate: it is there in time, or plan has failed.

Each promise is a process of its own, because the suite's has threads.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CLUSTER = "cluster_id: MkU3OEVBNTcwNTJENDM2Qg\nconnection: demo\n"
QUOTAS = "owner: a\nquotas: [{user: alice, limits: {producer_byte_rate: 2}}]\n"
TAKEN = {"entity": {"user": "alice"}, "key": "producer_byte_rate", "value": 1.0}
"""What the guard takeover asks about."""

_SCRIPT = """
import os, time
from pathlib import Path
from quota_ops.model.errors import InvalidInput, QuotaOpsError
from quota_ops.store import local
from quota_ops.store.run_folder import PLAN, RunFolder
from quota_ops.store.run_store import RunStore
from quota_ops.runs import chain
from quota_ops.runs.run import Run

HERE, write = os.getpid(), local.write

def trouble(place, content):
    if place.name == PLAN:
        Path("wrote").open("a").write("here " if os.getpid() == HERE else "fork ")
        TROUBLE
    write(place, content)

local.write = trouble
store = RunStore(Path("store"))
folder = RunFolder.start(store.new_run("demo"), cluster="demo", commit=None).keeping()
run = Run(folder, Path("demo"), store, None, actual=Path("snapshot.jsonl"), allow=ALLOW)
try:
    chain.run_stages(run, STAGES)
except QuotaOpsError as error:
    print(type(error).__name__, error.message)
on_disk = RunFolder(folder.path)
print(folder.has(PLAN) and on_disk.plan()[0] == folder.plan()[0])
print(on_disk.stage_result("plan").status, folder.has("report.json"))
print(Path("wrote").read_text().strip())
"""
OFFLINE = ("check", "describe", "diff", "plan")
SLOW, FAILS = "time.sleep(0.3)", 'raise InvalidInput("the disk is full")'
SAID = "user=alice producer_byte_rate has an unmanaged value"
ALLOWED: dict[str, str] = {"takeover": "a test"}


@pytest.mark.parametrize(
    ("trouble", "allow", "stages", "told"),
    [
        pytest.param(SLOW, ALLOWED, OFFLINE, ["True", "done False", "fork"], id="slow"),
        pytest.param(
            SLOW,
            {},
            OFFLINE,
            [
                f"GuardsRefused guards need a person's approval: takeover: {SAID}",
                "True",
                "refused False",
                "here",
            ],
            id="refused",
        ),
        pytest.param(
            FAILS,
            ALLOWED,
            OFFLINE,
            ["InvalidInput the disk is full", "False", "failed False", "fork here"],
            id="fails",
        ),
        pytest.param(
            FAILS,
            ALLOWED,
            (*OFFLINE, "report"),
            ["InvalidInput the disk is full", "False", "failed True", "fork here"],
            id="fails-and-is-reported",
        ),
    ],
)
def test_plan_json_is_there_in_time_or_plan_has_failed(
    tmp_path: Path, trouble: str, allow: dict[str, str], stages: tuple[str, ...], told: list[str]
) -> None:
    """A plan that goes on is whole before the next stage, one that is refused before a person."""
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "demo" / "a.yaml").write_text(QUOTAS)
    (tmp_path / "snapshot.jsonl").write_text(json.dumps(TAKEN))
    script = _SCRIPT.replace("TROUBLE", trouble).replace("STAGES", repr(stages))
    ended = subprocess.run(
        [sys.executable, "-c", script.replace("ALLOW", repr(allow))],
        env=os.environ
        | {
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "JE_ARROW_MALLOC_CONF": "background_thread:false",
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (ended.stdout.splitlines(), ended.stderr) == (told, "")
