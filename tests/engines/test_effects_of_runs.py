"""The effects that runs keep: of many runs at once, again, after an interruption, and on Spark."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from quota_ops.model.errors import InvalidInput
from quota_ops.model.plans.client_effects import INVENTORY, InventoryEffects, OwnerEffects
from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.rows import ActualRow, DesiredRow, Key, LedgerRow
from quota_ops.report.outline.effects import describe_inventory
from quota_ops.sql import client_effects
from quota_ops.sql.client_effects import (
    compare_large_inventories,
    compare_runs,
    limits_table,
    read_effect_rows,
    write_client_effects,
)
from quota_ops.sql.embedded import EmbeddedEngine
from quota_ops.sql.embedded_effects import EmbeddedEffects
from quota_ops.sql.inventory import Inventory, find_inventory
from quota_ops.sql.job import SomeDamaged, diff_runs
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import open_place
from quota_ops.store.run.files import CLIENT_COUNTS, POLICY
from quota_ops.store.run.folder import RunFolder
from tests.engines.runs import put
from tests.engines.submitting import ROOT, submit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEY = "producer_byte_rate"
ALICE = INVENTORY.row("alice", "app", "pay", 3.0, None, None, None)
CUT = OwnerEffects("pay", 1, 1, 0, 1, 0, 0, 1, 1, 0, 0, 0)


def put_run(
    path: Path, inventory: str | None = "clients.csv", verified: float | None = None
) -> RunFolder:
    """Create a run whose diff cuts the limit of alice, who is in the inventory."""
    cluster = path.name
    want = DesiredRow(cluster, "user=alice", KEY, 2.0, "pay", None, "f.yaml", 1)
    have = ActualRow(cluster, "user=alice", KEY, 4.0, True, None)
    row = cluster, "user=alice", KEY, verified, "verified", "pay", "f.yaml", None, "run", "2026"
    ledger = [] if verified is None else [LedgerRow(*row)]
    sides = put(path, cluster, desired=[want], actual=[have], ledger=ledger)
    folder = RunFolder(open_place(sides))
    folder.write(POLICY, Policy(cluster, cluster, "demo", inventory=inventory))
    folder.write_table(INVENTORY, [ALICE])
    diff_runs(EmbeddedEngine(), [folder.place])
    return folder


def files(folder: RunFolder) -> dict[str, bytes]:
    """Return the files that the effects of a run have, by path."""
    leaves = [leaf.path for leaf in folder.place.walk() if leaf.path.startswith("client_effects")]
    return {path: folder.place.below(path).read() for path in leaves}


class Killed(EmbeddedEffects):
    """An engine that ends after it has written its rows."""

    def compare_limits(
        self, inventory: Inventory, before: pa.Table, after: pa.Table, to: Place
    ) -> tuple[OwnerEffects, ...]:
        """Write the rows, then end as if by a signal."""
        super().compare_limits(inventory, before, after, to)
        raise KeyboardInterrupt


def test_what_is_restored_is_not_counted(tmp_path: Path) -> None:
    """A repair of drift gives clients what a run verified, so nobody loses by it."""
    found = write_client_effects(EmbeddedEffects(), put_run(tmp_path / "one", verified=2.0))

    assert describe_inventory(found) == (
        "No limit of the 1 client in the inventory changes. Not counted: 1 change that restores an "
        "earlier value."
    )


def test_a_second_attempt_writes_nothing(tmp_path: Path) -> None:
    """The same differences and inventory are compared once."""
    folder = put_run(tmp_path / "one")
    first, before = write_client_effects(EmbeddedEffects(), folder), files(folder)

    assert write_client_effects(EmbeddedEffects(), folder) == first
    assert files(folder) == before
    assert first is not None
    assert (first.inventory, first.owners) == ("clients.csv", (CUT,))
    assert [row.after for row in read_effect_rows(folder, first)] == [2.0]


def test_an_interrupted_attempt_leaves_the_earlier_summary(tmp_path: Path) -> None:
    """The summary and its rows stay as they were; the next attempt replaces both."""
    folder = put_run(tmp_path / "one")
    first, before = write_client_effects(EmbeddedEffects(), folder), files(folder)
    folder.write_table(INVENTORY, [ALICE, ALICE._replace(client_id="web")])

    with pytest.raises(KeyboardInterrupt):
        write_client_effects(Killed(), folder)
    assert (folder.read(CLIENT_COUNTS), before.items() <= files(folder).items()) == (first, True)

    second = write_client_effects(EmbeddedEffects(), folder)
    assert second is not None
    assert second.owners == (CUT._replace(clients=2, keys=2, cut=2, losing=2, throttled=2),)
    assert not {path for path in before if path.endswith(".parquet")} & files(folder).keys()


def test_a_wrong_inventory_costs_its_run_alone(tmp_path: Path) -> None:
    """The others get their effects, and the error names the run with the reason."""
    runs = [put_run(tmp_path / name) for name in ("one", "two")]
    runs[1].write_table(INVENTORY, [ALICE, ALICE])
    runs.append(put_run(tmp_path / "three", inventory=None))
    runs[2].write_table(INVENTORY, [])

    with pytest.raises(SomeDamaged) as error:
        compare_runs(EmbeddedEffects(), runs)
    assert list(error.value.failures) == [runs[1].place]
    with pytest.raises(InvalidInput, match=r"inventory.parquet:2: user 'alice' .* already listed"):
        compare_runs(EmbeddedEffects(), runs[1:2])
    assert [bool(files(run)) for run in runs] == [True, False, False]


def test_only_large_inventories_with_the_diff(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job of the diff leaves small inventories to the plan, and no inventory can fail it."""
    folder = put_run(tmp_path / "one")
    compare_large_inventories(EmbeddedEffects(), [folder.place])
    assert files(folder) == {}

    monkeypatch.setattr(client_effects, "LARGE_BYTES", 1)
    compare_large_inventories(EmbeddedEffects(), [folder.place])
    assert folder.read(CLIENT_COUNTS).owners == (CUT,)

    folder.write_table(INVENTORY, [ALICE, ALICE])
    compare_large_inventories(EmbeddedEffects(), [folder.place])
    assert folder.read(CLIENT_COUNTS).owners == (CUT,)


