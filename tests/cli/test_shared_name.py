"""Two clusters with the same folder name in one run store, and a cluster that was rebuilt."""

import json
from pathlib import Path
from typing import Any

import pytest

from quota_ops.model.errors import InvalidInput
from quota_ops.model.history.history import HISTORY, HistoryRow
from quota_ops.model.plans.policy import Policy
from quota_ops.store.history import history
from quota_ops.store.places import parquet
from quota_ops.store.places.run_store import RunStore, open_place
from quota_ops.store.run.files import ABOUT
from quota_ops.store.run.folder import RunFolder
from tests.calling import call_cli

EU, US = "MkU3OEVBNTcwNTJENDM2Qg", "b3JkZXJzLWV1LWNsdXN0ZQ"
NOTHING: dict[str, Any] = dict.fromkeys(HistoryRow._fields)


def leave_runs(path: Path, ids: list[str]) -> dict[str, str]:
    """Create runs of the clusters that set a limit of a user, in order; return their environment.

    All of them have the folder name prod.
    """
    store = RunStore(open_place(path / "store"))
    for day, cluster_id in enumerate(ids, 1):
        leave_run(store, "prod", cluster_id, day)
    return {"QUOTA_OPS_RUN_STORE": str(path / "store"), "HOME": str(path)}


def leave_run(store: RunStore, cluster: str, cluster_id: str, day: int) -> None:
    """Create a run of a day that set a limit of a user, as the newest one with a report."""
    run, at = f"run-{day}", f"2026-11-0{day}T10:00:00Z"
    folder = RunFolder.start(store.new_run(cluster, run), cluster=cluster, commit=None)
    folder.write_json(ABOUT, folder.read_json(ABOUT) | {"cluster_id": cluster_id})
    store.newest_run(cluster, cluster_id, None).replace(f"{run}\n".encode())
    end: dict[str, Any] = {"cluster": cluster, "cluster_id": cluster_id, "run": run}
    end |= {"started": at, "ended": at}
    end |= {"revision": 1, "mode": "apply", "status": "In sync", "declared": day}
    write = {"entity": f"user={cluster_id}", "key": "producer_byte_rate", "requested": 1.0}
    rows = (NOTHING | end, NOTHING | end | write | {"outcome": "accepted"})
    history.append(store, parquet.from_rows(HISTORY, [HistoryRow(**row) for row in rows]))


@pytest.mark.parametrize(
    "command",
    [
        ("show", "prod/last"),
        ("rollback", "prod/last", "--reason", "x"),
        ("history", "prod"),
        ("history", "prod", "--changes"),
        ("backtest", "prod", "--policy", "prod/cluster.yaml"),
    ],
)
def test_a_name_of_two_clusters_is_refused(command: tuple[str, ...], tmp_path: Path) -> None:
    """A command on the name of two clusters names both ids and does nothing."""
    settings = leave_runs(tmp_path, [EU, US, EU, US])
    declare(tmp_path, EU)

    ran = call_cli(command, settings, tmp_path)

    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == (
        f"prod is the name of 2 clusters in the run store {tmp_path}/store: {US}, {EU}\n"
        f"  Pass the id of one, for example {US}. To keep their runs apart, rename the folder of "
        "one in its repository, or use two run stores.\n"
    )


def test_each_of_two_clusters_is_named_by_its_id(tmp_path: Path) -> None:
    """By its id, a cluster has its own runs, last run, days and changes; `runs` shows the ids."""
    settings = leave_runs(tmp_path, [EU, US, EU, US])
    command = ("history", EU, "--since", "2026-11-01", "--format", "json")
    days = call_cli(command, settings, tmp_path)
    changes = call_cli((*command, "--changes"), settings, tmp_path)

    listed = call_cli(("runs", EU, "--format", "json"), settings, tmp_path)
    last = call_cli(("show", f"{EU}/last", "--format", "json"), settings, tmp_path)
    assert call_cli(("show", "last"), settings, tmp_path).returncode == 0  # of all clusters
    shown = call_cli(("runs", "prod"), settings, tmp_path).stdout

    assert [run["run"] for run in json.loads(listed.stdout)] == ["run-3", "run-1"]
    assert json.loads(last.stdout)["run"] == "run-3"
    assert [day["declared"] for day in json.loads(days.stdout)["days"]] == [1, 3]
    found = json.loads(changes.stdout)
    assert [(one["run"], one["entity"]) for one in found["changes"]] == [
        ("run-1", f"user={EU}"),
        ("run-3", f"user={EU}"),
    ]
    assert [shown.count(f"prod ({name})") for name in (EU, US)] == [2, 2]


