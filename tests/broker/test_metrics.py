"""The metrics of clusters, from real runs and the run store alone."""

from datetime import datetime

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from quota_ops.model.quotas.rows import DesiredRow
from quota_ops.model.quotas.tables import DESIRED
from quota_ops.model.runs.stages import STAGES
from quota_ops.report.records.metrics import format_metrics, read_state
from quota_ops.runs.chain import run_stages
from quota_ops.store.run.files import REPORT
from tests.lab import Lab, error_of

KEY = "producer_byte_rate"
Labels = tuple[str, ...]


def read(text: str) -> dict[Labels, float]:
    """Return the values by metric and labels, without the names that all have."""
    return {
        (sample.name.removeprefix("quota_ops_"), *sample.labels.values()): sample.value
        for family in parse(text)
        for sample in family.samples
    }


def read_metrics(lab: Lab, *clusters: str) -> dict[Labels, float]:
    """Return what the command prints."""
    result = lab.call("metrics", *clusters)
    assert (result.returncode, result.stderr) == (0, "")
    return read(result.stdout)


def seconds(at: str) -> float:
    """Return an ISO 8601 time in seconds since 1970."""
    return datetime.fromisoformat(at).timestamp()


def test_metrics_follow_the_newest_run(lab: Lab) -> None:
    """Counts are those of the newest run; after a run that fails there are none."""
    lab.desire({f"user={name}": {KEY: 10.0} for name in ("alice", "bob", "carol")})
    empty = lab.call("metrics", "--out", str(lab.root / "quota_ops.prom"))
    assert (empty.returncode, "has no runs" in empty.stderr) == (2, True)
    assert not (lab.root / "quota_ops.prom").exists()
    lab.run("reconcile")
    found = read_metrics(lab)
    assert found[("quotas_stored", "demo")] == found[("quotas_in_sync", "demo")] == 3
    applied = seconds(lab.runs[-1].read_json(REPORT)["finished"])
    assert found[("last_apply_timestamp_seconds", "demo")] == applied
    other = {"prometheus": "branch", "match": {"cluster": "other"}}
    lab.desire({f"user={name}": {KEY: 10.0} for name in ("alice", "bob", "carol")}, usage=other)
    lab.call("plan", "demo")
    limits = {
        (
            sample.labels["cluster"],
            sample.labels["user"],
            sample.labels["owner"],
            sample.labels["level"],
        ): sample.value
        for family in parse(lab.call("metrics", "demo", "--limits").stdout)
        for sample in family.samples
        if sample.name == "quota_ops_limit"
    }
    assert limits == {("demo", name, "team", "user"): 10.0 for name in ("alice", "bob", "carol")}
    lab.put({"user=alice": {KEY: 20.0}, "user=dora": {KEY: 1.0}})
    lab.desire({f"user={name}": {KEY: 10.0} for name in ("alice", "bob", "carol", "emil")})
    lab.call("report", "demo")
    first = lab.runs[-1].read_json(REPORT)
    lab.call("report", "demo")
    second = lab.runs[-1].read_json(REPORT)

    found = read_metrics(lab)
    since = found.pop(("oldest_drift_timestamp_seconds", "demo"))
    assert applied - 5 <= found.pop(("last_apply_timestamp_seconds", "demo")) <= applied
    assert seconds(first["started"]) <= since <= seconds(first["finished"])
    ended = seconds(second["finished"])
    assert found == {
        ("cluster_compared", "demo"): 1,
        ("quotas_declared", "demo"): 4,
        ("quotas_stored", "demo"): 4,
        ("quotas_in_sync", "demo"): 2,
        ("quotas_overriding", "demo"): 0,
        ("quotas_pending", "demo"): 1,
        ("quotas_returned", "demo"): 0,
        ("quotas_held", "demo"): 0,
        ("quotas_not_judged", "demo"): 0,
        ("files_invalid", "demo"): 0,
        ("quotas_unmanaged", "demo"): 1,
        ("quotas_unconfirmed", "demo"): 0,
        ("changes_refused", "demo"): 0,
        ("quotas_drifted", "demo", "changed_since"): 0,
        ("quotas_drifted", "demo", "conflict"): 0,
        ("quotas_drifted", "demo", "drifted"): 1,
        ("quotas_drifted", "demo", "gone"): 0,
        ("last_report_timestamp_seconds", "demo"): ended,
        ("last_success_timestamp_seconds", "demo"): ended,
    }

    (lab.folder / "team.yaml").write_text("owner: [")
    lab.call("report", "demo")
    failed = lab.runs[-1].read_json(REPORT)
    before = found[("last_success_timestamp_seconds", "demo")]
    found = read_metrics(lab, "demo", "other")
    assert before - 5 <= found.pop(("last_success_timestamp_seconds", "demo")) <= before
    assert applied - 5 <= found.pop(("last_apply_timestamp_seconds", "demo")) <= applied
    assert found == {
        ("cluster_compared", "demo"): 0,
        ("cluster_compared", "other"): 0,
        ("changes_refused", "demo"): 0,
        ("last_apply_timestamp_seconds", "other"): 0,
        ("last_report_timestamp_seconds", "demo"): seconds(failed["finished"]),
        ("last_report_timestamp_seconds", "other"): 0,
        ("last_success_timestamp_seconds", "other"): 0,
    }

    (lab.runs[-1].place / REPORT).replace(b"{")
    assert read_metrics(lab)[("cluster_compared", "demo")] == 0

    file = lab.root / "quota_ops.prom"
    file.write_text("old")
    assert lab.call("metrics", "--out", str(file)).returncode == 0
    assert file.read_text() == lab.call("metrics").stdout
    assert [path.name for path in lab.root.glob("quota_ops.prom*")] == [file.name]


