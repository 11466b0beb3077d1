"""cluster.yaml as a policy, and what a policy protects at the size of a real cluster."""

from pathlib import Path

import pytest

from quota_ops.desired.read import read_policy
from quota_ops.model.errors import InvalidDesiredState
from quota_ops.model.plans.policy import (
    ApprovalPolicy,
    DriftPolicy,
    Freeze,
    GuardThresholds,
    Memory,
    Policy,
    RetiredBroker,
    VerifyPolicy,
)
from quota_ops.model.quotas.entity import CLIENT_ID, IP, USER
from quota_ops.model.quotas.filter import EntityFilter, FilterPart, Match


def policy_of(folder: Path, text: str) -> Policy:
    """Parse a cluster.yaml into the policy of a cluster named demo."""
    cluster = folder / "demo"
    cluster.mkdir(exist_ok=True)
    (cluster / "cluster.yaml").write_text(text)
    return read_policy(cluster)


def test_the_least_that_a_cluster_yaml_says(tmp_path: Path) -> None:
    """Every field that is absent has the policy's default."""
    found = policy_of(tmp_path, "cluster_id: abc\nconnection: demo\n")

    assert Policy(cluster="demo", cluster_id="abc", connection="demo") == found


def test_everything_that_a_cluster_yaml_says(tmp_path: Path) -> None:
    """Every field of cluster.yaml reaches the policy."""
    found = policy_of(
        tmp_path,
        """\
cluster_id: MkU3OEVBNTcwNTJENDM2Qg
connection: demo-1.eu
schedule: "0 6-18/2 * jan MON-FRI"
scope:
  - {user: any}
  - {client-id: any, user: alice}
  - {ip: {default: true}}
protect:
  - user: kafka-operator
  - ip: broker-1.example.com
drift: ask
approval: always
verify: bootstrap
retired_brokers: [{id: 4, reason: moved}, {id: 3, reason: scaled down}]
clear_unmanaged: true
paused: broker upgrade
freeze:
  - {cron: "0 18 * * fri", zone: Europe/Berlin, duration: 2d14h, reason: the weekend}
guards: {removals: 3, removals_share: 2.5, cut_share: 100}
memory: {late_writes: 2d, cleared: 1d12h}
""",
    )

    expected = Policy(
        cluster="demo",
        cluster_id="MkU3OEVBNTcwNTJENDM2Qg",
        connection="demo-1.eu",
        schedule="0 6-18/2 * jan MON-FRI",
        scope=(
            EntityFilter((FilterPart(USER, Match.ANY),)),
            EntityFilter(
                (FilterPart(CLIENT_ID, Match.ANY), FilterPart(USER, Match.EXACT, "alice"))
            ),
            EntityFilter((FilterPart(IP, Match.DEFAULT),)),
        ),
        protect=(
            EntityFilter((FilterPart(USER, Match.EXACT, "kafka-operator"),)),
            EntityFilter((FilterPart(IP, Match.EXACT, "broker-1.example.com"),)),
        ),
        drift=DriftPolicy.ASK,
        approval=ApprovalPolicy.ALWAYS,
        verify=VerifyPolicy.BOOTSTRAP,
        clear_unmanaged=True,
        guards=GuardThresholds(removals=3, removals_share=2.5, cut_share=100.0),
        paused="broker upgrade",
        freeze=(Freeze("0 18 * * fri", "Europe/Berlin", 223_200, "the weekend"),),
        memory=Memory(late_writes=172_800, cleared=129_600),
        retired_brokers=(RetiredBroker(3, "scaled down"), RetiredBroker(4, "moved")),
    )
    assert expected == found


@pytest.mark.parametrize("schedule", ["@daily", "*/30 * * * *", "0 0 1 1 0", "15,45 9-17 * * 1-5"])
def test_schedules_that_airflow_takes(tmp_path: Path, schedule: str) -> None:
    """Presets and cron expressions of five fields are kept as written."""
    found = policy_of(tmp_path, f'cluster_id: a\nconnection: b\nschedule: "{schedule}"\n')

    assert schedule == found.schedule


def test_a_policy_alone_says_only_its_own_problems(tmp_path: Path) -> None:
    """read_policy raises the problems of cluster.yaml and does not read the quotas files."""
    with pytest.raises(InvalidDesiredState) as caught:
        policy_of(tmp_path, "connection: demo\n")
    (tmp_path / "demo" / "team.yaml").write_text("[")

    assert [
        (
            f"{tmp_path}/demo/cluster.yaml:1:1  cluster_id is missing."
            " Add cluster_id: MkU3OEVBNTcwNTJENDM2Qg."
        )
    ] == [str(problem) for problem in caught.value.problems]
    assert policy_of(tmp_path, "cluster_id: abc\nconnection: demo\n").cluster_id == "abc"
