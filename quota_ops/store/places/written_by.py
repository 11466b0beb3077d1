"""The version of quota-ops that wrote a stored file: a file of another one is not damaged."""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from typing import Any

from quota_ops.model.errors import InvalidInput

WRITTEN_BY = "written_by"
"""The field with the version in JSON, and in the metadata of Parquet.

That in run.json counts for all JSON of a run.
"""


OTHER_FORM = (
    "Nothing was changed. The file is not damaged: another version wrote it, or somebody changed "
    "it. Use the version that wrote it, or move the file elsewhere to do without it."
)


class OtherForm(InvalidInput):
    """A file that decodes and has not the form that this version writes: it is not damaged."""


class NewerFile(OtherForm):
    """A file of a newer version, which this one cannot read: it is not damaged."""


@cache
def own_version() -> str:
    """Return the version of this quota-ops."""
    return version("quota-ops")


def find_newer(values: object) -> str | None:
    """Return the version that wrote these JSON values, if it is newer than this one."""
    written = values.get(WRITTEN_BY) if isinstance(values, Mapping) else None
    is_newer = isinstance(written, str) and _order(written) > _order(own_version())
    return written if is_newer else None


def explain_newer(file: object, newer: str, why: str) -> NewerFile:
    """Return the error for a file of a newer version that this one cannot read."""
    return NewerFile(
        f"{file} was written by quota-ops {newer}, which is newer than this {own_version()}: {why}",
        f"Nothing was changed. Install quota-ops {newer} or newer; the file is not damaged.",
    )


def explain_form(file: object, why: str) -> OtherForm:
    """Return the error for a file that decodes, but not to what this version writes."""
    return OtherForm(
        f"{file} does not have the format of quota-ops {own_version()}: {why}", OTHER_FORM
    )


def stamp(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values with the version that writes them."""
    return {**values, WRITTEN_BY: own_version()}


def without_version(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values without the version that wrote them."""
    return {name: value for name, value in values.items() if name != WRITTEN_BY}


def _order(version_text: str) -> tuple[int, ...]:
    """Return the numbers of a version, for a comparison; those before any other character."""
    numbers: list[int] = []
    for part in version_text.split("."):
        if not (part.isascii() and part.isdigit()):
            break
        numbers.append(int(part))
    return tuple(numbers)
