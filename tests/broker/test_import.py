"""import on a real broker: the plan after it is empty, and one run makes every quota managed."""

import json
import shutil
from collections.abc import Iterator
from math import nan
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quota_ops.cli import main
from quota_ops.kafka.cluster import Cluster
from quota_ops.model.quotas.alteration import Alteration
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.quota import QUOTA_KEYS
from tests.looking import seen_in_time
from tests.writing import empty

Rows = dict[tuple[Entity, str], float]

NAMES = st.none() | st.text(min_size=1, max_size=6)
CLIENTS = st.dictionaries(st.sampled_from(["user", "client-id"]), NAMES, min_size=1)
ADDRESSES = st.none() | st.sampled_from(["10.0.0.1", "::1", "0:0:0:0:0:0:0:1", "localhost", "10"])
RATES = st.integers(1, 2**53).map(float) | st.sampled_from([nan, 2.0**63, 1235.0000001, 2.0**20])
SHARES = st.floats(min_value=1e-300, max_value=1e300) | st.just(2147483647.0)
CONNECTIONS = st.integers(10_000, 2**31 - 1).map(float)
"""Not fewer: they hold for this test's own connections too, which the broker would hang up."""
PERCENTAGES = st.floats(min_value=10_000, max_value=1e300) | st.just(2147483647.0)
"""Not less: a default holds for this test's own requests too, which the broker would delay."""
KEYS = {
    key.name: RATES if key.unit == "bytes/s" else SHARES
    for key in QUOTA_KEYS.values()
    if "user" in key.types
} | {"request_percentage": PERCENTAGES}
QUOTAS = st.dictionaries(
    CLIENTS.map(Entity.of), st.fixed_dictionaries({}, optional=KEYS), max_size=6
)
LIMITS = st.dictionaries(ADDRESSES, CONNECTIONS, max_size=3)


@pytest.fixture(name="cluster")
def _cluster(demo: Cluster) -> Iterator[Cluster]:
    """Return the shared broker, found by the name demo; its quotas are cleared at the end."""
    yield demo
    empty(demo)


def store(cluster: Cluster, rows: Rows) -> None:
    """Make the cluster store these rows and no others, and wait until it shows them."""
    changes: dict[Entity, dict[str, float | None]] = {}
    for row in cluster.describe():
        changes.setdefault(row.entity, {})[row.key] = None
    for (entity, key), value in rows.items():
        changes.setdefault(entity, {})[key] = value
    answers = cluster.apply([Alteration(one, tuple(keys.items())) for one, keys in changes.items()])
    assert {answer.code for answer in answers} <= {0}
    wanted = as_texts(rows)
    assert seen_in_time(lambda: stored(cluster), wanted) == wanted


def stored(cluster: Cluster) -> set[tuple[Entity, str, str]]:
    """Return what the cluster stores."""
    return as_texts({(row.entity, row.key): row.value for row in cluster.describe()})


def as_texts(rows: Rows) -> set[tuple[Entity, str, str]]:
    """Return rows that can be compared: NaN does not equal NaN, its text does."""
    return {(entity, key, repr(value)) for (entity, key), value in rows.items()}


def run(*arguments: str) -> Any:
    """Run a command that succeeds; return its JSON, if any."""
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout) if "json" in arguments else result.stdout


@settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(quotas=QUOTAS, limits=LIMITS)
def test_the_plan_after_an_import_is_empty(
    cluster: Cluster, quotas: dict[Entity, dict[str, float]], limits: dict[str | None, float]
) -> None:
    """After an import of any stored quotas the plan writes nothing, and gives each row's reason."""
    rows = {(entity, key): value for entity, keys in quotas.items() for key, value in keys.items()}
    rows |= {
        (Entity.of({"ip": name}), "connection_creation_rate"): value
        for name, value in limits.items()
    }
    shutil.rmtree("desired_state", ignore_errors=True)
    store(cluster, rows)

    run("import", "demo")

    plan = run("plan", "demo", "--format", "json")
    kinds = {(one["kind"], one["action"], "hands_off" in one) for one in plan["rows"]}
    assert kinds <= {("in_sync", "record", False), ("unmanaged", "report", True)}
    assert len(plan["rows"]) == len(rows)


def test_after_one_run_everything_is_owned(cluster: Cluster) -> None:
    """Import, reconcile, and the next plan counts every row as managed."""
    alice, address = Entity.of({"user": "alice"}), Entity.of({"ip": None})
    rows = {
        (alice, "producer_byte_rate"): 2.0**63,
        (alice, "request_percentage"): 12.5,
        (address, "connection_creation_rate"): 50.0,
        (Entity.of({"user": "bob"}), "request_percentage"): nan,
    }
    store(cluster, rows)
    run("import", "demo", "--group-by", "prefix")
    run("reconcile", "demo")

    plan = run("plan", "demo", "--format", "json")

    assert [(one["entity"], one["kind"]) for one in plan["rows"]] == [("user=bob", "unmanaged")]
    assert stored(cluster) == as_texts(rows)
    (Path("desired_state/demo/alice.yaml")).unlink()
    removed = CliRunner().invoke(main, ["diff", "demo", "--format", "json"])
    assert {(one["key"], one["kind"]) for one in json.loads(removed.stdout)["rows"]} == {
        ("producer_byte_rate", "removed"),
        ("request_percentage", "removed"),
        ("request_percentage", "unmanaged"),
    }
