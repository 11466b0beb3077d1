"""spark-submit as users run it, and a standalone Spark cluster on this machine to submit to."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from quota_ops.lab.process import OwnProcess, launch
from quota_ops.sql.spark_archive import SMALL_JVM, driver_options, find_spark

ROOT = Path(__file__).parents[2]
JOB = ROOT / "spark_jobs" / "diff_quotas.py"
PATIENCE = 60.0
_DEPLOY = "org.apache.spark.deploy"


def environment() -> dict[str, str]:
    """Return the environment for Spark's scripts: this Python, loopback, small daemons."""
    return {name: value for name, value in os.environ.items() if "SPARK" not in name} | {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": SMALL_JVM,
    }


def submit(
    master: str, *arguments: Path | str, job: Path = JOB, settings: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """Submit a job to a master, with more settings; its output is in pipes."""
    all_settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": SMALL_JVM,
        "spark.sql.shuffle.partitions": "2",
    } | dict(settings or {})
    options = [f"--conf={name}={value}" for name, value in all_settings.items()]
    return subprocess.Popen(
        [
            find_spark() / "bin" / "spark-submit",
            f"--master={master}",
            f"--driver-java-options={SMALL_JVM} {driver_options()}",
            *options,
            job,
            *arguments,
        ],
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def standalone_cluster(folder: Path, workers: int) -> Iterator[str]:
    """Start a master with so many workers of one core each; yield its address, and stop them.

    The workers have no Python, and share neither a home nor a folder for temporary files.
    """
    with ExitStack() as daemons:
        master = _start(daemons, folder / "master", "master.Master")
        address = _said(master, r"Starting Spark master at (spark://\S+)")
        logs = [
            _start(
                daemons,
                folder / f"worker-{number}",
                "worker.Worker",
                *("--cores", "1", "--memory", "1g", "--work-dir", "work", address),
            )
            for number in range(workers)
        ]
        for log in logs:
            _said(log, "(Successfully registered with master)")
        yield address


def workers_used(folder: Path) -> set[str]:
    """Return the workers on which the master of `standalone_cluster(folder)` started executors."""
    said = (folder / "master" / "daemon.log").read_text()
    return set(re.findall(r"Launching executor \S+ on worker (worker-\S+)", said))


def _start(daemons: ExitStack, folder: Path, program: str, *arguments: str) -> Path:
    folder.mkdir()
    mark = folder / "empty.conf"
    mark.touch()
    log = folder / "daemon.log"
    ports = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    process: OwnProcess = launch(
        [
            str(find_spark() / "bin" / "spark-class"),
            f"{_DEPLOY}.{program}",
            *("--properties-file", str(mark)),
            *ports,
            *arguments,
        ],
        mark=str(mark),
        log=log,
        environment=environment()
        | {
            "HOME": str(folder),
            "PYSPARK_PYTHON": "/no/python",
            "PYTHONPATH": "",
            "SPARK_LOCAL_DIRS": str(folder / "local"),
            "TMPDIR": str(folder),
        },
        detached=False,
    )
    daemons.callback(process.stop)
    return log


def _said(log: Path, pattern: str) -> str:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if found := re.search(pattern, log.read_text() if log.exists() else ""):
            return found[1]
        time.sleep(0.1)
    raise AssertionError(f"{log} never said {pattern}:\n{log.read_text()}")
