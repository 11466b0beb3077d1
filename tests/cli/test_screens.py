"""The command line as a process: exit codes, output in a pipe and on a terminal, interruptions."""

import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quota_ops.lab.kafka.broker import RunningBroker
from tests.lab import Lab, open_lab
from tests.places import on_disk
from tests.preloaded import preloaded
from tests.signals import signals_taken
from tests.writing import State

KEY = "producer_byte_rate"
STATE: State = {"user=alice": {KEY: 10.0}, "user=bob": {KEY: 10.0}}
SMALL = [{"finding": "QO107", "reason": "small numbers are easy to read"}]
ESCAPE = "\x1b"


@pytest.fixture(name="lab")
def _lab(broker: RunningBroker, tmp_path: Path) -> Iterator[Lab]:
    with open_lab(broker, tmp_path) as lab:
        lab.desire(STATE, silence=SMALL)
        yield lab


def said(lab: Lab, *arguments: str, exit_code: int = 0) -> str:
    """Return standard output of a command without warnings."""
    ended = lab.call(*arguments)
    assert (ended.returncode, ended.stderr) == (exit_code, "")
    assert ESCAPE not in ended.stdout
    return ended.stdout


def masked(text: str, lab: Lab) -> str:
    """Return a text without digests, durations, and the run's name."""
    text = text.replace(str(lab.root), "ROOT")
    text = re.sub(r"\b[0-9a-f]{64}\b", "DIGEST", text)
    text = re.sub(r"\b[0-9a-f]{8}\b", "DIGEST8", text)
    text = re.sub(r"\d+ ms|\d+\.\d s\b", "TIME", text)
    return re.sub(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ-[0-9a-f]{4}", "RUN", text)


def test_a_story(lab: Lab) -> None:
    """plan, reconcile exactly that plan, verify, plan again: the screens and exit codes in turn."""
    planned = said(lab, "plan", "demo", "--commit", "c0ffee")
    assert masked(planned, lab) == (
        f"demo ({lab.cluster.cluster_id}) at c0ffee (as given, not compared)      "
        "plan DIGEST8      2 to change of 2, 0 in sync, 0 unmanaged\n"
        "\n"
        "  kind     entity      key                 current  desired  change  source\n"
        "  pending  user=alice  producer_byte_rate  none     10 B/s   new     team.yaml:4\n"
        "  pending  user=bob    producer_byte_rate  none     10 B/s   new     team.yaml:7\n"
        "\n"
        "The broker accepts both changes (validate-only, 1 request, TIME).\n"
        "No ledger of this cluster yet: nothing is cleared until a run has been verified.\n"
        "run: ROOT/store/runs/demo/RUN\n"
        "next: quota-ops reconcile --run ROOT/store/runs/demo/RUN --approve DIGEST\n"
    )
    said(lab, "plan", "demo", "--detailed-exitcode", exit_code=4)
    following = planned.rstrip().rpartition("next: quota-ops ")[2].split(" ")
    reconciled = said(lab, *following)
    assert masked(reconciled, lab).endswith(
        "applied: 2 accepted\n"
        "broker 1 agrees\n"
        "applied 2 keys on 2 entities in TIME; 1 of 1 broker agrees; "
        "report: ROOT/store/runs/demo/RUN/report.html\n"
    )
    assert said(lab, "verify", "demo") == (
        "broker 1 agrees\n2 of 2 quotas verified on every broker: stored and in force.\n"
    )
    said(lab, "plan", "demo", "--detailed-exitcode")
    assert lab.stored() == lab.known() == STATE


def test_a_guard_refuses(lab: Lab) -> None:
    """The screen names the guard and its override; the code is 1; nothing is written."""
    lab.desire({"user=<default>": {KEY: 10.0}}, silence=SMALL)

    shown = said(lab, "reconcile", "demo", exit_code=1)

    assert masked(shown, lab).endswith(
        "default_touched: user=<default> producer_byte_rate would change; a default applies to "
        "many clients\n"
        "1 guard blocks this plan. Override it with --allow default_touched --reason TEXT "
        "(in Airflow or CI, approve the plan).\n"
        "no changes written in TIME; report: ROOT/store/runs/demo/RUN/report.html\n"
        "next: quota-ops reconcile --run ROOT/store/runs/demo/RUN --approve DIGEST --reason TEXT\n"
    )
    assert lab.stored() == {}
    both = ("--allow", "default_touched", "--allow", "removals", "--reason", "agreed")
    ended = lab.call("reconcile", "demo", *both)
    assert (ended.returncode, ended.stderr) == (
        0,
        "--allow removals: that guard did not block anything, so no override is recorded\n",
    )
    assert lab.stored() == {"user=<default>": {KEY: 10.0}}
    named = said(lab, "describe", "demo", "--names", "user=<default>", "--format", "json")
    assert [row["value"] for row in json.loads(named)] == [10.0], "as the plan shows it"
    (decision,) = lab.runs[-1].decisions()
    assert decision.guards == ("default_touched",)
    as_json = lab.call(
        "plan", "demo", "--allow", "removals", "--reason", "a test", "--format", "json"
    )
    assert (as_json.returncode, as_json.stderr) == (0, "")


def test_json(lab: Lab) -> None:
    """With --format json standard output is one JSON value, for every command that has it."""
    run = str(on_disk(lab.run("plan")))
    read: dict[str, Any] = {}
    for command in (
        ("check",),
        ("describe", "demo"),
        ("diff", "demo"),
        ("plan", "demo"),
        ("validate", "demo"),
        ("apply", "demo"),
        ("verify", "demo"),
        ("report", "--run", run),
        ("reconcile", "demo"),
    ):
        read[command[0]] = json.loads(said(lab, *command, "--format", "json"))
    (checked,) = read["check"]["clusters"]
    assert [one["code"] for one in checked.pop("findings")] == ["QO107"] * 2
    assert checked == {"cluster": "demo", "quotas": 2, "problems": [], "unlisted_problems": 0}
    assert read["describe"] == []
    assert [row["status"] for row in read["plan"]["rows"]] == ["pending"] * 2
    assert [row["applied"]["status"] for row in read["apply"]["rows"]] == ["accepted"] * 2
    assert read["verify"]["verified"] == 2
    assert read["reconcile"]["answer"]["status"] == "In sync"

    failed = lab.call("plan", "nowhere", "--format", "json")
    assert failed.stdout == ""
    assert json.loads(failed.stderr) == {
        "error": f"there is no cluster 'nowhere' in {lab.folder.parent}",
        "remedy": "Clusters in this folder: demo.",
        "exit_code": 2,
    }


def on_a_terminal(
    lab: Lab, *arguments: str, typed: str = "", **environment: str
) -> tuple[int, str]:
    """Return the exit code of a command on a terminal, and what the terminal shows."""
    ours, its = pty.openpty()
    process = subprocess.Popen(
        [preloaded(), *arguments],
        stdin=its,
        stdout=its,
        stderr=its,
        cwd=lab.root,
        env=lab.environment | {"TERM": "xterm-256color", "COLUMNS": "200"} | environment,
    )
    os.close(its)
    os.write(ours, typed.encode())
    shown = b""
    try:
        while data := os.read(ours, 65_536):
            shown += data
    except OSError:  # Linux says so when the last process has closed it
        pass
    os.close(ours)
    return process.wait(), shown.decode()


def test_on_a_terminal(lab: Lab) -> None:
    """Colours and progress are shown on a terminal; NO_COLOR is respected."""
    code, shown = on_a_terminal(lab, "reconcile", "demo")
    assert code == 0
    assert f"{ESCAPE}[" in shown
    assert "apply" in shown
    assert lab.stored() == STATE

    code, shown = on_a_terminal(lab, "plan", "nowhere")
    assert code == 2
    assert f"{ESCAPE}[1;31mthere is no cluster 'nowhere'" in shown

    code, shown = on_a_terminal(lab, "plan", "demo", NO_COLOR="1")
    assert code == 0
    assert not re.search(rf"{ESCAPE}\[[0-9;]*3[0-9]m", shown)


def test_interrupted(lab: Lab) -> None:
    """Ctrl-C ends a command at once and quietly, with 130, and shows the place of its run."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        lab.connection_file.write_text(f"bootstrap.servers=127.0.0.1:{silent.getsockname()[1]}\n")
        with signals_taken():
            process = subprocess.Popen(
                [sys.executable, "-m", "quota_ops", "plan", "demo"],
                cwd=lab.root,
                env=lab.environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        assert select.select([silent], [], [], 60)[0]
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    [run] = on_disk(lab.store.root / "runs" / "demo").iterdir()
    assert (process.returncode, out, err) == (130, "", f"interrupted; the run is in {run}\n")


def test_a_closed_pipe(lab: Lab) -> None:
    """A reader that stops early, as `head` does, causes no traceback; the command finishes."""
    ours, its = os.pipe()
    os.close(ours)
    ended = subprocess.run(
        [preloaded(), "reconcile", "demo"],
        cwd=lab.root,
        env=lab.environment,
        stdout=its,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(its)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert lab.stored() == STATE
