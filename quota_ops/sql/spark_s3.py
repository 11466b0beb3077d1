"""Hadoop's connector for S3, by which Spark reads a run store in a bucket; pyspark has none.

`python -m quota_ops.sql.spark_s3` fetches it, once per version of pyspark, into the environment of
the Python that has pyspark. A Spark that runs on this machine then uses it.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from quota_ops.jvm.pinned_jars import PinnedJars, read_checksums
from quota_ops.model.errors import MissingTool, QuotaOpsError
from quota_ops.sql.spark_archive import find_spark
from quota_ops.store.places.place import Place

_PINS = files("quota_ops.sql") / "s3a"
COMMAND = "python -m quota_ops.sql.spark_s3"


def find_connector() -> tuple[Path, ...]:
    """Return the jars of the connector. Raises MissingTool if one is missing or damaged."""
    pins, folder = _find_pins(), _find_folder()
    if pins.find_wrong(folder):
        raise MissingTool(
            f"{pins.title}, by which Spark reads s3://, is not installed in {folder}",
            f"Run {COMMAND}",
        )
    return tuple(folder / name for name in sorted(pins.checksums))


def fetch_connector() -> None:
    """Fetch the jars of the connector from Maven Central, unless they are there.

    Raises MissingTool without Java or pyspark, and if they cannot be fetched.
    """
    pins, folder = _find_pins(), _find_folder()
    if not pins.find_wrong(folder):
        return
    sys.stderr.write(f"fetching {pins.title}, once: {len(pins.checksums)} jars, 13 MB ...\n")
    pins.install(folder)


def list_settings(folders: Sequence[Place], given: Mapping[str, object]) -> dict[str, str]:
    """Return the settings by which a Spark on this machine reads and writes run folders on S3.

    Empty for other folders. They name the same server and credentials as those of the run store:
    the variables AWS_ENDPOINT_URL, AWS_REGION and so on. `given` are the settings of the user: if
    they name jars, they bring the connector. Raises MissingTool if it is not installed.
    """
    if not any(folder.uri.startswith("s3://") for folder in folders):
        return {}
    settings = {
        "spark.hadoop.fs.s3a.aws.credentials.provider": (
            "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
        ),
        "spark.hadoop.fs.s3a.endpoint.region": _find("AWS_REGION", "AWS_DEFAULT_REGION"),
    }
    if endpoint := _find("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"):
        settings |= {
            "spark.hadoop.fs.s3a.endpoint": endpoint,
            "spark.hadoop.fs.s3a.path.style.access": "true",
        }
    if not {"spark.jars", "spark.jars.packages"} & given.keys():
        settings["spark.jars"] = ",".join(map(str, find_connector()))
    return {name: value for name, value in settings.items() if value}


def _find(*variables: str) -> str:
    return next((os.environ[name] for name in variables if os.environ.get(name)), "")


def _find_pins() -> PinnedJars:
    """Return the pins for the Hadoop of the installed pyspark.

    Raises MissingTool if there are none.
    """
    (jar,) = (find_spark() / "jars").glob("hadoop-client-api-*.jar")
    version = jar.stem.rpartition("-")[2]
    folder = _PINS / version
    if not folder.is_dir():
        known = ", ".join(sorted(pin.name for pin in _PINS.iterdir()))
        raise MissingTool(
            f"quota-ops has no list of jars for the S3 connector of Hadoop {version}, only {known}",
            "Add the jars of hadoop-aws to the setting spark.jars.",
        )
    return PinnedJars(
        title=f"the S3 connector of Hadoop {version}",
        ivy=folder / "ivy.xml",
        checksums=read_checksums(folder),
    )


def _find_folder() -> Path:
    return Path(sys.prefix) / "share" / "quota-ops" / "s3a"


def main() -> int:
    """Fetch the connector."""
    try:
        fetch_connector()
    except (QuotaOpsError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return getattr(error, "exit_code", 2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
