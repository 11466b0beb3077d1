"""The address of a place in an object store: `s3://BUCKET/KEY`."""

from typing import NamedTuple

from quota_ops.model.errors import InvalidInput

_SCHEMES = ("s3", "gs", "az", "abfs", "abfss")


class Address(NamedTuple):
    """A bucket and the key of a place in it, which is empty for the whole bucket."""

    bucket: str
    """With its scheme, `s3://bucket`."""
    key: str


def parse_address(text: str) -> Address | None:
    """Return the address in a text; None for a path.

    Raises InvalidInput if it is neither. The error does not repeat what may be a secret.
    """
    scheme, is_address, rest = text.partition("://")
    if not is_address:
        if scheme.partition(":/")[0] in _SCHEMES and ":/" in scheme:
            raise InvalidInput(
                f"{scheme} is neither a folder nor the address of a run store",
                "An address has two slashes after the colon, for example s3://BUCKET/PREFIX.",
            )
        return None
    bucket, _, key = rest.rstrip("/").partition("/")
    if scheme not in _SCHEMES:
        raise InvalidInput(
            f"{scheme}:// is not the address of a run store",
            f"Use a local folder, or an address that begins with {', '.join(_SCHEMES)}.",
        )
    if why := _find_mistake(bucket, key):
        form = (
            f"the run store address {scheme}://... does not have the form {scheme}://BUCKET/PREFIX"
        )
        raise InvalidInput(
            f"{form}: {why}",
            "Use a bucket and the names of folders. Credentials belong in the environment.",
        )
    return Address(f"{scheme}://{bucket}", key)


def _find_mistake(bucket: str, key: str) -> str | None:
    names = key.split("/") if key else []
    if not bucket:
        return "it has no bucket"
    if ":" in bucket:
        return "there is a colon in the name of the bucket"
    if not key.isprintable():
        return "it contains a control character"
    if "" in names:
        return "there are two slashes in a row"
    return "a folder cannot be named . or .." if {".", ".."} & {*names} else None
