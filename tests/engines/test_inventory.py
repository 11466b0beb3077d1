"""Inventories that are wrong: the error names the file and the line, on either engine."""

import json
from pathlib import Path
from time import monotonic

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quota_ops.model.errors import InvalidInput
from quota_ops.sql import embedded_effects
from quota_ops.sql.embedded_effects import EmbeddedEffects
from quota_ops.sql.inventory import INVENTORY_FILES, NotClients, find_inventory
from quota_ops.store.places.run_store import open_place
from tests.clock import PROMPTLY
from tests.engines.comparing import compare

LONG = "x" * 40_000
SESSIONS = ["session", pytest.param("connected", marks=pytest.mark.matrix)]
NO_RATE = "which is not a rate. Write a number, or nothing."
WRONG: tuple[tuple[str, str, str], ...] = (
    ("a.txt", "", "a.txt must end in one of .csv, .jsonl, .parquet"),
    ("a.csv", "", "a.csv:1: the inventory has no column user and no client-id"),
    ("a.csv", "user\na\n", "a.csv:1: the inventory has no column client-id"),
    (
        "a.csv",
        "user,client-id,producer_byterate\n",
        (
            "a.csv:1: 'producer_byterate' is not a column of an inventory. "
            "Did you mean producer_byte_rate?"
        ),
    ),
    ("a.csv", "user,client-id,user\n", "a.csv:1: a column is there twice: user, client-id, user"),
    (
        "a.csv",
        "user,client-id\na,b\na\n",
        "a.csv:3: the line has 1 cell, and the file has 2 columns.",
    ),
    (
        "a.csv",
        'user,client-id\n"a\nb",c\nd,e,f\n',
        "a.csv:4: the line has 3 cells, and the file has 2 columns.",
    ),
    ("a.csv", 'user,client-id\na,"b\n', "a.csv:2: the line is not CSV: unexpected end of data."),
    (
        "a.csv",
        "user,client-id\na,b\nc,d\na,b\n",
        "a.csv:4: user 'a' with client id 'b' is already listed at {folder}/a.csv:2. Remove one.",
    ),
    (
        "a.csv",
        "user,client-id\nANONYMOUS,\n,\n",
        (
            "a.csv:3: user 'ANONYMOUS' without a client id is already listed at {folder}/a.csv:2. "
            "Remove one."
        ),
    ),
    (
        "a.csv",
        f"user,client-id\na,b\n{LONG},b\n",
        "a.csv:3: user is 40,000 bytes long; Kafka allows 32,767.",
    ),
    (
        "a.csv",
        "user,client-id,request_percentage\na,b,\na,c,ten\n",
        "a.csv:3: request_percentage is 'ten', which is not a rate. Write a number, or nothing.",
    ),
    (
        "a.csv",
        "user,client-id,request_percentage\na,b,-1\n",
        "a.csv:2: request_percentage is '-1', which is not a rate. Write a number, or nothing.",
    ),
    (
        "a.jsonl",
        '{"user": "a", "client-id": "b"}\n{"user"\n',
        "a.jsonl:2: the line is not a JSON object.",
    ),
    ("a.jsonl", '{"user": "a"}', "a.jsonl:1: the inventory has no column client-id"),
    (
        "a.jsonl",
        '{"user": "a", "client-id": "b"}\n{"user": "a", "client-id": "b"}\n',
        (
            "a.jsonl:2: user 'a' with client id 'b' is already listed at {folder}/a.jsonl:1. "
            "Remove one."
        ),
    ),
    ("a.parquet", "no", "a.parquet cannot be read as a .parquet file"),
    (
        "a.csv",
        "user,client-id\na,b\nUser:a,b\n",
        "a.csv:3: user is 'User:a'. Write it without User:, as quotas do.",
    ),
    (
        "a.csv",
        "user,client-id\na ,b\n",
        "a.csv:2: user is 'a ', with a space before or after it. Remove the space.",
    ),
    (
        "a.csv",
        "user,client-id\na,b\nc,d\r\ne,f\n",
        "a.csv:3: the line ends with CRLF, and the first line with LF: use one of them.",
    ),
    (
        "a.csv",
        "user,client-id\r\na,b\n",
        "a.csv:2: the line ends with LF, and the first line with CRLF: use one of them.",
    ),
    (
        "a.jsonl",
        '{"user": "a", "client-id": "b"}\r{"user": "c", "client-id": "b"}\n',
        "a.jsonl:1: the line ends with CR: end it with LF or CRLF.",
    ),
    (
        "a.jsonl",
        '{"user": "a", "client-id": "b"}\n{"user": "c", "client-id": "d", "user": "e"}\n',
        "a.jsonl:2: 'user' is there twice. Remove one.",
    ),
    (
        "a.jsonl",
        f'{{"user": "a", "client-id": "b"}}\n{{"user": "{"x" * 2**20}", "client-id": "d"}}\n',
        "a.jsonl:2: the line is longer than 1,048,576 characters.",
    ),
    (
        "a.csv",
        "user;client-id\na;b\n",
        "a.csv:1: the columns are separated by semicolons. Save the file with commas.",
    ),
    (
        "a.csv",
        "sep=,\nuser,client-id\n",
        "a.csv:1: the first line is 'sep='. Remove it: the columns come first.",
    ),
    (
        "a.csv",
        "User, client_id\n",
        "a.csv:1: 'User' is not a column of an inventory. Did you mean user?",
    ),
    (
        "a.csv",
        "user, client_id\n",
        "a.csv:1: ' client_id' is not a column of an inventory. Did you mean client-id?",
    ),
    *(
        (
            "a.csv",
            f"user,client-id,request_percentage\na,b,5\na,c,{cell}\n",
            f"a.csv:3: request_percentage is '{cell}', {NO_RATE}",
        )
        for cell in ("1_000", "5d", "0x1p3", "\uff15")
    ),
)


