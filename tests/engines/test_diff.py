"""The diff by both engines: case by case, and against an oracle."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quota_ops.frames.embedded import EmbeddedEngine
from quota_ops.frames.job import Engine, diff_runs
from quota_ops.model.errors import InvalidInput
from quota_ops.model.rows import ActualRow, DesiredRow, LedgerRow
from quota_ops.model.tables import ACTUAL
from quota_ops.run_folder import RunFolder
from tests.engines.cases import Case, cases
from tests.engines.oracle import kinds
from tests.engines.runs import batches, differences, put

Sides = tuple[list[DesiredRow], list[ActualRow], list[LedgerRow]]
CASES = cases()


@pytest.fixture(scope="module")
def decided(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The run folder of every case, all of them decided by one job."""
    root = tmp_path_factory.mktemp("cases")
    folders = {
        case.cluster: put(
            root / case.cluster,
            case.cluster,
            desired=case.desired,
            actual=case.actual,
            ledger=case.ledger,
            drift=case.drift,
            clear_unmanaged=case.clear_unmanaged,
        )
        for case in CASES
    }
    diff_runs(engine, list(folders.values()))
    return folders


@pytest.mark.parametrize("case", CASES, ids=[f"{one.cluster} {one.name}" for one in CASES])
def test_case(case: Case, decided: dict[str, Path]) -> None:
    """Every row gets the kind and the action that the case names, and no other row is there."""
    rows = differences(decided[case.cluster])

    assert tuple(sorted((r.entity, r.key, r.kind.value, r.action.value) for r in rows)) == (
        case.expected
    )


@pytest.mark.parametrize("case", CASES, ids=[f"{one.cluster} {one.name}" for one in CASES])
def test_batches_hold_what_is_written(case: Case, decided: dict[str, Path]) -> None:
    """What is set or cleared stands in a batch, and nothing else does."""
    written = {
        (row.entity, row.key, row.target)
        for row in differences(decided[case.cluster])
        if row.action.value in {"set", "clear"}
    }

    assert {(row.entity, row.key, row.after) for row in batches(decided[case.cluster])} == written


def _sides(cluster: str) -> st.SearchStrategy[Sides]:
    """Up to five rows on which the three sides agree or not; few values, so that they meet."""
    value = st.sampled_from([1.0, 2.0, 3.0])
    absent = st.none() | value
    row = st.tuples(absent, absent, absent, st.sampled_from(["no", "clear", "1", "2", "3"]))

    def build(rows: list[tuple[float | None, float | None, float | None, str]]) -> Sides:
        desired, actual, ledger = [], [], []
        at = ("run", "2026-11-01T00:00:00Z")
        for number, (want, have, verified, intended) in enumerate(rows):
            key = (cluster, f"user=u{number}", "producer_byte_rate")
            if want is not None:
                desired.append(DesiredRow(*key, want, "team", None, "team.yaml", number))
            if have is not None:
                actual.append(ActualRow(*key, have, True, None))
            if verified is not None:
                ledger.append(LedgerRow(*key, verified, "verified", None, None, None, *at))
            if intended != "no":
                meant = None if intended == "clear" else float(intended)
                ledger.append(LedgerRow(*key, meant, "intended", None, None, None, *at))
        return desired, actual, ledger

    return st.lists(row, max_size=5).map(build)


@settings(
    max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_engines_agree_with_the_oracle(data: st.DataObject, engine: Engine, tmp_path: Path) -> None:
    """A fleet of forty clusters in one job: each is told what dictionaries say."""
    fleet = {f"c{number}": data.draw(_sides(f"c{number}")) for number in range(40)}
    folders = {
        cluster: put(tmp_path / cluster, cluster, desired=d, actual=a, ledger=ledger)
        for cluster, (d, a, ledger) in fleet.items()
    }

    diff_runs(engine, list(folders.values()))

    found = {
        cluster: {row[:3]: row.kind.value for row in differences(folder)}
        for cluster, folder in folders.items()
    }
    assert found == {cluster: kinds(*sides) for cluster, sides in fleet.items()}


def test_a_side_that_is_missing_is_named(embedded: EmbeddedEngine, tmp_path: Path) -> None:
    """A run folder without one of its sides names the file, and nothing is decided."""
    folder = put(tmp_path, "c")
    (folder / ACTUAL.file).unlink()

    with pytest.raises(InvalidInput, match=r"actual\.parquet is missing: the stage that leaves it"):
        diff_runs(embedded, [folder])


def test_every_discrepancy_of_a_table_is_named(embedded: EmbeddedEngine, tmp_path: Path) -> None:
    """A file with other columns is refused, each discrepancy by its name."""
    folder = put(tmp_path, "c")
    (folder / ACTUAL.file).write_bytes((folder / "desired.parquet").read_bytes())

    with pytest.raises(InvalidInput) as refused:
        diff_runs(embedded, [folder])

    assert refused.value.message == (
        f"{folder / ACTUAL.file} is not a actual table: in_scope is missing, must be boolean; "
        "hands_off is missing, must be string; owner is not a column of it; "
        "reason is not a column of it; file is not a column of it; line is not a column of it"
    )


def test_a_damaged_table_is_named(embedded: EmbeddedEngine, tmp_path: Path) -> None:
    """Bytes that are no Parquet are an error with the file's name."""
    folder = put(tmp_path, "c")
    (folder / ACTUAL.file).write_bytes(b"PAR1 no")

    with pytest.raises(InvalidInput, match=r"actual\.parquet is not a Parquet file"):
        diff_runs(embedded, [folder])


def test_one_cluster_twice_is_refused(embedded: EmbeddedEngine, tmp_path: Path) -> None:
    """Two runs of one cluster in one job would mix their rows, so it is an error."""
    folders = [put(tmp_path / name, "c") for name in ("one", "two")]

    with pytest.raises(InvalidInput, match="two of the runs are of the same cluster"):
        diff_runs(embedded, folders)


def test_differences_are_in_a_stable_order(engine: Engine, tmp_path: Path) -> None:
    """Rows come sorted by entity and key, whichever engine made them."""
    desired = [
        DesiredRow("c", f"user=u{number}", key, 1.0, None, None, "f", 1)
        for number in (3, 1, 2)
        for key in ("producer_byte_rate", "consumer_byte_rate")
    ]
    folder = put(tmp_path, "c", desired=desired)

    diff_runs(engine, [folder])

    rows = [(row.entity, row.key) for row in RunFolder(folder).differences()]
    assert rows == sorted(rows)
