"""Both engines against the reference, for any names, texts and numbers."""

from collections.abc import Mapping, Sequence
from functools import cache
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from quota_ops.model.plans.plan import exact
from quota_ops.model.quotas.difference import WRITES, Action, Difference, Kind
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.rows import ActualRow, DesiredRow, LedgerRow
from quota_ops.sql.embedded import EmbeddedEngine
from tests.engines.oracle import decide
from tests.engines.runs import SPARK_IN_MATRIX, Sides, decide_clusters

if TYPE_CHECKING:
    from tests.engines.runs import AnyEngine

LATER = 4
"""The number of a run that began after all others."""
LEFT_ALONE = {Action.REPORT, Action.HELD}
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
maybe_text = st.none() | texts
values = st.sampled_from([1.0, 2.0, 3.0]) | st.floats(0.1, 1e300)
stored = values | st.sampled_from([float("nan"), float("inf")])
returns_to = st.none() | st.just(0.0) | values
names = st.dictionaries(texts, texts | st.none(), min_size=1, max_size=2)
asked = st.none() | st.tuples(
    values, maybe_text, maybe_text, texts, st.integers(1, 9999), maybe_text, maybe_text, returns_to
)
held = st.none() | st.tuples(stored, st.booleans(), maybe_text)
note = (maybe_text, maybe_text, maybe_text, texts, texts, st.none() | st.integers(1, 3))
temporary = (*note, returns_to)
verified = st.none() | st.tuples(values, st.just("verified"), *temporary)
intended = st.tuples(st.none() | values, st.just("intended"), *temporary)
cleared = st.tuples(stored, st.just("cleared"), *note)
remembered = st.lists(
    intended | cleared, max_size=4, unique_by=lambda row: (row[1], exact(row[0]))
).map(tuple)


class Cluster(NamedTuple):
    """The policy of a cluster, and the sides of its rows by (entity, key)."""

    drift: str
    clear_unmanaged: bool
    rows: dict[tuple[str, str], tuple[Any, ...]]
    holds: str | None = None
    """The hold on every second entity."""
    invalid_files: str | None = None

    @property
    def held(self) -> dict[str, str]:
        """Return the held entities, with the reason."""
        entities = sorted({entity for entity, _ in self.rows})[::2]
        return {} if self.holds is None else dict.fromkeys(entities, self.holds)

    def sides(self, cluster: str) -> Sides:
        """Return the rows of the tables."""
        given_rows = self.rows.items()
        return Sides(
            [DesiredRow(cluster, *key, *side[0]) for key, side in given_rows if side[0]],
            [ActualRow(cluster, *key, *side[1]) for key, side in given_rows if side[1]],
            [
                LedgerRow(cluster, *key, *row)
                for key, side in given_rows
                for row in (side[2], *side[3])
                if row
            ],
            self.held,
            self.drift,
            self.clear_unmanaged,
            self.invalid_files,
        )


clusters = st.builds(
    Cluster,
    st.sampled_from(["repair", "ask", "report"]),
    st.booleans(),
    st.dictionaries(
        st.tuples(names.map(lambda parts: Entity.of(parts).text), texts),
        st.tuples(asked, held, verified, remembered),
        max_size=4,
    ),
    maybe_text,
    st.none(),
)
Fleet = dict[str, Cluster]
fleets: st.SearchStrategy[Fleet] = st.dictionaries(texts, clusters, min_size=1, max_size=4)


@cache
def make_fleet() -> Fleet:
    """Return 150 examples as the clusters of one fleet, for one job."""
    examples: list[Cluster] = []

    @settings(max_examples=150, database=None, derandomize=True, phases=[Phase.generate])
    @given(clusters)
    def collect(example: Cluster) -> None:
        examples.append(example)

    collect()
    return {f"c{number:03}": example for number, example in enumerate(examples)}


@pytest.fixture
def fleet() -> Fleet:
    """Return the same fleet for each test."""
    return make_fleet()


def list_clusters() -> dict[str, Sides]:
    """Return the sides of each cluster of the fleet."""
    return {name: cluster.sides(name) for name, cluster in make_fleet().items()}


def comparable(
    differences: Sequence[Difference], batches: Sequence[Difference]
) -> tuple[list[Difference], list[Difference]]:
    """Return the rows with NaN written so that it equals itself."""
    return (
        [row._replace(before=_named(row.before)) for row in differences],
        [row._replace(before=_named(row.before)) for row in batches],
    )


def _named(value: float | None) -> float | None:
    return -1.0 if value is not None and isnan(value) else value


