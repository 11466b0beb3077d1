"""The client of an object store, from the library obstore, and its errors as text.

The library's own text contains the response of the store, which may repeat an access key id or a
signature: only the error code and the status are taken from it.
"""

import os
import re
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from quota_ops.model.errors import InvalidInput, MissingTool

if TYPE_CHECKING:
    from obstore.auth.boto3 import Boto3CredentialProvider
    from obstore.store import AzureStore, GCSStore, S3Store

    Client = AzureStore | GCSStore | S3Store

PATIENCE = timedelta(seconds=30)
"""How long a request is retried; a create starts over for as long again."""
MOST_RETRIES = 8

_CODE = re.compile(r"(?:<Code>\s*|\(code: )(\w+)(?:\s*</Code>|\))")
_STATUS = re.compile(r"status code: ([0-9]{3})")
_METADATA = ("/latest/api/token", "/latest/meta-data/", "/metadata/identity", "metadata.google")
"""Parts of the addresses where a machine of a cloud gets its credentials."""
_TRANSIENT = frozenset({408, 409, 412, 429, 500, 502, 503, 504})

_NO_BUCKET = (
    "the bucket does not exist",
    "Create the bucket, or correct --run-store or QUOTA_OPS_RUN_STORE.",
)
_WRONG_CREDENTIALS = (
    "the store rejects the credentials",
    "Correct them in the environment: {variables}, for example.",
)
_EXPIRED = ("the credentials have expired", "Renew them and run the command again.")
_NO_CREDENTIALS = (
    "no credentials were found",
    "Set them in the environment: {variables}, for example.",
)
_DENIED = (
    "these credentials lack the permission",
    "Grant them permission to list and read objects there, and to write and delete in a run store.",
)
_CLOCK = ("the clock of this machine is wrong", "Synchronize the clock of this machine.")
_BUSY = ("the store is overloaded", "Run the command again later.")
_UNREACHABLE = (
    "the store cannot be reached",
    "Check the endpoint and the network, and run the command again.",
)


class _Cloud(NamedTuple):
    """How the variables of a cloud begin, and those with credentials."""

    prefix: str
    credentials: str


