"""Lost responses, conflicts and wrong settings of an object store."""

from collections.abc import Callable
from http.client import HTTPConnection
from uuid import uuid4

import pytest

from quota_ops.model.errors import InvalidInput
from quota_ops.store.places import object_client, ping
from quota_ops.store.places.object_client import open_client
from quota_ops.store.places.run_store import RunStore, find_run_store, open_place
from quota_ops.store.run.order import take_number
from tests.objects.proxy import LOST, Faults
from tests.objects.server import S3Server

CONFLICT, BUSY = 409, 503


@pytest.mark.parametrize(
    "plan", [[LOST], [LOST, LOST], [CONFLICT], [CONFLICT, LOST, BUSY], [BUSY, BUSY]]
)
def test_a_create_survives_faults(plan: list[int], faults: Faults, address: str) -> None:
    """A create succeeds despite lost responses, conflicts without an object, or a busy store."""
    place = open_place(address) / "ledger" / "00000001.parquet"
    faults.plan += plan

    assert place.create(b"mine")
    assert faults.plan == []
    assert not place.create(b"theirs")
    assert place.read() == b"mine"


def test_no_number_is_lost_or_taken_twice(faults: Faults, address: str) -> None:
    """Although the responses to puts are lost, each writer gets the next number."""
    folder = open_place(address) / "sequence"

    for number in range(1, 5):
        faults.plan.append(LOST)
        assert take_number(folder, b"the same bytes of every writer") == number
    assert len(folder.walk()) == number


FORM = "the run store address s3://... does not have the form s3://BUCKET/PREFIX"
WRITE = "cannot be written: "
LIST = "cannot be listed: "
ENVIRONMENT = "in the environment: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, for example."
NO_BUCKET = "the bucket does not exist"
DENIED = "these credentials lack the permission"
WRONG = "the store rejects the credentials"
UNREACHABLE = "the store cannot be reached"


@pytest.mark.parametrize(
    ("settings", "why", "remedy"),
    [
        (
            {"address": "s3://no-such/prefix"},
            LIST + NO_BUCKET,
            "Create the bucket, or correct --run-store or",
        ),
        ({"AWS_SECRET_ACCESS_KEY": "wrong"}, LIST + WRONG, f"Correct them {ENVIRONMENT}"),
        ({"AWS_ACCESS_KEY_ID": "nobody"}, LIST + WRONG, f"Correct them {ENVIRONMENT}"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, LIST + UNREACHABLE, "Check the endpoint and"),
    ],
    ids=["bucket", "secret", "key", "endpoint"],
)
def test_a_run_does_not_begin(
    settings: dict[str, str], why: str, remedy: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that cannot be used raises an error with its cause and a remedy, and no secret."""
    monkeypatch.setattr(object_client, "MOST_RETRIES", 1)
    address = settings.pop("address", address)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    open_client.cache_clear()

    with pytest.raises(InvalidInput) as refused:
        find_run_store(address).new_run("demo")

    assert refused.value.message == f"the run store {address} {why}"
    cause = refused.value.__cause__
    assert isinstance(cause, InvalidInput)
    assert str(cause.remedy).startswith(remedy)
    assert "secret" not in str(cause)


def test_a_store_without_write_permission_is_read(
    address: str, login: Callable[[str], None]
) -> None:
    """A reader sees what a writer stored, and its own write is refused before anything is left."""
    place = open_place(address) / "ledger" / "1"
    place.create(b"1")
    login("reader")

    assert place.read() == b"1"
    for write in (place.create, (place.parent / "2").create, place.replace):
        with pytest.raises(InvalidInput) as refused:
            write(b"2")
        assert refused.value.message.endswith(WRITE + DENIED)
    with pytest.raises(OSError, match=DENIED):
        place.delete()
    assert place.parent.list() == ("1",)


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("http://bucket/quotas", "http:// is not the address of a run store"),
        ("s3://", f"{FORM}: it has no bucket\n"),
        ("s3://key:secret@bucket/a", f"{FORM}: there is a colon in the name of the bucket\n"),
        ("s3:/bucket/a", "s3:/bucket/a is neither a folder nor the address of a run store"),
        ("s3://bucket/.", f"{FORM}: a folder cannot be named . or ..\n"),
        ("s3://bucket/a\nb", f"{FORM}: it contains a control character\n"),
        ("s3://bucket/a/../b", f"{FORM}: a folder cannot be named . or ..\n"),
        ("s3://bucket//b", f"{FORM}: there are two slashes in a row\n"),
    ],
)
def test_what_is_no_address(address: str, why: str) -> None:
    """Another scheme, credentials and steps up are refused, and a secret is not repeated."""
    with pytest.raises(InvalidInput) as refused:
        find_run_store(address)

    assert str(refused.value).startswith(why)
    assert "secret" not in str(refused.value)


def test_addresses_of_one_bucket(address: str) -> None:
    """A slash at the end is the same store; a prefix is another."""
    store = RunStore(open_place(address))

    assert RunStore(open_place(f"{address}/")) == store != RunStore(open_place(f"{address}/a"))
    assert str(open_place(f"{address}/a/b").parent) == f"{address}/a"
    assert find_run_store(address).runs() == ()
    assert not open_place(f"{address}/{uuid4()}").exists()


@pytest.mark.parametrize(
    ("refusal", "why", "remedy"),
    [
        ((403, "RequestTimeTooSkewed"), "the clock of this machine is wrong", "Synchronize the"),
        ((400, "ExpiredToken"), "the credentials have expired", "Renew them and run the command"),
        ((403, "AccessDenied"), DENIED, "Grant them permission to list and read objects"),
        ((501, "NotImplemented"), "the store responds 501 NotImplemented", "Run the command again"),
        (
            (409, "OperationAborted"),
            "the store responds 409 OperationAborted",
            "Run the command again later. If the response stays the same, a lease, a retention",
        ),
    ],
    ids=["clock", "expired", "denied", "unknown", "conflict"],
)
def test_a_store_that_refuses(
    refusal: tuple[int, str], why: str, remedy: str, faults: Faults, address: str
) -> None:
    """An error code of S3 becomes a cause and a remedy; the rest of the response is not shown."""
    faults.refusal = refusal

    with pytest.raises(InvalidInput) as refused:
        find_run_store(address).new_run("demo")

    cause = refused.value.__cause__
    assert isinstance(cause, InvalidInput)
    assert cause.message == f"{address} cannot be listed: {why}"
    assert str(cause.remedy).startswith(remedy)
    assert cause.remedy is None or refused.value.remedy == cause.remedy
    assert "AKIASECRET" not in f"{refused.value}{cause}"


def test_a_bucket_with_versioning(
    s3: S3Server, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a bucket that keeps old versions, a file is created once, and a deleted one is gone."""
    del address
    s3.create_bucket("versioned")
    body = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
    connection = HTTPConnection(s3.endpoint.removeprefix("http://"))
    connection.request("PUT", "/versioned?versioning", body)
    assert connection.getresponse().status == 200
    connection.close()
    store = RunStore(open_place("s3://versioned/quota-ops"))
    monkeypatch.setattr(ping, "NUMBERS", 2)

    store.new_run("demo")
    assert ping.ping_store(store).exit_code == 0
    place = store.root / "ledger" / "1"
    assert (place.create(b"1"), place.create(b"2"), place.read()) == (True, False, b"1")
    place.replace(b"3")
    assert (place.read(), place.parent.list()) == (b"3", ("1",))
    place.delete()
    assert (place.exists(), place.parent.list(), place.create(b"4")) == (False, (), True)
