"""Connections: the content of a file, where a name is looked up, and that secrets stay inside."""

import pickle
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from quota_ops.kafka.client.tls import build_tls_context
from quota_ops.kafka.connection import Connection, find_connection
from quota_ops.kafka.connection.settings import SETTINGS, map_to_confluent, map_to_kafka_python
from quota_ops.model.errors import InvalidInput
from tests.yaml_cases import load_yaml

CASES = [
    case
    for file in ("files.yaml", "java.yaml")
    for case in load_yaml(
        (Path(__file__).parents[1] / "cases/connection" / file).read_text("utf-8")
    )
]
SECRET = "s3cr3t"
LOGIN = f"""\
bootstrap.servers=kafka-1:9094
security.protocol=sasl_ssl
sasl.mechanism=SCRAM-SHA-256
sasl.username=svc-quota
sasl.password={SECRET}
"""


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUOTA_OPS_CONNECTIONS", str(tmp_path / "connections"))
    monkeypatch.delenv("QUOTA_OPS_CONNECTION_DEMO", raising=False)


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Write files and their folders."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_what_a_file_says(case: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection file gives its settings, or an error with the line and never a value."""
    write(tmp_path, case.get("files", {}))
    for name, value in case.get("env", {}).items():
        monkeypatch.setenv(name, value)
    expected = load_yaml(yaml.safe_dump(case).replace("${FOLDER}", str(tmp_path)))
    said = told(case["text"], tmp_path)
    assert said == {part: expected[part] for part in ("properties", "error") if part in expected}
    assert SECRET not in said.get("error", "")


def told(text: str, folder: Path) -> dict[str, Any]:
    """Return what a user learns about a file: its settings or its error."""
    try:
        found = Connection.parse(text, name="demo", source="demo.properties", folder=folder)
    except InvalidInput as error:
        return {"error": str(error)}
    return {"properties": found.properties}


def test_no_secret_leaves_a_connection_unasked() -> None:
    """Neither repr nor str shows a value, and a connection cannot be pickled."""
    connection = Connection.parse(LOGIN, name="demo", source="demo.properties")
    assert repr(connection) == "Connection(name='demo', source='demo.properties')"
    assert str(connection) == repr(connection)
    assert SECRET not in repr(connection.lines)
    with pytest.raises(TypeError, match="contains secrets"):
        pickle.dumps(connection)
    with pytest.raises(AttributeError):
        connection.name = "other"  # type: ignore[misc]


def test_only_references_are_remembered_as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """The origin of each value is kept, without the text around the reference."""
    monkeypatch.setenv("REST", "rest")
    text = LOGIN.replace(SECRET, f"{SECRET}${{env:REST}}") + "client.id=plain$unfinished\n"
    connection = Connection.parse(text, name="demo", source="demo.properties")
    assert connection.properties["sasl.password"] == f"{SECRET}rest"
    assert {name: line.reference for name, line in connection.lines.items() if line.reference} == {
        "sasl.password": "${env:REST}"
    }
    assert connection.properties["client.id"] == "plain$unfinished"


def test_each_client_gets_its_own_names() -> None:
    """confluent-kafka gets the settings unchanged, kafka-python gets its own names and types."""
    connection = Connection.parse(LOGIN, name="demo", source="demo.properties")
    assert map_to_confluent(connection.properties) == {
        "bootstrap.servers": "kafka-1:9094",
        "client.id": "quota-ops",
        "security.protocol": "sasl_ssl",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": "svc-quota",
        "sasl.password": SECRET,
    }
    assert map_to_kafka_python(connection.properties) == {
        "client_id": "quota-ops",
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": "svc-quota",
        "sasl_plain_password": SECRET,
    }


def test_kafka_python_knows_its_names() -> None:
    """No setting is dropped, although kafka-python ignores keyword arguments it does not know."""
    from kafka.net.manager import KafkaConnectionManager  # noqa: PLC0415 - slow to import

    options = map_to_kafka_python(dict.fromkeys(SETTINGS, ""))
    assert options.keys() - KafkaConnectionManager.DEFAULT_CONFIG.keys() == set()
    by_name = [name for name, one in SETTINGS.items() if one.layer in {None, "sasl", "password"}]
    assert len(options) == len(by_name) - len(["bootstrap.servers"])


def test_a_certificate_is_asked_for_and_its_host_checked() -> None:
    """The host name check can be turned off; the check of the issuer cannot."""
    name = "ssl.endpoint.identification.algorithm"
    for settings, checked in (({}, True), ({name: "https"}, True), ({name: "none"}, False)):
        context = build_tls_context(settings)
        assert (context.check_hostname, context.verify_mode) == (checked, ssl.CERT_REQUIRED)