_CONFLICTING = 409
_CONFLICT = (
    "Run the command again later. If the response stays the same, a lease, a retention rule or the "
    "deletion of the bucket keeps objects there from being written: remove that, or move the run "
    "store."
)
_OTHER = (
    "Run the command again later. If the response stays the same, look it up in the documentation "
    "of the store."
)
_CLOUDS = {
    "s3": _Cloud("AWS", "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
    "gs": _Cloud("GOOGLE", "GOOGLE_APPLICATION_CREDENTIALS"),
}
_AZURE = _Cloud("AZURE", "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY")
"""The cloud of every scheme that `_CLOUDS` does not have."""
_BY_CODE = {
    "NoSuchBucket": _NO_BUCKET,
    "ContainerNotFound": _NO_BUCKET,
    "InvalidBucketName": ("the name of the bucket is not valid", _NO_BUCKET[1]),
    "InvalidAccessKeyId": _WRONG_CREDENTIALS,
    "SignatureDoesNotMatch": _WRONG_CREDENTIALS,
    "AuthenticationFailed": _WRONG_CREDENTIALS,
    "InvalidToken": _WRONG_CREDENTIALS,
    "ExpiredToken": _EXPIRED,
    "ExpiredTokenException": _EXPIRED,
    "RequestTimeTooSkewed": _CLOCK,
    "AccessDenied": _DENIED,
    "SlowDown": _BUSY,
    "ServerBusy": _BUSY,
}
_BY_STATUS = {401: _WRONG_CREDENTIALS, 403: _DENIED, 429: _BUSY, 503: _BUSY}


@lru_cache
def open_client(bucket: str) -> "Client":
    """Return the client of a bucket, one for each process; it does not survive a fork.

    Sends no request. Reads the credentials from the environment. Raises MissingTool without
    obstore, and InvalidInput if the address or a variable is not valid.
    """
    try:
        from obstore.store import from_url  # optional, and 100 ms
    except ImportError:
        raise MissingTool(
            f"{bucket} is an object store, which needs the library obstore",
            "Install quota-ops with the extra [objects].",
        ) from None
    cloud = _find_cloud(bucket)
    profile = os.environ.get("AWS_PROFILE") if cloud.prefix == "AWS" else None
    try:
        return from_url(  # type: ignore[call-overload,no-any-return] # as the address begins
            bucket,
            **({"credential_provider": _provide_profile(profile)} if profile else {}),
            client_options={
                "connect_timeout": timedelta(seconds=5),
                "timeout": PATIENCE,
                # With client options, the library ignores this variable.
                "allow_http": os.environ.get(f"{cloud.prefix}_ALLOW_HTTP", "").lower() == "true",
            },
            retry_config={
                "max_retries": MOST_RETRIES,
                "retry_timeout": PATIENCE,
                "backoff": {"max_backoff": timedelta(seconds=3)},
            },
        )
    except client_errors():
        raise InvalidInput(
            f"{bucket} cannot be opened: the address or a variable of the environment is not valid",
            "Use an address such as s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX,"
            f" and set {cloud.credentials}, for example.",
        ) from None


def _provide_profile(profile: str) -> "Boto3CredentialProvider":
    """Return the provider of credentials of an AWS profile: keys, a role, SSO or a process."""
    try:
        from botocore.exceptions import BotoCoreError  # optional, and slow
        from obstore.auth.boto3 import Boto3CredentialProvider  # as above
    except ImportError:
        raise MissingTool(
            f"AWS_PROFILE is {profile}, and reading profiles needs the library boto3",
            "Install quota-ops with the extra [aws], or unset AWS_PROFILE.",
        ) from None
    try:
        return Boto3CredentialProvider()
    except (BotoCoreError, ValueError) as error:
        why = str(error).partition(": ")[0]  # the rest may be the output of a program
        raise InvalidInput(
            f"the credentials of AWS_PROFILE {profile} cannot be read: {why}",
            "Correct AWS_PROFILE or the profile; if it uses SSO, run: aws sso login",
        ) from None


def client_errors() -> tuple[type[Exception], ...]:
    """Return the types of error that a client raises."""
    from obstore.exceptions import BaseError  # optional

    return (BaseError, FileNotFoundError, ValueError)


def why_failed(error: Exception) -> str | None:
    """Return the error of a request; None if an object does not exist."""
    found = _find(error)
    return None if found is None else found[0]


def remedy(error: Exception, bucket: str) -> str | None:
    """Return how to fix it; None if nothing is known."""
    found = _find(error)
    if found is None or found[1] is None:
        return None
    return found[1].format(variables=_find_cloud(bucket).credentials)


def is_denied(error: Exception) -> bool:
    """Return whether the credentials lack the permission."""
    return _find(error) == _DENIED


def is_transient(error: Exception) -> bool:
    """Return whether a request may succeed when it is sent again."""
    status = _status(error)
    return status is None if _find(error) == _UNREACHABLE else status in _TRANSIENT


def _find_cloud(bucket: str) -> _Cloud:
    return _CLOUDS.get(bucket.partition(":")[0], _AZURE)


def _find(error: Exception) -> tuple[str, str | None] | None:
    if isinstance(error, ValueError):
        return "its name is not valid", "Use names without control characters."
    text, status = str(error), _status(error)
    code = _CODE.search(text)
    if any(part in text for part in _METADATA):
        return _NO_CREDENTIALS
    if code and code[1] in _BY_CODE:
        return _BY_CODE[code[1]]
    if isinstance(error, FileNotFoundError):
        return None
    if status is None and "HTTP error" in text:
        return _UNREACHABLE
    responded = (
        f"the store responds {status or type(error).__name__}{f' {code[1]}' if code else ''}"
    )
    return _BY_STATUS.get(status or 0, (responded, _CONFLICT if status == _CONFLICTING else _OTHER))


def _status(error: Exception) -> int | None:
    found = _STATUS.search(str(error))
    return int(found[1]) if found else None