def by_engine(
    engine: "AnyEngine", path: Path, fleet: Fleet
) -> tuple[list[Difference], list[Difference]]:
    """Return an engine's result for a fleet."""
    sides = {name: cluster.sides(name) for name, cluster in fleet.items()}
    return with_batches(decide_clusters(engine, path, sides), fleet)


def with_batches(
    decided: Mapping[str, list[Difference]], fleet: Fleet
) -> tuple[list[Difference], list[Difference]]:
    """Return the rows of all clusters of a fleet, and those of their batches."""
    differences = [row for name in sorted(fleet) for row in decided[name]]
    return differences, [row for row in differences if row.batch is not None]


def by_oracle(fleet: Fleet) -> tuple[list[Difference], list[Difference]]:
    """Return the reference's result; so few writes are one batch."""
    differences = [
        row
        for name, cluster in sorted(fleet.items())
        for row in decide(
            *cluster.sides(name)[:3],
            holds=cluster.held,
            drift=cluster.drift,
            clear_unmanaged=cluster.clear_unmanaged,
        )
    ]
    differences = [row._replace(batch=1) if row.action in WRITES else row for row in differences]
    return differences, [row for row in differences if row.batch is not None]


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(fleet=fleets)
def test_any_names_texts_and_numbers(
    fleet: Fleet, embedded: EmbeddedEngine, tmp_path: Path
) -> None:
    """The embedded engine gives the rows of the reference, complete and in order."""
    assert comparable(*by_engine(embedded, tmp_path, fleet)) == comparable(*by_oracle(fleet))


def test_many_examples_in_one_job(decided: dict[str, list[Difference]], fleet: Fleet) -> None:
    """Either engine gives the rows and the batch of the reference, complete and in order."""
    assert comparable(*with_batches(decided, fleet)) == comparable(*by_oracle(fleet))


def test_an_invalid_file_removes_nothing(
    embedded: EmbeddedEngine, fleet: Fleet, tmp_path: Path
) -> None:
    """While a file is invalid, a run changes no managed row that a valid file does not declare."""
    invalid = {
        name: one._replace(clear_unmanaged=False, invalid_files="\nx.yaml\n")
        for name, one in fleet.items()
    }

    differences, _ = by_engine(embedded, tmp_path, invalid)

    changed = {Action.SET, Action.CLEAR}
    assert {row.after is None for row in differences if row.action in changed} == {False}
    forgotten = [row for row in differences if row.action is Action.FORGET]
    assert {row.kind for row in forgotten} <= {Kind.CLEARED}
    declared = [row for row in by_oracle(fleet)[0] if row.after is not None]
    assert [row for row in comparable(differences, [])[0] if row.after is not None] == (
        comparable(declared, [])[0]
    )


def moved(cluster: Cluster, *, back: bool) -> Cluster:
    """Return managed rows that Git changes to other values, or back."""
    rows = {}
    for key, (want, have, *_) in cluster.rows.items():
        new, old = want and want[0], have and have[0]
        if back:
            new, old = old, new
        rows[key] = (
            new and (new, None, None, "f", 1),
            old and (old, True, None),
            old and (old, "verified", None, None, None, "run", "at"),
            (),
        )
    return cluster._replace(rows=rows, holds=None)


@SPARK_IN_MATRIX
def test_there_and_back(engine: "AnyEngine", fleet: Fleet, tmp_path: Path) -> None:
    """The plan back undoes exactly the writes of a plan: the same rows with the values swapped."""
    there, back = (
        {
            (row.cluster, row.entity, row.key): (exact(row.before), exact(row.target))
            for row in by_engine(
                engine,
                tmp_path,
                {name: moved(cluster, back=back) for name, cluster in fleet.items()},
            )[0]
        }
        for back in (False, True)
    )

    assert len(there) > len(fleet)
    assert back == {key: (after, before) for key, (before, after) in there.items()}


@SPARK_IN_MATRIX
def test_a_run_leaves_nothing_to_do(engine: "AnyEngine", fleet: Fleet, tmp_path: Path) -> None:
    """Once the writes are done and read back, only rows that are left alone are reported."""
    ended = {name: cluster._replace(rows=dict(cluster.rows)) for name, cluster in fleet.items()}
    for row in by_engine(engine, tmp_path, fleet)[0]:
        want, have, known, memory = ended[row.cluster].rows[row.entity, row.key]
        if row.action not in LEFT_ALONE:
            value = row.target if row.action in WRITES else row.before
            have = None if value is None else (value, *((have or (None, True, None))[1:]))
            known = (value, "verified", None, None, None, "run", "at", LATER)
        ended[row.cluster].rows[row.entity, row.key] = (want, have, known, memory)

    differences, batches = by_engine(engine, tmp_path, ended)
    assert ({row.action for row in differences}, batches) == (LEFT_ALONE, [])
