"""The unmanaged quotas that take clients from those of Git, by both engines and on every screen."""

import json
import re
from collections import Counter
from itertools import product
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.rows import ActualRow, OverrideRow, Side
from quota_ops.model.quotas.tables import ACTUAL, CLUSTERS, DESIRED, HOLDS, LEDGER, OVERRIDES
from quota_ops.precedence.overrides import DeclaredQuota, OtherQuota, find_overrides
from quota_ops.report.outline.summary import SyncStatus, summarize
from quota_ops.report.page.report import as_html
from quota_ops.report.records.json_report import as_json
from quota_ops.report.records.metrics import read_state
from quota_ops.sql.job import RESULTS
from quota_ops.stages.report.run_report import read_report
from quota_ops.store.places import parquet
from quota_ops.store.places.run_store import open_place
from quota_ops.store.run.folder import RunFolder
from tests.calling import call_cli
from tests.engines.overrides_oracle import (
    LEAVING,
    PROTECTED,
    RATE,
    UNMANAGED,
    Case,
    find_pairs,
    list_desired,
    list_verified,
    make_case,
)
from tests.engines.runs import SPARK_IN_MATRIX, decide_all, put

if TYPE_CHECKING:
    from tests.engines.runs import AnyEngine

CASES = {f"c{number}": make_case(Random(number)) for number in range(150)}  # noqa: S311 - the same cases every time
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"


def describe(case: Case, cluster: str) -> list[ActualRow]:
    """Return what the cluster stores: Git's rows, and the others."""
    rows = [ActualRow(cluster, *row, True, None) for row in case.desired]
    for (entity, key), side in case.sides.items():
        value, why = case.others[entity, key], PROTECTED if side == PROTECTED else None
        rows.append(ActualRow(cluster, entity.text, key, value, True, why))
    return rows


@pytest.fixture(scope="module")
def overrides(
    engine: "AnyEngine", tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[OverrideRow]]:
    """Return the overrides of every case, all decided by one job."""
    path = tmp_path_factory.mktemp("overrides")
    desired = [row for name, case in CASES.items() for row in list_desired(case, name)]
    actual = [row for name, case in CASES.items() for row in describe(case, name)]
    ledger = [row for name, case in CASES.items() for row in list_verified(case, name)]
    put(path, "none", desired=desired, actual=actual, ledger=ledger)
    clusters = [(name, "repair", False, None) for name in CASES]
    RunFolder(open_place(path)).write_table(CLUSTERS, clusters)
    tables = (DESIRED, ACTUAL, LEDGER, HOLDS, CLUSTERS)
    found = decide_all(engine, path, {table: path / table.file for table in tables}, CASES)
    rows = parquet.read_rows(OVERRIDES, found[RESULTS.index(OVERRIDES)])
    by_cluster: dict[str, list[OverrideRow]] = {name: [] for name in CASES}
    for row in rows:
        by_cluster[row.cluster].append(row)
    return by_cluster


@SPARK_IN_MATRIX  # test_diff has Spark find the overriding rows of its cases
def test_overrides_are_those_of_the_resolver(overrides: dict[str, list[OverrideRow]]) -> None:
    """Each pair is one between which a class moves, and every row that moves one is in a pair."""
    several = 0
    for (name, case), side in product(CASES.items(), Side):
        rows = [row for row in overrides[name] if row.side == side]
        found = [(row.entity, row.declared_entity) for row in rows]
        pairs = find_pairs(case, side)
        assert len(found) == len({*found}), name
        assert {*found} <= pairs, name
        for place in (0, 1):
            shown, every = (Counter(pair[place] for pair in seen) for seen in (found, pairs))
            assert {one: min(2, number) for one, number in every.items()} == {
                one: min(2, number) for one, number in shown.items()
            }, name
        several += len(pairs) > 1
        for row in rows:
            entity = Entity.parse(row.declared_entity)
            assert row.declared == case.declared[entity, row.key]
            assert row.value == case.others[Entity.parse(row.entity), row.key]
    assert several > len(CASES) / 4, "the cases are about overrides"


