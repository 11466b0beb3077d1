"""Sessions on a Spark Connect server: a warm Spark, for which a job starts no JVM."""

import logging
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from quota_ops.model.errors import InvalidInput, MissingTool
from quota_ops.sql.job import EngineFailed

_log = logging.getLogger(__name__)
ADDRESS = "SPARK_REMOTE"
"""Spark's variable with the address of a server, for example sc://spark.example:15002."""
_RETRIES = 6
_LONGEST_WAIT = 4_000
"""Milliseconds. The waits are 50, 200, 800, 3200, 4000 and 4000; Spark's own take 10 minutes."""


_LOGIN = "The server's token is the parameter token of the address; in Airflow, the password."
_FORM = "It is sc://HOST:PORT, then /;NAME=VALUE for a parameter, with %2F for a / in VALUE."
_START = "Start the server, or correct the address."


class ServerUnreachable(EngineFailed):
    """The Spark Connect server does not respond."""


@contextmanager
def connect(address: str, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """Yield a new session on a Spark Connect server, and release it at the end.

    Sessions share the JVM of the server, but neither views nor `settings`, which can only be those
    of a session: memory and cores are the server's. Raises MissingTool without the packages that
    Connect needs; InvalidInput if Spark rejects the address, the token or a setting;
    ServerUnreachable if the server does not respond within 15 seconds.
    """
    server = hide_token(address)
    try:
        from pyspark.sql.connect.client.retries import DefaultPolicy  # optional
        from pyspark.sql.connect.session import SparkSession as Session  # optional
    except ImportError as error:
        raise MissingTool(
            f"a session on {server} needs a package that is missing: {error}",
            "Install quota-ops with the extra [spark-connect].",
        ) from error
    warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]", UserWarning)
    try:
        session = Session(address)
    except ValueError:  # PySparkValueError too; its text may contain the token
        raise InvalidInput(f"{server} is not an address of Spark Connect", _FORM) from None
    policy = DefaultPolicy(max_retries=_RETRIES, max_backoff=_LONGEST_WAIT)
    session.client.set_retry_policies([policy])
    try:
        _check(session, server)
        for name, value in settings.items():
            _set(session, name, value)
        # The methods are the same, and the annotations of quota-ops are those of a JVM's session.
        yield cast("SparkSession", session)
    except PySparkException as error:
        raise EngineFailed(f"Spark failed at {server}: {explain_failure(error)}") from error
    finally:
        session.stop()


def hide_token(address: str) -> str:
    """Return the address of a server without its parameters, which may contain a token."""
    return address.partition(";")[0].rstrip("/")


def _check(session: Any, server: str) -> None:
    """Ask the server for its version, which is the first request to it."""
    try:
        _log.info("Spark %s at %s, by Spark Connect", session.version, server)
    except PySparkException as error:
        why = explain_failure(error)
        if "StatusCode.UNAUTHENTICATED" in str(error):
            raise InvalidInput(f"{server} rejected the login: {why}", _LOGIN) from error
        message = f"the Spark Connect server {server} does not respond: {why}"
        raise ServerUnreachable(message, _START) from error


def _set(session: Any, name: str, value: str) -> None:
    try:
        session.conf.set(name, value)
    except PySparkException as error:
        raise InvalidInput(
            f"a session cannot set {name}: {explain_failure(error)}",
            "Set it where the Spark Connect server is started, or remove it here.",
        ) from error


def explain_failure(error: Exception) -> str:
    """Return why Spark failed, in one line: the details of an error of gRPC, or its first lines."""
    text = str(error).strip()
    if found := re.search(r'^\s*details = "(.*)"$', text, re.MULTILINE):
        return found[1]
    # The first line of an error in Java names the call, the second one the error.
    return " ".join(text.splitlines()[:2])