@pytest.mark.parametrize(("name", "content", "message"), WRONG)
def test_an_inventory_that_is_wrong(name: str, content: str, message: str, tmp_path: Path) -> None:
    """The error names the file and the line, and nothing is written."""
    place = tmp_path / name
    place.write_text(content, "utf-8")

    with pytest.raises(InvalidInput) as error:
        compare(EmbeddedEffects(), place, {}, {})

    assert error.value.message == f"{tmp_path}/{message.format(folder=tmp_path)}"
    assert list(tmp_path.iterdir()) == [place]


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
@pytest.mark.parametrize("lines", ["user,client-id\né,a\n", "usér,client-id\n"])
def test_an_inventory_in_another_encoding(encoding: str, lines: str, tmp_path: Path) -> None:
    """The encoding is named, whichever line shows it."""
    place = tmp_path / "a.csv"
    place.write_text(lines, encoding)

    with pytest.raises(InvalidInput) as error:
        compare(EmbeddedEffects(), place, {}, {})

    assert error.value.message == f"{place} is not UTF-8 text"


def test_a_small_file_with_many_clients(tmp_path: Path) -> None:
    """A Parquet file of a few kB with too many clients is rejected soon, before all are decoded."""
    names = pa.DictionaryArray.from_arrays(pa.array(bytes(3_000_000), pa.int8()), ["a"])
    cells = pa.chunked_array([names] * 4)
    place = tmp_path / "clients.parquet"
    pq.write_table(pa.table({"user": cells, "client-id": cells}), place)
    assert place.stat().st_size < 1_000_000

    began = monotonic()
    with pytest.raises(InvalidInput) as error:
        compare(EmbeddedEffects(), place, {}, {})

    assert error.value.message == f"the inventory {place} lists more than 10,000,000 clients"
    assert monotonic() - began < 2 * PROMPTLY


