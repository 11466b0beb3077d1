"""The settings and the jars with which Spark on this machine reads a bucket."""

import re
import sys
from pathlib import Path

import pytest

from quota_ops.model.errors import MissingTool
from quota_ops.sql import spark_s3
from quota_ops.sql.spark_s3 import fetch_connector, find_connector, list_settings
from quota_ops.store.places.run_store import open_place

RUN = "s3://runs/quota-ops/runs/demo/run"
S3A = "spark.hadoop.fs.s3a"


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    for name in (*names, "AWS_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)


def test_a_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark uses the server and region of the run store, and the fetched jars of the connector."""
    fetch_connector()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://s3.example")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")

    settings = list_settings([open_place(RUN)], {})

    jars = settings.pop("spark.jars").split(",")
    assert jars == list(map(str, find_connector()))
    provider = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
    assert settings == {
        f"{S3A}.aws.credentials.provider": provider,
        f"{S3A}.endpoint": "https://s3.example",
        f"{S3A}.endpoint.region": "eu-west-1",
        f"{S3A}.path.style.access": "true",
    }


def test_jars_of_the_user() -> None:
    """A user who names jars brings the connector; Amazon's S3 needs no address."""
    settings = list_settings([open_place(RUN)], {"spark.jars": "mine.jar"})
    assert settings.keys() == {f"{S3A}.aws.credentials.provider"}


def test_a_folder(tmp_path: Path) -> None:
    """A local run store needs neither settings nor jars."""
    assert list_settings([open_place(tmp_path)], {}) == {}


def test_without_the_connector(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The error has the command that fetches the connector."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with pytest.raises(MissingTool) as error:
        list_settings([open_place(RUN)], {})
    assert str(error.value) == (
        "the S3 connector of Hadoop 3.5.0, by which Spark reads s3://, is not installed in "
        f"{tmp_path}/share/quota-ops/s3a\n  Run python -m quota_ops.sql.spark_s3"
    )


def test_another_hadoop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """For a pyspark without pins, the error names the setting that takes the user's jars."""
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "hadoop-client-api-3.4.2.jar").touch()
    monkeypatch.setattr(spark_s3, "find_spark", lambda: tmp_path)
    with pytest.raises(MissingTool) as error:
        find_connector()
    assert str(error.value) == (
        "quota-ops has no list of jars for the S3 connector of Hadoop 3.4.2, only 3.5.0\n"
        "  Add the jars of hadoop-aws to the setting spark.jars."
    )


def test_the_pins_are_whole() -> None:
    """Every jar that Ivy fetches has a SHA-256; the SDK's bundle is not among them."""
    pins = spark_s3._find_pins()  # noqa: SLF001 - the pins of the installed pyspark
    named = re.findall(r'name="(.+)" rev="(.+)" ', pins.ivy.read_text())
    assert {f"{name}-{revision}.jar" for name, revision in named} == pins.checksums.keys()
    assert {len(digest) for digest in pins.checksums.values()} == {64}
    assert not any(name.startswith(("bundle", "netty")) for name in pins.checksums)