@pytest.mark.matrix
def test_what_spark_submit_runs(tmp_path: Path) -> None:
    """The job writes the effects of two runs; the second time it writes nothing."""
    runs = [put_run(tmp_path / name) for name in ("one", "two")]
    job = ROOT / "spark_jobs" / "compare_effective_limits.py"
    before: list[dict[str, bytes]] = []
    for _ in range(2):
        process = submit("local[2]", *(str(run.place) for run in runs), job=job)
        _, error = process.communicate(timeout=200)
        assert process.returncode == 0, error
        now = [files(run) for run in runs]
        assert before in ([], now)
        before = now

    found: list[InventoryEffects] = [run.read(CLIENT_COUNTS) for run in runs]
    assert [effects.owners for effects in found] == [(CUT,), (CUT,)]


@pytest.mark.matrix
def test_the_plan_of_a_large_inventory(session: "SparkSession", tmp_path: Path) -> None:
    """Spark sends the limits to the clients: no join moves or crosses the rows of an inventory."""
    from quota_ops.sql.spark_effects import SparkEffects  # noqa: PLC0415 - a JVM

    clients = tmp_path / "clients.csv"
    clients.write_text("user,client-id\nalice,app\n", "utf-8")
    limits = limits_table({Key("user=alice", KEY): 2.0})
    inventory = find_inventory(open_place(clients))
    SparkEffects(session).compare_limits(inventory, limits, limits, open_place(tmp_path / "out"))

    plan = session.table("client_effects_found")._jdf.queryExecution().executedPlan().toString()  # noqa: SLF001 - Spark prints plans only to a screen
    joins = re.findall(r"\w+Join", plan)
    assert joins == ["BroadcastHashJoin"] * 3
    assert "NestedLoop" not in plan
