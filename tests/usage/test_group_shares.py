"""Shares of a group that follow recorded use, in plans and in reviews."""

import json
from collections.abc import Mapping
from itertools import combinations
from math import ceil, log
from pathlib import Path

import pytest
import time_machine
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from quota_ops import cli
from quota_ops.desired.expand.expansion import weigh_by_use
from quota_ops.model.usage.digest import DIGEST, DigestRow
from quota_ops.store.history.digests import write_digest
from quota_ops.store.places import parquet
from quota_ops.store.places.run_store import RunStore, open_place
from tests.repositories import commit_all, git
from tests.usage.scenario import CLUSTER_ID

CLUSTER = f"cluster_id: {CLUSTER_ID}\nconnection: demo\n"
TEAM = """\
owner: analytics
groups:
  - name: analytics
    members: [{user: spark}, {user: flink}, {user: idle}, {user: new}]
    budget: {consumer_byte_rate: 4000000}
    minimum: {consumer_byte_rate: 600000}
    weights: usage
    reason: REASON
"""
BY_WEIGHT = {
    "user=flink": 1_000_000.0,
    "user=idle": 1_000_000.0,
    "user=new": 1_000_000.0,
    "user=spark": 1_000_000.0,
}
KEY = "consumer_byte_rate"
STORED = '{"entity": {"user": "other"}, "key": "consumer_byte_rate", "value": 9e6}\n'
DAYS = [f"2026-11-{day:02}" for day in range(10, 23)]
"""Thirteen days before Monday, 23 November."""


@pytest.fixture(name="store")
def _store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunStore:
    """Return a run store with days on which spark used ten times as much as flink, idle nothing."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stored.jsonl").write_text(STORED)
    store = RunStore(open_place(tmp_path / "store"))
    monkeypatch.setenv("QUOTA_OPS_RUN_STORE", str(tmp_path / "store"))
    for day in DAYS:
        leave_day(store, day, {"spark": 10_000, "flink": 1_000, "idle": 0})
    return store


def leave_day(store: RunStore, day: str, rates: Mapping[str, int]) -> None:
    """Record a day on which users consumed at these rates all day, on one of two brokers."""

    def row(broker: str, user: str | None, rate: int) -> DigestRow:
        names = day, broker, "consumer_byte_rate", user, None
        if not rate:
            return DigestRow(*names, 86_400, None, (), None, False)
        bucket = ceil(log(rate) / log(1.05))
        return DigestRow(*names, 0, bucket, (86_400,), float(rate), False)

    rows = [row("b1", None, 0), row("b2", None, 0)]
    rows += [row("b1", user, rate) for user, rate in rates.items()]
    write_digest(store, CLUSTER_ID, day, parquet.from_rows(DIGEST, rows))


def plan(at: str) -> tuple[dict[str, float], set[str]]:
    """Plan for a cluster without quotas at a time; return the shares, and how they came about."""
    with time_machine.travel(at, tick=False):
        ran = CliRunner().invoke(
            cli.main, ["plan", "orders", "--actual", "stored.jsonl", "--format", "json"]
        )
    assert ran.exit_code == 0, ran.output
    rows = json.loads(ran.stdout)["rows"]
    planned = [row for row in rows if row["kind"] == "pending"]
    return {row["entity"]: row["after"] for row in planned}, {row["derivation"] for row in planned}


def test_half_of_a_budget_follows_the_use_of_four_weeks(store: RunStore, tmp_path: Path) -> None:
    """Shares follow the p95 of members, keep the minima, and change on Mondays at noon."""
    folder = tmp_path / "desired_state/orders"
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(CLUSTER)
    (folder / "team.yaml").write_text(TEAM)

    shares, how = plan("2026-11-26T04:00:00Z")

    assert shares == {
        "user=flink": 617_829.0,
        "user=idle": 600_000.0,
        "user=new": 971_428.0,
        "user=spark": 1_810_743.0,
    }
    text = (
        "group analytics, 4 MB/s: half by weight (1 of 4), half by use on 13 days before"
        " 2026-11-23, at least 600 kB/s each"
    )
    assert how == {text}
    leave_day(store, "2026-11-24", {"flink": 90_000})
    assert plan("2026-11-30T11:00:00Z") == (shares, how)
    later, _ = plan("2026-11-30T13:00:00Z")
    assert later != shares
    text = (
        "group analytics, 1 of 4 of 4 MB/s by weight: use is recorded on 6 days before"
        " 2026-11-16, 7 are needed, at least 600 kB/s each"
    )
    assert plan("2026-11-16T13:00:00Z") == (BY_WEIGHT, {text})


@pytest.mark.usefixtures("store")
def test_a_review_divides_both_commits_by_the_same_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A branch that changes the reason of a group changes none of its shares."""
    root = tmp_path / "repository"
    folder = root / "desired_state/orders"
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(CLUSTER)
    (folder / "team.yaml").write_text(TEAM)
    git(root, "init", "--quiet", "--initial-branch", "main")
    commit_all(root)
    git(root, "checkout", "--quiet", "-b", "branch")
    (folder / "team.yaml").write_text(TEAM.replace("REASON", "month end"))
    commit_all(root)

    monkeypatch.chdir(root)
    with time_machine.travel("2026-11-26T04:00:00Z", tick=False):
        ended = CliRunner().invoke(cli.main, ["review", "--files-only"])

    assert ended.exit_code == 0
    assert ended.output.startswith("**quota-ops · no quota changes on `orders`**")


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 100), min_size=1),
    st.dictionaries(st.sampled_from("abcdef"), st.floats(0, 1e12)),
)
def test_half_of_each_weight_stays(weights: dict[str, int], used: dict[str, float]) -> None:
    """A member keeps half of its declared share, and gets more of the rest the more it uses."""
    used = {name: rate for name, rate in used.items() if name in weights}

    found = weigh_by_use(weights, used)

    if not sum(used.values()):
        assert found == weights
        return
    total = sum(weights.values())
    for name, weight in weights.items():
        assert found[name] >= max(1, 500 * weight / total - 1)
        if name not in used:
            assert abs(found[name] - max(1, 1000 * weight / total)) <= 1
    for name, other in combinations(used, 2):
        if weights[name] == weights[other] and used[name] >= used[other]:
            assert found[name] >= found[other]
    assert abs(sum(found.values()) - 1000) <= len(weights)
