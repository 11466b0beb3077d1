"""The effects of a change on the clients of an inventory, on either engine."""

import csv
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quota_ops.model.plans.client_effects import INVENTORY, ClientEffectRow
from quota_ops.model.plans.effect import LimitChange
from quota_ops.model.quotas.entity import CLIENT_ID, USER, Entity
from quota_ops.model.quotas.quota import CLIENT_KEYS
from quota_ops.model.quotas.rows import Key
from quota_ops.sql import text
from quota_ops.sql.client_effects import EffectsEngine
from quota_ops.sql.embedded_effects import EmbeddedEffects
from tests.engines.comparing import by_client, compare
from tests.engines.effects_oracle import Stored, count_expected, find_expected
from tests.yaml_cases import load_yaml

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = ("a", "b", 'c, "d"', "é\n<default>")
PRODUCER = CLIENT_KEYS[0]
SHAPES = ((USER,), (CLIENT_ID,), (USER, CLIENT_ID))

entities = st.sampled_from(SHAPES).flatmap(
    lambda types: st.fixed_dictionaries(
        {kind: st.one_of(st.none(), st.sampled_from(NAMES)) for kind in types}
    ).map(Entity.of)
)
CASES: tuple[Any, ...] = tuple(
    pytest.param(case, id=case["case"])
    for case in load_yaml(
        (Path(__file__).parents[1] / "cases" / "effects" / "clients.yaml").read_text("utf-8")
    )
)


@pytest.fixture(
    scope="session",
    params=["embedded", "session", pytest.param("connected", marks=pytest.mark.matrix)],
)
def comparing(request: pytest.FixtureRequest) -> EffectsEngine:
    """Return each engine in turn."""
    if request.param == "embedded":
        return EmbeddedEffects()
    from quota_ops.sql.spark_effects import SparkEffects  # noqa: PLC0415 - a JVM

    session: SparkSession = request.getfixturevalue(request.param)
    return SparkEffects(session)


def stored_of(limits: Mapping[str, float]) -> dict[Key, float]:
    """Return the stored values of a case."""
    return {Key(entity, PRODUCER): float(value) for entity, value in limits.items()}


def words_of(row: ClientEffectRow) -> str:
    """Return a row in the form that the cases use."""
    sides = (
        " ".join(["none" if value is None else f"{value:g}", *([entity] if entity else [])])
        for value, entity in ((row.before, row.before_entity), (row.after, row.after_entity))
    )
    use = "" if row.used is None else f"; used {row.used:g}, left {row.head_room:g}"
    return f"{row.verdict}, {', '.join(sides)}{use}{' !' if row.throttled else ''}"


@pytest.mark.parametrize("case", CASES)
def test_the_effect_on_each_client(case: Any, tmp_path: Path) -> None:
    """Each client whose limit changes has its verdict, limits, deciding entities and use."""
    place = tmp_path / "[clients]*.csv"
    place.write_text(case["clients"], "utf-8", newline="")

    rows, _ = compare(EmbeddedEffects(), place, stored_of(case["before"]), stored_of(case["after"]))

    assert {f"{row.user} {row.client_id}": words_of(row) for row in rows} == case["says"]


limits = st.dictionaries(
    st.builds(Key, entities.map(str), st.sampled_from(CLIENT_KEYS)),
    st.sampled_from([1.0, 2.0, 3.0, 2.0**63]),
    max_size=12,
)
rate = st.none() | st.sampled_from([0.0, 1.0, 1.5])
inventories = st.lists(
    st.builds(
        INVENTORY.row,
        st.sampled_from([*NAMES, "ANONYMOUS", "nobody"]),
        st.sampled_from([*NAMES, "", "none"]),
        st.none() | st.sampled_from(["one", "two"]),
        rate,
        rate,
        rate,
        rate,
    ),
    min_size=1,
    max_size=12,
    unique_by=lambda one: one[:2],
)


def write_inventory(place: Path, clients: Sequence[Any]) -> None:
    """Write clients as a file of the format that its name has."""
    if place.suffix == ".parquet":
        columns = zip(INVENTORY.names, zip(*clients, strict=True), strict=True)
        types = [pa.string()] * 3 + [pa.float64()] * 4
        arrays = {
            name: pa.array(one, kind) for (name, one), kind in zip(columns, types, strict=True)
        }
        pq.write_table(pa.table(arrays), place)
    elif place.suffix == ".jsonl":
        lines = [json.dumps(dict(zip(INVENTORY.names, client, strict=True))) for client in clients]
        place.write_text("\n".join(lines), "utf-8")
    else:
        with place.open("w", encoding="utf-8", newline="") as out:
            csv.writer(out).writerows([INVENTORY.names, *clients])


@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    inventories,
    limits,
    limits,
    st.tuples(
        st.sampled_from([".csv", ".jsonl", ".parquet"]), st.sampled_from([text.CHANGED, text.EVERY])
    ),
)
def test_any_clients_and_limits(
    tmp_path: Path, clients: list[Any], before: Stored, after: Stored, form: tuple[str, str]
) -> None:
    """For any clients and limits, the SQL gives what the resolver gives for both sides."""
    suffix, wanted = form
    place = tmp_path / f"clients{suffix}"
    write_inventory(place, clients)

    rows, effects = compare(EmbeddedEffects(wanted), place, before, after)

    expected = list(find_expected(clients, before, after))
    changed = [row for row in expected if row.verdict != LimitChange.SAME]
    assert rows == sorted(changed if wanted == text.CHANGED else expected, key=by_client)
    assert Counter(effects.owners) == Counter(count_expected(clients, changed))


def test_every_level_on_both_engines(comparing: EffectsEngine, tmp_path: Path) -> None:
    """Either engine gives what the resolver gives, for every client and entity of a few names.

    The inventory is a folder of two files, beside files of Spark that are not part of it.
    """
    random = Random(5)  # noqa: S311 - the same every time
    names = [one for one in (None, *NAMES) if one is None or "\n" not in one]
    shapes = [
        *(Entity.of({USER: user}).text for user in names),
        *(Entity.of({CLIENT_ID: name}).text for name in names),
        *(Entity.of({USER: user, CLIENT_ID: name}).text for user in names for name in names),
    ]
    before, after = (
        {
            Key(entity, key): float(random.randint(1, 3))
            for share, key in enumerate(CLIENT_KEYS)
            for entity in random.sample(shapes, share * len(shapes) // len(CLIENT_KEYS))
        }
        for _ in range(2)
    )
    clients = [
        INVENTORY.row(user, one, random.choice([None, "x"]), *random.choices([None, 0.5, 1.5], k=4))
        for user in ("ANONYMOUS", "nobody", *filter(None, names))
        for one in ("", "none", *filter(None, names))
    ]
    folder = tmp_path / "inventory"
    folder.mkdir()
    (folder / "_SUCCESS").touch()
    write_inventory(folder / "a.csv", clients[:5])
    write_inventory(folder / "b.csv", clients[5:])

    rows, effects = compare(comparing, folder, before, after)

    expected = find_expected(clients, before, after)
    changed = (row for row in expected if row.verdict != LimitChange.SAME)
    assert rows == sorted(changed, key=by_client)
    assert {row.verdict for row in rows} > {LimitChange.CUT, LimitChange.RAISED}
    assert Counter(effects.owners) == Counter(count_expected(clients, rows))
