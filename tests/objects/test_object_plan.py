"""Commands without a cluster whose run store is in a bucket."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from quota_ops.cli import main
from quota_ops.store.places.run_store import ENVIRONMENT, RunStore, find_run_store, open_place
from quota_ops.store.run.files import PLAN
from quota_ops.store.run.folder import RunFolder
from tests.docs.markdown import ROOT, Page
from tests.docs.shell import without_moment
from tests.objects.server import S3Server
from tests.preloaded import preloaded

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
SNAPSHOT = '{"entity": {"user": "alice"}, "key": "producer_byte_rate", "value": 1024.0}\n'
HOLD = ("--names", "user=bob", "--until", "1h", "--reason", "INC-31", "--by", "anna")


def test_the_page_names_a_store(s3: S3Server, login: Callable[[str], None], tmp_path: Path) -> None:
    """The commands of the page about buckets work with its variables set, copies too."""
    login("writer")
    page = Page(ROOT / "docs" / "reference" / "run-store.md")
    blocks = [block for block in page.blocks() if "s3://runs/" in block.text]
    scripts = [block.text for block in blocks if block.language == "sh"]
    (shown,) = [block.text for block in blocks if block.language == "text"]
    named = set(re.findall(r"`(AWS_\w+)(?:=true)?`", page.text))
    given = {name: value for name, value in s3.environment().items() if name in named}
    aws = tmp_path / "aws"
    aws.write_text(
        f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m tests.objects.aws "$@"\n'
    )
    aws.chmod(0o700)
    old = RunFolder.start(
        RunStore(open_place(tmp_path / "old")).new_run("demo"), cluster="demo", commit=None
    )
    path = f"{tmp_path}:{preloaded().parent}:/usr/bin:/bin"

    ran = subprocess.run(
        ["/bin/bash", "-euc", "\n".join(scripts)],
        env={"HOME": str(tmp_path), "PATH": path} | given,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ran.returncode, ran.stderr) == (0, "")
    assert without_moment(ran.stdout).startswith(without_moment(shown))
    assert ran.stdout.count(old.place.name) == 2
    copies = [one for one in (tmp_path / "back").rglob("*") if one.is_file()]
    assert sorted(copy.relative_to(tmp_path / "back").as_posix() for copy in copies) == [
        leaf.path for leaf in open_place(tmp_path / "old").walk()
    ]
    assert {copy.stat().st_mode & 0o077 for copy in copies} == {0}


@pytest.mark.each_bucket
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

    runs = sorted(store.runs("demo"), key=lambda place: RunFolder(place).about().sequence or 0)
    assert [
        f"run: {place}" in shown for place, shown in zip(runs, (first, second), strict=True)
    ] == [True, True]
    assert "user=bob is held until" in second
    assert all(one.name in run("runs") for one in runs)
    assert "user=bob" in run("show", "last")
    assert RunFolder(runs[0]).read_json(PLAN)["desired"] == 1
    assert run("prune", "--keep", "1d").startswith(f"Nothing to remove from {address}")
    assert {path.name for path in tmp_path.iterdir()} <= {
        "desired_state",
        "actual.jsonl",
        "cache",
        "home",
    }