def test_the_principal_is_told_as_far_as_it_is_known(tmp_path: Path) -> None:
    """A login gives its user, no login gives ANONYMOUS, a certificate is named by its file."""
    write(tmp_path, {"a.crt": "", "a.key": ""})

    def principal(text: str) -> str:
        return Connection.parse(text, name="demo", source="-", folder=tmp_path).principal

    tls = "bootstrap.servers=kafka-1:9093\nsecurity.protocol=ssl\n"
    assert principal(LOGIN) == "User:svc-quota"
    assert principal(tls) == "User:ANONYMOUS"
    assert principal(f"{tls}ssl.certificate.location=a.crt\nssl.key.location=a.key\n") == (
        f"User:<the subject of {tmp_path / 'a.crt'}>"
    )


def test_a_name_is_looked_up_in_three_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An option wins over the variable, and the variable over the folder."""
    write(
        tmp_path,
        {
            "given.properties": "bootstrap.servers=given:1",
            "variable.properties": "bootstrap.servers=variable:2",
            "connections/eu-west.1.properties": "bootstrap.servers=folder:3",
        },
    )

    def found(file: Path | None = None) -> str:
        return find_connection("eu-west.1", file=file).properties["bootstrap.servers"]

    assert found() == "folder:3"
    monkeypatch.setenv("QUOTA_OPS_CONNECTION_EU_WEST_1", str(tmp_path / "variable.properties"))
    assert found() == "variable:2"
    assert found(tmp_path / "given.properties") == "given:1"


def test_a_source_is_told_as_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A place is the path as the user gave it, with the line; a missing setting is named."""
    write(tmp_path, {"demo.properties": "\nbootstrap.servers=kafka-1:9092"})
    monkeypatch.chdir(tmp_path)
    connection = find_connection("demo", file=Path("demo.properties"))
    assert connection.place("bootstrap.servers") == "demo.properties:2"
    assert connection.place("sasl.username") == "not set in demo.properties"


def test_a_missing_connection_names_the_places_and_an_example(tmp_path: Path) -> None:
    """A user without a connection sees the three places, what to write, and which command does.

    The connections that exist are named.
    """
    with pytest.raises(InvalidInput, match=r"\n  Write that file, for example:\n"):
        find_connection("prod")
    existing = tmp_path / "connections" / "demo.properties"
    write(tmp_path, {"connections/demo.properties": ""})
    with pytest.raises(InvalidInput, match=r"prod.properties  does not exist; there are demo"):
        find_connection("prod")
    existing.unlink()
    with pytest.raises(InvalidInput) as error:
        find_connection("demo")
    assert (
        str(error.value)
        == f"""\
there is no connection demo. Searched:
    --connection FILE  not given
    $QUOTA_OPS_CONNECTION_DEMO  not set
    {tmp_path}/connections/demo.properties  does not exist
  Run `quota-ops sandbox start`: it starts a Kafka on this machine and writes that file.
  For your own cluster, write the file yourself, for example:
    bootstrap.servers=kafka-1:9094,kafka-2:9094
    security.protocol=sasl_ssl
    sasl.mechanism=SCRAM-SHA-512
    sasl.username=svc-quota
    sasl.password=${{env:KAFKA_PASSWORD}}
    ssl.ca.location=/etc/kafka/ca.pem"""
    )


def test_a_named_file_that_cannot_be_read_is_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that was named explicitly and is missing or unreadable is an error of its own."""
    absent = tmp_path / "absent.properties"
    with pytest.raises(InvalidInput) as error:
        find_connection("demo", file=absent)
    assert str(error.value) == (
        f"connection demo: cannot read {absent}, given as --connection: No such file or directory."
    )
    monkeypatch.setenv("QUOTA_OPS_CONNECTION_DEMO", str(tmp_path))
    with pytest.raises(InvalidInput) as error:
        find_connection("demo")
    assert str(error.value) == (
        f"connection demo: cannot read {tmp_path}, named by $QUOTA_OPS_CONNECTION_DEMO: "
        "Is a directory."
    )
    absent.write_bytes(b"sasl.password=\xff")
    with pytest.raises(InvalidInput, match=rf"^connection demo: {absent} is not UTF-8\.$"):
        find_connection("demo", file=absent)


@pytest.mark.parametrize("name", ["", "../x", "a/b", "a b", ".demo", "-demo", "ä\n", "x" * 201])
def test_a_name_cannot_lead_elsewhere(name: str) -> None:
    """A connection's name comes from Git, so it must not be a path."""
    with pytest.raises(InvalidInput, match="is not a connection name"):
        find_connection(name)


def test_settings_from_elsewhere_are_taken_as_they_are() -> None:
    """A password from an Airflow connection keeps its spaces, and no reference in it is read."""
    connection = Connection.of(
        {
            "bootstrap.servers": "kafka-1:9094",
            "security.protocol": "sasl_plaintext",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "svc-quota",
            "sasl.password": " ${env:HOME} ",
        },
        name="demo",
        source="elsewhere",
    )
    assert connection.properties["sasl.password"] == " ${env:HOME} "


def test_settings_from_elsewhere_are_held_to_the_same_rules() -> None:
    """An unknown security setting is rejected wherever it comes from."""
    with pytest.raises(
        InvalidInput, match=r"^elsewhere: ssl\.trust is an unknown security setting"
    ):
        Connection.of({"bootstrap.servers": "a:1", "ssl.trust": "x"}, name="d", source="elsewhere")
