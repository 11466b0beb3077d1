"""The interface of everything that is stored: bytes by key, whatever stores them.

No code above this interface uses a path, a file or a folder. Another kind of store is one more
class with the methods of `Store`, and a line in `run_store.open_place`.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import BinaryIO, NamedTuple, Protocol

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


class Store(Protocol):
    """A store of bytes by key; a key is names separated by slashes.

    Reads, deletes and `modified` raise OSError with a `strerror`; a read of a missing file raises
    FileNotFoundError. Every other method raises InvalidInput with the place and a remedy.
    """

    def uri(self, key: str) -> str:
        """Return the address of a key for people and for other programs, such as Spark."""
        ...

    def read(self, key: str) -> bytes:
        """Return the bytes of a file."""
        ...

    def open(self, key: str) -> BinaryIO:
        """Open a file to read a part of it."""
        ...

    def create(self, key: str, content: bytes) -> bool:
        """Create a file; return False, and change nothing, if another writer created it first.

        After it returns, the file survives a power cut.
        """
        ...

    def replace(self, key: str, content: bytes, *, durable: bool = False) -> None:
        """Create or overwrite a file: a reader gets the old bytes or the new, never a part.

        A power cut may lose both, unless the write is `durable`.
        """
        ...

    def move(self, key: str, to: str) -> None:
        """Move a file over another one; the bytes do not pass through this process."""
        ...

    def exists(self, key: str) -> bool:
        """Return whether a file is at a key; for a folder, a store may return either."""
        ...

    def modified(self, key: str) -> datetime:
        """Return when a file was written, by the store's clock, to a second or better."""
        ...

    def list(self, key: str, after: str = "") -> Sequence[Entry]:
        """Return the entries directly below a key whose names sort later than `after`, by name.

        Empty if the folder does not exist. Raises if it cannot be listed.
        """
        ...

    def walk(self, key: str) -> Sequence[Leaf]:
        """Return the files below a key at every depth, by path; an object store lists them once.

        Empty if the folder does not exist. Raises if it cannot be listed.
        """
        ...

    def delete(self, key: str) -> None:
        """Delete a file; do nothing if it does not exist."""
        ...

    def delete_folder(self, key: str) -> None:
        """Delete an empty folder, if folders exist on their own in this store."""
        ...

    def prepare(self, key: str) -> None:
        """Create the folder of a run store, if folders exist on their own here.

        Only its owner can read it. Raises InvalidInput if this process cannot write there, or if
        the store would create a file twice.
        """
        ...

    def watch(self, key: str) -> None:
        """Notice from now on that the folder of a run store vanishes, if it exists.

        Writes below it then raise InvalidInput: it was moved, and must not begin again here.
        """
        ...

    def lock(self, key: str) -> AbstractContextManager[None]:
        """Lock a file as long as the block runs, so that `is_locked` shows this process as alive.

        A store without locks does nothing.
        """
        ...

    def is_locked(self, key: str) -> bool | None:
        """Return whether a living process has locked a file; None if that is unknown."""
        ...

    def machine(self) -> str | None:
        """Return the id of the machine whose locks this store sees; None if it sees none."""
        ...

    def resolve(self, key: str) -> str:
        """Return the canonical key of a place that has several, for example through a link."""
        ...

    def find_checkout(self, key: str) -> str | None:
        """Return the Git checkout that contains a key; None if there is none."""
        ...


@dataclass(frozen=True, slots=True)
class Place:
    """A key of a store, with the methods of `Store` for this key."""

    store: Store
    key: str

    def __truediv__(self, name: str) -> "Place":
        """Return the place of a name directly below. Raises ValueError if it is not one name."""
        if "/" in name or name in {"", ".", ".."}:
            raise ValueError(f"{name!r} is not a name")
        return Place(self.store, f"{self.key}/{name}" if self.key else name)

    def __str__(self) -> str:
        """Return the address, for people and for other programs."""
        return self.store.uri(self.key)

    @property
    def uri(self) -> str:
        """The address by which another program, such as Spark, reads it."""
        return self.store.uri(self.key)

    @property
    def name(self) -> str:
        """The last name of the key; empty for a whole store."""
        return self.key.rpartition("/")[2]

    @property
    def parent(self) -> "Place":
        """The parent folder; the root of a store is its own parent."""
        return Place(self.store, self.key.rpartition("/")[0])

    def read(self) -> bytes:
        """Return the bytes of the file. Raises OSError if it cannot be read."""
        return self.store.read(self.key)

    def open(self) -> BinaryIO:
        """Open the file to read a part of it. Raises OSError if it cannot be read."""
        return self.store.open(self.key)

    def create(self, content: bytes) -> bool:
        """Create the file; return False if another writer created it first."""
        return self.store.create(self.key, content)

    def replace(self, content: bytes, *, durable: bool = False) -> None:
        """Create or overwrite the file, completely or not at all."""
        self.store.replace(self.key, content, durable=durable)

    def move(self, to: "Place") -> None:
        """Move the file over another one of the same store."""
        self.store.move(self.key, to.key)

    def exists(self) -> bool:
        """Return whether the file exists. Raises InvalidInput if this process cannot find out."""
        return self.store.exists(self.key)

    def modified(self) -> datetime:
        """Return when the file was written, by the store's clock.

        Raises OSError if it is unknown.
        """
        return self.store.modified(self.key)

    def entries(self) -> tuple[Entry, ...]:
        """Return the entries directly below, by name; empty if the folder does not exist."""
        return tuple(self.store.list(self.key))

    def list(self, after: str = "") -> tuple[str, ...]:
        """Return the names directly below that sort later than `after`, in order."""
        return tuple(entry.name for entry in self.store.list(self.key, after))

    def folders(self) -> "tuple[Place, ...]":
        """Return the folders directly below, by name."""
        return tuple(self / entry.name for entry in self.entries() if entry.is_folder)

    def walk(self) -> tuple[Leaf, ...]:
        """Return the files below at every depth, by path; empty if the folder does not exist."""
        return tuple(self.store.walk(self.key))

    def below(self, path: str) -> "Place":
        """Return the place of a path of names, such as that of a `Leaf`."""
        return Place(self.store, f"{self.key}/{path}" if self.key else path)

    def delete(self) -> None:
        """Delete the file, to prune it or after copying it. Raises OSError if that fails."""
        self.store.delete(self.key)

    def delete_folder(self) -> None:
        """Delete the folder. Raises OSError if it is not empty."""
        self.store.delete_folder(self.key)

    def prepare(self) -> None:
        """Create the folder, if one is needed. Raises InvalidInput if it cannot be used."""
        self.store.prepare(self.key)

    def watch(self) -> None:
        """Refuse writes of this process below the folder as soon as it has been moved away."""
        self.store.watch(self.key)

    def lock(self) -> AbstractContextManager[None]:
        """Show other processes, as long as a block runs, that this one is alive."""
        return self.store.lock(self.key)

    def is_locked(self) -> bool | None:
        """Return whether a living process has locked the file; None if that is unknown."""
        return self.store.is_locked(self.key)

    def resolved(self) -> "Place":
        """Return the same place with its canonical key."""
        return Place(self.store, self.store.resolve(self.key))

    def find_checkout(self) -> str | None:
        """Return the Git checkout that contains it; None if there is none."""
        return self.store.find_checkout(self.key)


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