@pytest.mark.parametrize("name", ['a"} 1\nb', "\\", "\ud800\x1b[31m\u202e", "a" * 300])
def test_no_name_breaks_the_metrics(name: str) -> None:
    """Whatever the name of a cluster, each line is one sample of one cluster."""
    text = format_metrics([read_state(name, None), read_state("demo", None)])

    assert len(read(text)) == 8
    assert all(ord(one) >= 32 for line in text.splitlines() for one in line)
    assert text.encode()


def test_a_look_does_not_hide_what_a_broker_rejected(lab: Lab) -> None:
    """A later run that sends nothing neither resets the number of rejected changes nor applies."""
    lab.desire({})
    run = lab.start()
    run_stages(run, ("check",))
    cluster_id = lab.cluster.cluster_id
    row = DesiredRow(cluster_id, "user=u1", "nope", 5.0, None, None, "team.yaml", 4)
    run.folder.write_table(DESIRED, [row])
    error_of(run, (*STAGES[1:],))
    lab.desire({"user=alice": {KEY: 10.0}})
    look = ("check", "describe", "diff", "plan", "report")
    run_stages(lab.start(), look)

    found = read_metrics(lab)
    assert found[("quotas_pending", "demo")] == found[("changes_refused", "demo")] == 1
    assert found[("last_apply_timestamp_seconds", "demo")] == 0

    lab.run("reconcile")
    run_stages(lab.start(), look)
    found = read_metrics(lab)
    assert found[("changes_refused", "demo")] == 0
    assert found[("last_apply_timestamp_seconds", "demo")] > 0

    lab.desire({})
    blocked, _ = lab.refused("reconcile", allow={})  # everything would be removed
    assert read_state("demo", blocked.read_json(REPORT)).succeeded is None
    found = read_metrics(lab)
    assert found[("quotas_pending", "demo")] == 1
    assert found[("last_success_timestamp_seconds", "demo")] > 0


def test_only_a_file_that_the_collector_reads_is_written(lab: Lab) -> None:
    """A name that the textfile collector ignores, and a folder that does not exist, are errors."""
    wrong = lab.call("metrics", "--out", "quota_ops.txt")
    missing = lab.call("metrics", "demo", "--out", str(lab.root / "none" / "quota_ops.prom"))

    assert (wrong.returncode, missing.returncode) == (2, 2)
    assert "does not end in .prom" in wrong.stderr
    assert "cannot be written: No such file or directory" in missing.stderr
