"""The interface of everything that is stored: bytes by key, whatever stores them.

No code above this interface uses a path, a file or a folder. Another kind of store is one more
class of places, and a line in `run_store.open_place`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import BinaryIO, NamedTuple, Self

from quota_ops.model.errors import InvalidInput


class Entry(NamedTuple):
    """A file or folder directly below a place."""

    name: str
    is_folder: bool
    """Whether it can have entries below it; a link counts as its target."""
    is_own: bool
    """False for a link, a pipe or a device, which only a local folder can have."""


class Leaf(NamedTuple):
    """A file at any depth below a place, or a local folder without entries."""

    path: str
    """The names from the place down to it, separated by slashes."""
    size: int
    """In bytes."""
    is_folder: bool
    is_own: bool
    """False for a link, a pipe or a device, which only a local folder can have."""


@dataclass(frozen=True, slots=True)
class Place(ABC):
    """A key of a store, which is names separated by slashes, and what is there.

    Reads, deletes and `modified` raise OSError with a `strerror`; a read of a missing file raises
    FileNotFoundError. Every other method raises InvalidInput with the place and a remedy.
    """

    key: str

    def at(self, key: str) -> Self:
        """Return the place of another key of the same store."""
        return replace(self, key=key)

    def __truediv__(self, name: str) -> Self:
        """Return the place of a name directly below. Raises ValueError if it is not one name."""
        if "/" in name or name in {"", ".", ".."}:
            raise ValueError(f"{name!r} is not a name")
        return self.below(name)

    def below(self, path: str) -> Self:
        """Return the place of a path of names, such as that of a `Leaf`."""
        return self.at(f"{self.key}/{path}" if self.key else path)

    @property
    @abstractmethod
    def uri(self) -> str:
        """The address for people and for other programs, such as Spark."""

    def __str__(self) -> str:
        """Return the address."""
        return self.uri

    @property
    def name(self) -> str:
        """The last name of the key; empty for a whole store."""
        return self.key.rpartition("/")[2]

    @property
    def parent(self) -> Self:
        """The parent folder; the root of a store is its own parent."""
        return self.at(self.key.rpartition("/")[0])

    @abstractmethod
    def read(self) -> bytes:
        """Return the bytes of the file."""

    @abstractmethod
    def open(self) -> BinaryIO:
        """Open the file to read a part of it."""

    @abstractmethod
    def create(self, content: bytes) -> bool:
        """Create the file; return False, and change nothing, if another writer created it first.

        After it returns, the file survives a power cut.
        """

    @abstractmethod
    def replace(self, content: bytes, *, durable: bool = False) -> None:
        """Create or overwrite the file: a reader gets the old bytes or the new, never a part.

        A power cut may lose both, unless the write is `durable`.
        """

    @abstractmethod
    def exists(self) -> bool:
        """Return whether the file exists; for a folder, a store may return either."""

    @abstractmethod
    def modified(self) -> datetime:
        """Return when the file was written, by the store's clock, to a second or better."""

    @abstractmethod
    def entries(self, after: str = "") -> tuple[Entry, ...]:
        """Return the entries directly below whose names sort later than `after`, by name.

        Empty if the folder does not exist. Raises if it cannot be listed.
        """

    def list(self, after: str = "") -> tuple[str, ...]:
        """Return the names of `entries`."""
        return tuple(entry.name for entry in self.entries(after))

    def folders(self) -> tuple[Self, ...]:
        """Return the folders directly below, by name."""
        return tuple(self / entry.name for entry in self.entries() if entry.is_folder)

    @abstractmethod
    def walk(self) -> tuple[Leaf, ...]:
        """Return the files below at every depth, by path; an object store lists them once.

        Empty if the folder does not exist. Raises if it cannot be listed.
        """

    @abstractmethod
    def delete(self) -> None:
        """Delete the file; do nothing if it does not exist."""

    @abstractmethod
    def delete_folder(self) -> None:
        """Delete the empty folder, if folders exist on their own in this store."""

    @abstractmethod
    def prepare(self) -> None:
        """Create the folder of a run store, if folders exist on their own here.

        Only its owner can read it. Raises InvalidInput if this process cannot write there, or if
        the store would create a file twice.
        """

    @abstractmethod
    def watch(self) -> None:
        """Notice from now on that the folder of a run store vanishes, if it exists.

        Writes below it then raise InvalidInput: it was moved, and must not begin again here.
        """

    @abstractmethod
    def resolved(self) -> Self:
        """Return the same place with its canonical key, for example without links."""

    @abstractmethod
    def find_checkout(self) -> str | None:
        """Return the Git checkout that contains it; None if there is none."""


def explain_lost(place: "Place | str") -> InvalidInput:
    """Return the error for a file that a store has confirmed and does not have."""
    return InvalidInput(
        f"{place} is missing although the store confirmed the write",
        "Use a store that keeps what it confirms, and no proxy that replies for it.",
    )


_TOLERANCE = 10.0
"""Seconds by which clocks may differ: more than a write takes, and than a store rounds times."""


def measure_lead(written: Place) -> float:
    """Return how many seconds this machine's clock is ahead of the store's; negative if behind.

    `written` is a file that was written a moment ago. Returns 0 within `_TOLERANCE`, and if the
    store does not show the time.
    """
    now = datetime.now(UTC)
    try:
        lead = (now - written.modified()).total_seconds()
    except OSError:
        return 0.0
    return lead if abs(lead) > _TOLERANCE else 0.0