@pytest.mark.parametrize("own", [EU, US])
def test_a_folder_of_git_has_its_own_last_run(own: str, tmp_path: Path) -> None:
    """A command that reads cluster.yaml takes the last run of that cluster id."""
    settings = leave_runs(tmp_path, [EU, US, EU, US])
    declare(tmp_path, own)
    hold = ("hold", "prod", "--run", "last", "--until", "1h", "--reason", "x")

    ran = call_cli((*hold, "--desired-state", str(tmp_path)), settings, tmp_path)

    last = "run-3" if own == EU else "run-4"
    assert ran.stderr.startswith(f"there is no quota of --run {last}\n")


def test_the_metrics_of_a_shared_name_have_no_counts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The name of two clusters was not compared, and the log has both ids."""
    settings = leave_runs(tmp_path, [EU, US, EU, US])

    ran = call_cli(("metrics",), settings, tmp_path)

    assert 'quota_ops_cluster_compared{cluster="prod"} 0.0' in ran.stdout
    assert caplog.messages[0].startswith("prod is the name of 2 clusters in the run store ")


def test_a_new_cluster_id_takes_over_its_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """After the first run of another id, a name is that of the new id, and the log has the old."""
    settings = leave_runs(tmp_path, [EU, EU, US])
    command = ("history", "prod", "--since", "2026-11-01", "--format", "json")
    days = call_cli(command, settings, tmp_path)
    changes = call_cli((*command, "--changes"), settings, tmp_path)
    last = call_cli(("show", "prod/last", "--format", "json"), settings, tmp_path)
    old = call_cli(("show", f"{EU}/last", "--format", "json"), settings, tmp_path)
    shown = call_cli(("runs", "prod", "--last", "1"), settings, tmp_path).stdout

    assert [day["declared"] for day in json.loads(days.stdout)["days"]] == [3]
    assert [change["run"] for change in json.loads(changes.stdout)["changes"]] == ["run-3"]
    assert [json.loads(run.stdout)["run"] for run in (last, old)] == ["run-3", "run-2"]
    assert f"prod ({US})" in shown
    words = f"prod is the cluster {US} here. For earlier runs of that name, pass {EU}."
    assert caplog.messages == [words] * 3


def test_a_cluster_of_two_names_has_one_history(tmp_path: Path) -> None:
    """By its id, a cluster has the runs of all its folder names; by a name, those of that name."""
    store = RunStore(open_place(tmp_path / "store"))
    for day, name in enumerate(["old", "new", "old", "new"], 1):
        leave_run(store, name, EU, day)
    leave_run(store, "other", US, 5)
    settings = {"QUOTA_OPS_RUN_STORE": str(tmp_path / "store"), "HOME": str(tmp_path)}
    since = ("--since", "2026-11-01", "--format", "json")

    found = {}
    for named in (EU, "old"):
        days = json.loads(call_cli(("history", named, *since), settings, tmp_path).stdout)
        changes = call_cli(("history", named, *since, "--changes"), settings, tmp_path)
        last = call_cli(("show", f"{named}/last", "--format", "json"), settings, tmp_path)
        found[named] = (
            days["cluster"],
            [day["declared"] for day in days["days"]],
            [change["run"] for change in json.loads(changes.stdout)["changes"]],
            json.loads(last.stdout)["run"],
        )

    assert found == {
        EU: ("new", [1, 2, 3, 4], ["run-1", "run-2", "run-3", "run-4"], "run-4"),
        "old": ("old", [1, 3], ["run-1", "run-3"], "run-3"),
    }


def test_a_run_is_of_one_cluster_id(tmp_path: Path) -> None:
    """Two schedulers with one store, DAG id and time do not continue each other's run."""
    store = RunStore(open_place(tmp_path / "store"))
    for cluster_id in (EU, EU):
        place = store.new_run("prod", "run")
        run = RunFolder.start(place, cluster="prod", commit=None, dag_id="reconcile_prod")
        run.leave_policy(Policy("prod", cluster_id, "prod"))

    with pytest.raises(InvalidInput) as raised:
        run.leave_policy(Policy("prod", US, "prod"))

    assert str(raised.value).startswith(
        f"run run of prod is of cluster {EU}, and cluster.yaml has {US}\n  If two clusters"
    )
    assert run.policy().cluster_id == EU


def declare(path: Path, cluster_id: str) -> None:
    """Write the cluster.yaml of a folder prod."""
    (path / "prod").mkdir()
    text = f"cluster_id: {cluster_id}\nconnection: prod\n"
    (path / "prod" / "cluster.yaml").write_text(text, "utf-8")
