"""The pinned jars of each Kafka version: one folder of `versions` is all that a version needs."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

from quota_ops.model.errors import InvalidInput

DEFAULT_VERSION = "4.3.1"
_VERSIONS = files("quota_ops.lab.kafka") / "versions"
IVY_SETTINGS = _VERSIONS / "ivysettings.xml"


@dataclass(frozen=True, kw_only=True)
class Pins:
    """A Kafka version's jars: what Ivy fetches, and the SHA-256 of each by its file name.

    `log_settings` is put on the broker's class path under its own name, which is how the
    version's logging binding finds it.
    """

    version: str
    ivy: Traversable
    checksums: Mapping[str, str]
    log_settings: Traversable


def pinned_versions() -> tuple[str, ...]:
    """Return the Kafka versions that have pins, the oldest first."""
    names = (each.name for each in _VERSIONS.iterdir() if each.is_dir())
    return tuple(sorted(names, key=lambda name: [int(part) for part in name.split(".")]))


def pins_of(version: str) -> Pins:
    """Return the pins of a Kafka version; raises InvalidInput for a version without any."""
    if version not in pinned_versions():
        known = ", ".join(pinned_versions())
        raise InvalidInput(f"There is no sandbox for Apache Kafka {version}.", f"Known: {known}")
    folder = _VERSIONS / version
    pairs = (line.split() for line in (folder / "sha256sums").read_text().splitlines())
    (log_settings,) = (each for each in folder.iterdir() if each.name.endswith(".properties"))
    return Pins(
        version=version,
        ivy=folder / "ivy.xml",
        checksums={name: digest for digest, name in pairs},
        log_settings=log_settings,
    )
