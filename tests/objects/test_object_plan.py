"""Commands without a cluster whose run store is in a bucket."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from quota_ops.cli import main
from quota_ops.store.run_folder import PLAN, RunFolder
from quota_ops.store.run_store import ENVIRONMENT, find_run_store
from tests.docs.markdown import ROOT, Page
from tests.docs.shell import without_moment
from tests.objects.server import S3Server

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
SNAPSHOT = '{"entity": {"user": "alice"}, "key": "producer_byte_rate", "value": 1024.0}\n'
HOLD = ("--names", "user=bob", "--until", "1h", "--reason", "INC-31", "--by", "anna")


def test_the_page_names_a_store(s3: S3Server, login: Callable[[str], None], tmp_path: Path) -> None:
    """The commands of the page about buckets work with its variables set."""
    login("writer")
    page = Page(ROOT / "docs" / "how-to" / "run-store.md")
    (script,) = [one.text for one in page.blocks() if "QUOTA_OPS_RUN_STORE=s3://" in one.text]
    named = set(re.findall(r"`(AWS_\w+)(?:=true)?`", page.text))
    environment = {"HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    given = {name: value for name, value in s3.environment().items() if name in named}

    ran = subprocess.run(
        ["/bin/bash", "-euc", script],
        env=environment | given,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    (shown,) = [one.text for one in page.blocks() if one.text.startswith("s3://runs/quota-ops ")]
    assert (ran.returncode, ran.stderr) == (0, "")
    assert without_moment(ran.stdout) == without_moment(shown)
    assert list(tmp_path.iterdir()) == []


def test_a_plan_lives_in_a_bucket(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plan, hold, runs, show and prune work as with a folder, and leave no file on this machine."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(ENVIRONMENT, address)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "desired_state" / "demo"
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(f"cluster_id: {CLUSTER_ID}\nconnection: nowhere\n")
    (folder / "team.yaml").write_text(
        "owner: team\nquotas:\n  - {user: bob, limits: {producer_byte_rate: 10 MiB}}\n"
    )
    (tmp_path / "actual.jsonl").write_text(SNAPSHOT)
    store = find_run_store(address)

    def run(*arguments: str) -> str:
        ended = CliRunner().invoke(main, arguments)
        assert (ended.exit_code, ended.exception) == (0, None), ended.output
        return ended.stdout

    first = run("plan", "demo", "--actual", "actual.jsonl")
    run("hold", "demo", *HOLD)
    second = run("plan", "demo", "--actual", "actual.jsonl")

    runs = sorted(store.runs("demo"), key=lambda one: RunFolder(one).about()["sequence"])
    assert [f"run: {one}" in shown for one, shown in zip(runs, (first, second), strict=True)] == [
        True,
        True,
    ]
    assert "user=bob is held until" in second
    assert all(one.name in run("runs") for one in runs)
    assert "user=bob" in run("show", "last")
    assert RunFolder(runs[0]).read_json(PLAN)["desired"] == 1
    assert run("prune", "--keep", "1d").startswith(f"Nothing to remove from {address}")
    assert {one.name for one in tmp_path.iterdir()} <= {
        "desired_state",
        "actual.jsonl",
        "cache",
        "home",
    }
