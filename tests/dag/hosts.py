"""An executor whose tasks share nothing but the run store, as if each had a machine of its own."""

import ctypes
import os
import shutil
import signal
import struct
import sys
import traceback
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from airflow.configuration import conf
from airflow.executors.base_executor import BaseExecutor, get_execution_api_server_url
from airflow.utils.state import TaskInstanceState

from tests.dag.host_folders import HOSTS, INSTALLED, KILLED

_PASSED_ON = ("AIRFLOW__", "AIRFLOW_CONN_", "AWS_", "GIT_CONFIG_", "LANG", "PATH", "QUOTA_OPS_")
_FIRST_USER = 20_000
_USER_OF_SPARK = 65_534
"""The user nobody, who has a name: Spark does not start without one."""
_PR_SET_KEEPCAPS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE = 8, 47, 2
_CAPABILITY_VERSION_3, _CAP_DAC_READ_SEARCH = 0x20080522, 2


class HostExecutor(BaseExecutor):
    """Run each task as another user, with its own home, AIRFLOW_HOME, installation and checkout.

    The users have no names, except where Spark needs one. Only root on Linux can change the user:
    otherwise all tasks have the same.
    """

    is_local = True

    def start(self) -> None:
        """Number the hosts."""
        self._numbers = count(1)
        self._tasks: dict[int, tuple[Any, Path]] = {}

    def _process_workloads(self, workloads: Sequence[Any]) -> None:
        for workload in workloads:
            del self.queued_tasks[workload.key]
            self.running.add(workload.key)
            number = next(self._numbers)
            host = Path(os.environ[HOSTS], f"host-{number}")
            is_spark = (workload.ti.dag_id, workload.ti.task_id) == ("drift", "diff")
            if (pid := os.fork()) == 0:
                _run_on_host(workload, host, _USER_OF_SPARK if is_spark else _FIRST_USER + number)
            self._tasks[pid] = workload.key, host

    def sync(self) -> None:
        """Report which tasks have ended."""
        for pid in list(self._tasks):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                key, host = self._tasks.pop(pid)
                _collect_logs(host)
                state = TaskInstanceState.FAILED if status else TaskInstanceState.SUCCESS
                self.change_state(key, state)

    def end(self) -> None:
        """Leave the tasks alone: their Airflow ends them."""

    terminate = end


def _collect_logs(host: Path) -> None:
    """Copy the logs of a host to Airflow's, as remote logging does."""
    if (host / "logs").exists():
        shutil.copytree(host / "logs", conf.get("logging", "base_log_folder"), dirs_exist_ok=True)


def _run_on_host(workload: Any, host: Path, user: int) -> None:
    """Become a process of another host, run a task and exit."""
    status = 1
    try:
        host.mkdir()
        for variable in [*_variables_of_others()]:
            del os.environ[variable]
        installed = host / "site-packages"
        installed.symlink_to(os.environ.pop(INSTALLED))
        os.environ |= {
            "HOME": str(host),
            "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(host / "logs"),
            "AIRFLOW_HOME": str(host / "airflow"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(host / "dags"),
            "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH": str(host / "bundles"),
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": "sqlite:////nowhere/airflow.db",
            "LOGNAME": f"worker-{user}",  # Airflow needs one, also for a user without a name
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": str(installed),
            "TMPDIR": str(host),
        }
        sys.path.insert(0, str(installed))
        os.chdir(host)
        if workload.ti.task_id == "apply" and (host.parent / KILLED).exists():
            (host.parent / KILLED).unlink()
            _die_during_write()
        if os.getuid() == 0 and sys.platform == "linux":
            os.chown(host, user, user)
            _change_user(user)
        status = BaseExecutor.run_workload(workload, server=get_execution_api_server_url())
    except BaseException:  # noqa: BLE001 - the process ends here
        traceback.print_exc()
    finally:
        os._exit(status)


def _variables_of_others() -> Iterator[str]:
    """Yield the variables of the scheduler that another host does not have."""
    for name in os.environ:
        if not name.startswith(_PASSED_ON) and name != INSTALLED:
            yield name


def _change_user(user: int) -> None:
    """Become another user, who can read everything: Python may be in a home of root."""
    libc = ctypes.CDLL(None, use_errno=True)
    read = 1 << _CAP_DAC_READ_SEARCH
    libc.prctl(_PR_SET_KEEPCAPS, 1, 0, 0, 0)
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
    capabilities = struct.pack("6I", read, read, read, 0, 0, 0)
    results = (
        libc.capset(struct.pack("Ii", _CAPABILITY_VERSION_3, 0), capabilities),
        libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, _CAP_DAC_READ_SEARCH, 0, 0),
    )
    if any(results):
        raise OSError(ctypes.get_errno(), "the capability to read was not kept")


def _die_during_write() -> None:
    """Kill the task and its supervisor when the broker has applied the first batch."""
    from quota_ops.kafka.cluster import Cluster

    apply = Cluster.apply

    def die(cluster: Cluster, alterations: Any) -> Any:
        apply(cluster, alterations)
        for pid in (os.getppid(), os.getpid()):
            os.kill(pid, signal.SIGKILL)

    setattr(Cluster, "apply", die)  # noqa: B010 - a method of a class