@pytest.mark.parametrize(
    "limit",
    [
        ("MOST_CLIENTS", 2, "lists more than 2 clients"),
        ("MOST_BYTES", 20, "has {size} bytes; at most 20 are read"),
    ],
)
@pytest.mark.parametrize("suffix", INVENTORY_FILES)
def test_an_inventory_that_is_too_large(
    suffix: str, limit: tuple[str, int, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clients and bytes that are read are limited in each format."""
    name, most, why = limit
    monkeypatch.setattr(embedded_effects, name, most)
    place = tmp_path / f"clients{suffix}"
    clients = [{"user": name, "client-id": "app"} for name in "abc"]
    if suffix == ".csv":
        place.write_text("user,client-id\na,app\nb,app\nc,app\n", "utf-8")
    elif suffix == ".jsonl":
        place.write_text("".join(f"{json.dumps(client)}\n" for client in clients), "utf-8")
    else:
        pq.write_table(pa.Table.from_pylist(clients), place)

    with pytest.raises(InvalidInput) as error:
        compare(EmbeddedEffects(), place, {}, {})

    expected = f"the inventory {place} {why.format(size=f'{place.stat().st_size:,}')}"
    assert error.value.message == expected


def test_a_small_file_that_decodes_to_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compressed Parquet file is measured by what it decodes to, and not decoded."""
    place = tmp_path / "clients.parquet"
    clients = pa.table({"user": ["a" * 100_000], "client-id": ["b"]})
    pq.write_table(clients, place, compression="zstd", write_statistics=False)
    monkeypatch.setattr(embedded_effects, "MOST_BYTES", 50_000)
    assert place.stat().st_size < embedded_effects.MOST_BYTES

    with pytest.raises(InvalidInput) as error:
        compare(EmbeddedEffects(), place, {}, {})

    start = f"the inventory {place} decodes to 100,"
    assert error.value.message.startswith(start)


def test_a_small_file_whose_names_share_a_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Parquet file that stores what differs from the name before is rejected by what it lists."""
    place = tmp_path / "clients.parquet"
    names = pa.table({"user": [f"{'a' * 6_000}{number:05}" for number in range(20_000)]})
    pq.write_table(
        names.append_column("client-id", names["user"]),
        place,
        use_dictionary=False,
        compression="zstd",
        write_statistics=False,
        column_encoding=dict.fromkeys(("user", "client-id"), "DELTA_BYTE_ARRAY"),
    )
    monkeypatch.setattr(embedded_effects, "MOST_BYTES", 100_000_000)
    assert place.stat().st_size < 200_000

    with pytest.raises(InvalidInput) as error:
        compare(EmbeddedEffects(), place, {}, {})

    assert error.value.message.startswith(f"the inventory {place} decodes to 240,200,000 bytes")


def test_a_small_file_with_long_names(tmp_path: Path) -> None:
    """A Parquet file of a few kB whose dictionary has one very long name is rejected soon."""
    names = pa.DictionaryArray.from_arrays(pa.array(bytes(1_500_000), pa.int8()), ["a" * 60_000])
    place = tmp_path / "clients.parquet"
    pq.write_table(pa.table({"user": names, "client-id": names}), place)
    assert place.stat().st_size < 100_000

    began = monotonic()
    with pytest.raises(InvalidInput) as error:
        compare(EmbeddedEffects(), place, {}, {})

    assert error.value.message == (
        f"the inventory {place} decodes to 180,000,000,000 bytes; at most 2,147,483,648 are read"
    )
    assert monotonic() - began < 2 * PROMPTLY


def test_an_inventory_that_is_not_there(tmp_path: Path) -> None:
    """A missing file and an empty folder are named."""
    for place in (tmp_path / "a.csv", tmp_path):
        with pytest.raises(InvalidInput) as error:
            find_inventory(open_place(place))
        expected = f"the inventory {place} does not exist, or has no files"
        assert error.value.message == expected


@pytest.mark.parametrize("name_of_session", SESSIONS)
@pytest.mark.parametrize("number", [5, 8, 10, 11, 17, -3])
def test_spark_names_the_line_too(
    request: pytest.FixtureRequest, name_of_session: str, number: int, tmp_path: Path
) -> None:
    """A broken line, a client with two lines, a long name and a text for a rate end the job."""
    from quota_ops.sql.spark_effects import SparkEffects  # noqa: PLC0415 - a JVM

    name, content, message = WRONG[number]
    place = tmp_path / name
    place.write_text(content, "utf-8")

    with pytest.raises(NotClients) as error:
        compare(SparkEffects(request.getfixturevalue(name_of_session)), place, {}, {})

    assert error.value.message == f"{tmp_path}/{message.format(folder=tmp_path)}"
    assert list(tmp_path.iterdir()) == [place]
