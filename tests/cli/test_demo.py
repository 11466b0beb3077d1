"""The demo does what it announces, and neither it nor up and down leave anything running."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from quota_ops.lab.airflow.server import AirflowApi
from quota_ops.lab.demo.run import find_pages
from tests.docs.transcript import mask_machine, shown_output
from tests.looking import seen_in_time

QUOTA_OPS = (sys.executable, "-m", "quota_ops")
KINDS = {
    "pending": "user=alice",
    "drifted": "user=<default>",
    "takeover": "user=4711",
    "conflict": "user=bob",
    "removed": "client-id=old-etl",
    "changed since": "user=carol",
    "unmanaged": "client-id=grafana",
    "gone": "user=dave",
}
"""Each kind of difference, and the entity by which the demo shows it."""

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")


def environment(folder: Path) -> dict[str, str]:
    """Return an environment in which every default path is in the test's folder."""
    (folder / "tmp").mkdir()
    return os.environ | {
        "TMPDIR": str(folder / "tmp"),
        "XDG_STATE_HOME": str(folder / "user" / "state"),
        "XDG_CONFIG_HOME": str(folder / "user" / "config"),
        "QUOTA_OPS_RUN_STORE": str(folder / "user" / "store"),
    }


def processes(folder: Path) -> dict[int, str]:
    """Return the processes with the folder in their arguments or environment."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
            said = command + (process / "environ").read_bytes()
        except OSError:  # it is gone
            continue
        if os.fsencode(folder) in said:
            found[int(process.name)] = os.fsdecode(command)
    return found


def none_is_left(folder: Path) -> bool:
    """Whether the processes of a folder are gone within the grace period."""
    return seen_in_time(lambda: processes(folder), {}) == {}


@pytest.mark.timeout(600)
def test_the_demo_shows_what_it_tells(tmp_path: Path) -> None:
    """Every kind of difference, a run of each DAG, drift by name, and a cluster in sync."""
    ours = Path(sys.prefix, "bin")
    path = [one for one in os.get_exec_path() if not Path(one, "quota-ops").exists()]
    theirs = {
        "QUOTA_OPS_CONNECTION_DEMO": str(tmp_path / "their.properties"),
        "PATH": os.pathsep.join(path),
    }
    ended = subprocess.run(
        [*QUOTA_OPS, "demo"],
        cwd=tmp_path,
        env=environment(tmp_path) | theirs,
        capture_output=True,
        text=True,
        check=False,
    )
    said = ended.stdout
    assert (ended.returncode, ended.stderr) == (0, ""), said
    for kind, entity in KINDS.items():
        assert re.search(rf"^ +{kind}  .*  {re.escape(entity)}  ", said, re.MULTILINE), kind
    sentences = " ".join(said.split())
    assert "the reports show it. Playing the month ..." in sentences
    assert "3 guards block this plan" in sentences
    for task in ("check", "describe", "diff", "plan", "validate", "apply", "verify", "report"):
        assert re.search(rf"^ +{task} +success", said, re.MULTILINE), task
    assert re.search(r"Verified \d.* after the trigger, with a warm Spark\.", sentences)
    assert "demo matches Git; 8 changes made by this run" in sentences
    assert "1 quota on demo was changed outside Git" in sentences
    assert re.search(r"drifted +user=alice +producer_byte_rate +20 MiB/s +15 MiB/s", said)
    rates = [float(rate) for rate in re.findall(r"^ +\d+ +([\d.]+) MiB/s  █", said, re.MULTILINE)]
    assert rates[-1] < 6 < max(rates), "it sent more before its new limit"
    assert "Every step succeeded, and nothing is left running." in sentences
    assert f". {ours}/activate puts quota-ops on the PATH of this shell" in sentences

    assert processes(tmp_path) == {}
    assert list((tmp_path / "tmp").iterdir()) == []
    assert not (tmp_path / "user").exists()


@pytest.mark.matrix  # that each of its programs ends with its parent, faster tests show
def test_a_killed_demo_leaves_no_process(tmp_path: Path) -> None:
    """SIGKILL while Airflow is starting ends Kafka, Spark and Airflow too."""
    with subprocess.Popen(
        [*QUOTA_OPS, "demo"], env=environment(tmp_path), stdout=subprocess.PIPE, text=True
    ) as demo:
        assert demo.stdout
        assert any("Apache Kafka" in line for line in demo.stdout)
        programs = " ".join(processes(tmp_path).values())
        assert "kafka.Kafka" in programs
        assert "lab/airflow/parts.py" in programs
        assert "SparkConnectServer" in programs
        demo.kill()
    assert none_is_left(tmp_path)


def test_the_pages_of_a_kept_demo_are_listed(tmp_path: Path) -> None:
    """Each report page in the run store of the demo is found."""
    page = tmp_path / "store" / "runs" / "demo" / "run" / "report.html"
    page.parent.mkdir(parents=True)
    page.touch()
    assert find_pages(tmp_path) == [page]


def test_a_folder_to_keep_is_a_new_one(tmp_path: Path) -> None:
    """Existing files in the folder are left alone and named."""
    (tmp_path / "mine.txt").touch()
    ended = subprocess.run(
        [*QUOTA_OPS, "demo", "--keep", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert ended.stderr == f"{tmp_path} is not empty\n  Pass a new folder to --keep.\n"
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Return an environment in which nothing is up, before and after."""
    environ = environment(tmp_path)
    yield environ
    quota_ops("down", tmp_path, environ)
    quota_ops("sandbox stop", tmp_path, environ)


def quota_ops(command: str, folder: Path, environ: dict[str, str]) -> str:
    """Return the output of a command that succeeds."""
    words = [*QUOTA_OPS, *command.split()]
    ended = subprocess.run(
        words, cwd=folder, env=environ, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.matrix
def test_up_and_down(tmp_path: Path, home: dict[str, str]) -> None:
    """Up shows address and login; again, that it runs; down ends even the rest after a crash.

    It leaves a sandbox alone that somebody else started, and says so.
    """
    said = quota_ops("up", tmp_path, home)
    login = re.search(r"http://127\.0\.0\.1:(\d+)\n +login +(\S+) / (\S+)\n", said)
    assert login
    api = AirflowApi(int(login[1]), login[2], login[3])
    api.wait_for_dag("reconcile_demo")
    api.wait_for_dag("drift")
    assert mask_machine(said) == shown_output("how-to/airflow.md", "quota-ops up")
    again = quota_ops("up", tmp_path, home)
    assert again == said.replace("started", "running already", 1)

    quota_ops("sandbox stop", tmp_path, home)
    bootstrap = re.search(
        r"bootstrap +(\S+)", quota_ops("sandbox start --auth scram", tmp_path, home)
    )
    assert bootstrap
    beside = quota_ops("up", tmp_path, home).splitlines()
    assert beside[0] == (
        "running already; `quota-ops down` stops Spark and Airflow; the sandbox ran before"
    )
    assert f"  Kafka       {bootstrap[1]}, connection demo" in beside

    state = tmp_path / "user" / "state" / "quota-ops" / "airflow" / "server.json"
    os.kill(json.loads(state.read_text())["pid"], signal.SIGKILL)
    runs_on = "The sandbox runs on: `up` did not start it. To stop it: quota-ops sandbox stop\n"
    assert quota_ops("down", tmp_path, home) == f"stopped\n{runs_on}"
    assert quota_ops("down", tmp_path, home) == f"nothing was running\n{runs_on}"
    assert quota_ops("sandbox stop", tmp_path, home) == "stopped\n"
    assert none_is_left(tmp_path)
    assert quota_ops("down", tmp_path, home) == "nothing was running\n"
