"""Many clients at once: every row equals the result for one client, on either engine."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quota_ops.model.errors import InvalidInput
from quota_ops.model.quotas.entity import CLIENT_ID, USER, Entity
from quota_ops.model.quotas.quota import CLIENT_KEYS
from quota_ops.model.quotas.rows import StoredQuota
from quota_ops.precedence.resolution import Limits
from quota_ops.precedence.tables import RESOLVED
from quota_ops.sql.embedded import EmbeddedEngine
from quota_ops.sql.resolve import Resolver, find_resolved_rows, resolve_clients
from quota_ops.sql.spark_archive import SMALL_JVM, driver_options
from quota_ops.store.places import parquet
from tests.engines.client_files import WRITERS, Client, write_csv, write_jsonl

NAMES = ("a", "b", 'c, "d"', "é\n<default>")
PRODUCER = CLIENT_KEYS[0]
SHAPES = ((USER,), (CLIENT_ID,), (USER, CLIENT_ID))

entities = st.sampled_from(SHAPES).flatmap(
    lambda types: st.fixed_dictionaries(
        {kind: st.one_of(st.none(), st.sampled_from(NAMES)) for kind in types}
    ).map(Entity.of)
)
stored_quotas = st.dictionaries(
    st.tuples(entities, st.sampled_from(CLIENT_KEYS)), st.integers(1, 99).map(float)
).map(lambda values: [StoredQuota(*place, value) for place, value in values.items()])
clients_asked = st.lists(
    st.tuples(
        st.one_of(st.none(), st.sampled_from(NAMES)),
        st.one_of(st.none(), st.just(""), st.sampled_from(NAMES)),
    ),
    min_size=1,
    max_size=4,
)


def expected(stored: Sequence[StoredQuota], clients: Sequence[Client]) -> list[tuple[object, ...]]:
    """Return the rows of RESOLVED, by the resolver of one client."""
    limits = Limits(stored)
    rows = []
    for (user, client_id), key in product(clients, CLIENT_KEYS):
        found = limits.resolve(key, user=user, client_id=client_id)
        held: tuple[object, ...] = (None,) * 4
        if (rung := found.applied) is not None:
            held = (rung.value, rung.level.name, rung.level.rank, rung.entity.text)
        rows.append((*found.names.values(), key, *held, *found.shared_by.values()))
    return sorted(rows)


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(stored_quotas, clients_asked)
def test_a_row_is_what_one_client_is_told(
    tmp_path: Path, stored: list[StoredQuota], clients: list[Client]
) -> None:
    """For any stored quotas and any client, the SQL gives the result of the resolver."""
    place = tmp_path / "clients.jsonl"
    write_jsonl(place, clients)

    assert find_resolved_rows(EmbeddedEngine(), stored, place) == expected(stored, clients)


def everything() -> tuple[list[StoredQuota], list[Client]]:
    """Return every client of a few names, and for each key a different part of all entities."""
    random = Random(4)  # noqa: S311 - the same every time
    names = (None, *NAMES)
    shapes = [
        *(Entity.of({USER: user}) for user in names),
        *(Entity.of({CLIENT_ID: client}) for client in names),
        *(Entity.of({USER: user, CLIENT_ID: client}) for user, client in product(names, names)),
    ]
    stored = [
        StoredQuota(entity, key, float(random.randint(1, 99)))
        for share, key in enumerate(CLIENT_KEYS)
        for entity in random.sample(shapes, share * len(shapes) // len(CLIENT_KEYS))
    ]
    return stored, [*product((*NAMES, "nobody", None), (*NAMES, "none", "", None))]


@pytest.mark.parametrize("kind", WRITERS)
def test_clients_come_in_three_formats(engine: Resolver, kind: str, tmp_path: Path) -> None:
    """The same clients give the same rows from each format, on either engine."""
    stored, clients = everything()
    place = tmp_path / f"clients.{kind}"
    WRITERS[kind](place, clients)

    assert find_resolved_rows(engine, stored, place) == expected(stored, clients)


def test_the_table_keeps_its_columns(tmp_path: Path) -> None:
    """A Parquet file has the columns and types of RESOLVED, even if no quota is stored."""
    write_csv(tmp_path / "clients.csv", [("a", "b")])
    place = tmp_path / "resolved.parquet"

    resolve_clients(EmbeddedEngine(), [], tmp_path / "clients.csv", place)

    rows = parquet.conform(RESOLVED, pq.read_table(place))
    assert sorted(parquet.to_rows(rows)) == expected([], [("a", "b")])


@pytest.mark.matrix
def test_what_spark_submit_runs(tmp_path: Path) -> None:
    """The Spark job reads a snapshot and a file of clients and writes the table."""
    stored = [StoredQuota(Entity.of({USER: "a"}), PRODUCER, 5.0)]
    row = {"entity": {USER: "a"}, "key": PRODUCER, "value": 5.0}
    (tmp_path / "snapshot.jsonl").write_text(json.dumps(row), "utf-8")
    write_jsonl(tmp_path / "clients.jsonl", [("a", "b")])
    job = (sys.executable, "-m", "spark_jobs.resolve_quotas")
    options = (
        "--master local[1] --conf spark.ui.enabled=false --conf spark.sql.shuffle.partitions=1 "
        f"--driver-java-options '{SMALL_JVM} {driver_options()}' pyspark-shell"
    )
    environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_SUBMIT_ARGS": options}

    subprocess.run(
        [
            *job,
            *(str(tmp_path / name) for name in ("snapshot.jsonl", "clients.jsonl", "o.parquet")),
        ],
        env=environment,
        cwd=Path(__file__).parents[2],
        check=True,
        timeout=200,
    )

    rows = parquet.conform(RESOLVED, pq.read_table(tmp_path / "o.parquet"))
    assert sorted(parquet.to_rows(rows)) == expected(stored, [("a", "b")])


def test_a_snapshot_that_is_not_there(tmp_path: Path) -> None:
    """The Spark job exits as for invalid input, with an error and no traceback."""
    missing = tmp_path / "snapshot.jsonl"
    ended = subprocess.run(
        [sys.executable, "-m", "spark_jobs.resolve_quotas", missing, "clients.csv", "limits.csv"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    said = f"{missing} cannot be read: No such file or directory\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", said)


@pytest.mark.parametrize("name", ["clients.csv", "clients.parquet"])
def test_clients_that_are_not_there(name: str, tmp_path: Path) -> None:
    """A missing file of clients is an error that names it."""
    with pytest.raises(InvalidInput) as error:
        find_resolved_rows(EmbeddedEngine(), [], tmp_path / name)
    assert error.value.message == f"{tmp_path / name} does not exist."


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.txt", "", "a.txt must end in one of .csv, .jsonl, .parquet."),
        ("a.csv", "user\nalice\n", "a.csv has no column client-id."),
        ("a.csv", "", "a.csv has no column user and no client-id."),
        ("a.jsonl", '{"client-id": "a"}', "a.jsonl has no column user."),
        ("a.jsonl", "user", "a.jsonl cannot be read as a .jsonl file."),
        ("a.parquet", "user", "a.parquet cannot be read as a Parquet file:"),
        (
            "a.csv",
            "user,client-id\na,b,c\n",
            "a.csv cannot be resolved: Invalid Input Error: CSV Error on Line: 2",
        ),
        ("a.jsonl", '{"user": "a", "client-id": "b"}\n{"user"', "a.jsonl cannot be resolved:"),
    ],
)
def test_a_file_that_is_no_list_of_clients(
    name: str, text: str, message: str, tmp_path: Path
) -> None:
    """A file of another format, without a column, or damaged, is an error that names it."""
    place = tmp_path / name
    place.write_text(text, encoding="utf-8")

    with pytest.raises(InvalidInput) as error:
        find_resolved_rows(EmbeddedEngine(), [], place)

    assert error.value.message.startswith(str(tmp_path / message))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "user,client-id\na,b,c\n"),
        ("a.jsonl", '{"user": "a", "client-id": "b"}\n{"user"'),
    ],
)
def test_spark_skips_no_broken_row(spark: Resolver, name: str, text: str, tmp_path: Path) -> None:
    """A damaged row also ends the job on Spark, which by default would read it as null."""
    place = tmp_path / name
    place.write_text(text, encoding="utf-8")

    with pytest.raises(InvalidInput) as error:
        resolve_clients(spark, [], place, tmp_path / "o.parquet")

    output = tmp_path / "o.parquet"
    assert error.value.message == f"Spark cannot resolve {place}, or cannot write {output}."


def test_a_destination_of_another_format(tmp_path: Path) -> None:
    """An unsupported destination is rejected before anything is read."""
    place = tmp_path / "a.xlsx"

    with pytest.raises(InvalidInput, match=r"must end in one of \.parquet, \.csv\.$"):
        resolve_clients(EmbeddedEngine(), [], tmp_path / "missing.csv", place)


@pytest.mark.parametrize("name", ["clients.csv", "link.csv", "hard.csv", "folder.csv"])
def test_a_destination_that_is_the_clients(name: str, tmp_path: Path) -> None:
    """A destination that would replace the file of clients is rejected, also through a link."""
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    clients = folder / "clients.csv"
    write_csv(clients, [("a", "b")])
    before = clients.read_bytes()
    (folder / "link.csv").symlink_to(clients)
    (folder / "hard.csv").hardlink_to(clients)
    place = folder if name == folder.name else folder / name

    with pytest.raises(InvalidInput) as error:
        resolve_clients(EmbeddedEngine(), [], clients, place)

    assert error.value.message == f"Writing {place} would replace {clients}."
    assert clients.read_bytes() == before