def test_a_host_name_may_be_any_declared_address() -> None:
    """Which address a broker resolves it to is not known, so every declared one is named."""
    key, entities = "connection_creation_rate", ("ip=10.0.0.1", "ip=10.0.0.2", "ip=<default>")
    declared = [DeclaredQuota("a", key, entity, 5.0, None, "f", 1) for entity in entities]
    host = OtherQuota("a", key, "ip=gateway", 7.0, None, Side.UNMANAGED)

    found = find_overrides([host], declared)

    assert [(row.entity, row.declared_entity) for row in found] == [
        ("ip=gateway", "ip=10.0.0.1"),
        ("ip=gateway", "ip=10.0.0.2"),
    ]


def test_users_and_client_ids_are_not_multiplied(embedded: Any, tmp_path: Path) -> None:
    """Ten thousand unmanaged users beside ten thousand client ids of Git have as many pairs."""
    number = 10_000
    case = Case(
        {(Entity.of({"client-id": f"id{at}"}), RATE): 1.0 for at in range(number)},
        {(Entity.of({"user": f"user{at}"}), RATE): 2.0 for at in range(number)},
        {(Entity.of({"user": f"user{at}"}), RATE): UNMANAGED for at in range(number)},
    )
    path = put(tmp_path, "c", desired=list_desired(case, "c"), actual=describe(case, "c"))
    tables = (DESIRED, ACTUAL, LEDGER, HOLDS, CLUSTERS)

    found = embedded.decide({table: open_place(path / table.file) for table in tables})

    pairs = found[RESULTS.index(OVERRIDES)]
    assert pairs.num_rows <= 8 * number
    for column in ("entity", "declared_entity"):
        assert len({*pairs[column].to_pylist()}) == number


def write_files(folder: Path, case: Case) -> None:
    """Write the YAML of a case, and beside it the snapshot of its cluster."""
    cluster = folder / "desired_state" / "demo"
    cluster.mkdir(parents=True)
    protect = [
        {kind: {"default": True} if name is None else name for kind, name in entity.parts}
        for (entity, _), side in case.sides.items()
        if side == PROTECTED
    ]
    policy = {"cluster_id": CLUSTER_ID, "connection": "demo", "protect": protect}
    (cluster / "cluster.yaml").write_text(json.dumps(policy), "utf-8")
    quotas = [
        {kind: {"default": True} if name is None else name for kind, name in entity.parts}
        | {"limits": {key: int(value)}}
        for (entity, key), value in case.declared.items()
    ]
    # JSON is YAML in which each name is in quotes.
    (cluster / "team.yaml").write_text(json.dumps({"owner": "team", "quotas": quotas}), "utf-8")
    lines = [{"schema": 1, "cluster_id": CLUSTER_ID}] + [
        {"entity": Entity.parse(row.entity).as_dict(), "key": row.key, "value": row.value}
        for row in describe(case, "demo")
        if case.sides.get((Entity.parse(row.entity), row.key)) != LEAVING
    ]
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (folder / "actual.jsonl").write_text(text, "utf-8")


@pytest.mark.parametrize("seed", range(12))
def test_in_sync_means_that_every_class_gets_what_git_declares(seed: int, tmp_path: Path) -> None:
    """The verdict, the counts, the metric, the page and the exit code agree with the resolver."""
    case = make_case(Random(1000 + seed))  # noqa: S311 - the same case every time
    write_files(tmp_path, case)
    pairs = find_pairs(case)
    overriding, overridden = ({pair[side] for pair in pairs} for side in (0, 1))

    shown = call_cli(
        ["plan", "demo", "--actual", "actual.jsonl"],
        {"HOME": str(tmp_path), "QUOTA_OPS_RUN_STORE": str(tmp_path / "store")},
        tmp_path,
    )

    (run,) = (tmp_path / "store" / "runs" / "demo").iterdir()
    report = read_report(RunFolder(open_place(run)))
    summary, values = summarize(report), json.loads(as_json(report))
    state, declared = read_state("demo", values), len(case.declared)
    heading = re.search("<h1>(.*?)</h1>", as_html(report))
    assert (shown.returncode, summary.status) == (
        (7, SyncStatus.ATTENTION) if pairs else (0, SyncStatus.IN_SYNC)
    ), shown.stdout
    assert state.counts is not None
    assert (state.counts["overriding"], state.counts["in_sync"]) == (
        len(overriding),
        declared - len(overridden),
    )
    assert heading is not None
    assert (f"{len(overriding)} unmanaged quota" in heading[1]) == bool(pairs)
    assert ("overriding" in shown.stdout) == bool(pairs)
    assert f"{declared - len(overridden)} in sync" in shown.stdout
