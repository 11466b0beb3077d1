"""The seam below everything that is kept: bytes at places, whatever keeps them.

Nothing above it knows a path, a file or a folder. Another kind of store is one more class with the
methods of `Store`, and a line in `run_store.open_place`.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple, Protocol


class Entry(NamedTuple):
    """Something directly below a place."""

    name: str
    is_folder: bool
    """Whether it has entries of its own; a link counts as what it leads to."""
    is_own: bool
    """Whether it is a file or a folder itself: a local folder may also have links and pipes."""


class Store(Protocol):
    """What keeps bytes by key: names with a slash between each two.

    Reads and deletes raise OSError with a `strerror`, and a read of what is not there raises
    FileNotFoundError. All else raises InvalidInput that names the place and says what to do.
    """

    def uri(self, key: str) -> str:
        """Return the address under which people and other programs find a place."""
        ...

    def read(self, key: str) -> bytes:
        """Return all bytes of a place."""
        ...

    def open(self, key: str) -> BinaryIO:
        """Open the bytes of a place, to read a part of them."""
        ...

    def create(self, key: str, content: bytes) -> bool:
        """Put bytes where nothing is; False, and nothing done, when another writer was first.

        When this returns, not even a power cut takes them back.
        """
        ...

    def replace(self, key: str, content: bytes, *, durable: bool = False) -> None:
        """Put bytes over what is there: a reader sees the old or the new, never a part.

        A power cut may take back both; where it is `durable`, it leaves one of them.
        """
        ...

    def exists(self, key: str) -> bool:
        """Whether something is at a place, or below it."""
        ...

    def list(self, key: str, after: str = "") -> Sequence[Entry]:
        """List what is directly below a place, in order of the names, those `after` a name alone.

        Nothing where there is no such place. What cannot be listed raises: unreadable is not empty.
        """
        ...

    def size(self, key: str) -> int:
        """Return the bytes of a place and of all below it; 0 of what is not there."""
        ...

    def delete(self, key: str) -> None:
        """Remove a file, unless it is gone already."""
        ...

    def delete_folder(self, key: str) -> None:
        """Remove a folder that has nothing in it, where folders are things of their own."""
        ...

    def prepare(self, key: str) -> None:
        """Make a folder, private to its owner, to write in, where folders are things of their own.

        Raises InvalidInput as writing does.
        """
        ...

    def lock(self, key: str) -> AbstractContextManager[None]:
        """Let other processes see by `is_locked` that this one is alive, as far as a store can."""
        ...

    def is_locked(self, key: str) -> bool | None:
        """Whether a living process has locked a place; None where this store cannot tell."""
        ...

    def machine(self) -> str | None:
        """Name the machine whose locks this store sees; None where it sees none."""
        ...

    def resolve(self, key: str) -> str:
        """Return the one key of a place that may have several, as by a link."""
        ...

    def find_checkout(self, key: str) -> str | None:
        """Return the Git checkout in which a place lies, which a clean-up could take away."""
        ...


@dataclass(frozen=True, slots=True)
class Place:
    """A key of a store, and what can be done there; the methods are those of `Store`."""

    store: Store
    key: str

    def __truediv__(self, name: str) -> "Place":
        """Return the place of a name directly below; ValueError for what is not one name."""
        if "/" in name or name in {"", ".", ".."}:
            raise ValueError(f"{name!r} is not a name")
        return Place(self.store, f"{self.key}/{name}" if self.key else name)

    def __str__(self) -> str:
        """Return the address, for people and for other programs."""
        return self.store.uri(self.key)

    @property
    def uri(self) -> str:
        """The address under which another program, such as Spark, reads it."""
        return self.store.uri(self.key)

    @property
    def name(self) -> str:
        """The last name of the key; empty for a whole store."""
        return self.key.rpartition("/")[2]

    @property
    def parent(self) -> "Place":
        """The place above; a whole store is its own."""
        return Place(self.store, self.key.rpartition("/")[0])

    def read(self) -> bytes:
        """Return all bytes; OSError where they cannot be read."""
        return self.store.read(self.key)

    def open(self) -> BinaryIO:
        """Open it to read a part; OSError where it cannot be read."""
        return self.store.open(self.key)

    def create(self, content: bytes) -> bool:
        """Put bytes here once; False when another writer was first."""
        return self.store.create(self.key, content)

    def replace(self, content: bytes, *, durable: bool = False) -> None:
        """Put bytes over what is here, whole or not at all."""
        self.store.replace(self.key, content, durable=durable)

    def exists(self) -> bool:
        """Whether something is here; InvalidInput when nobody may look."""
        return self.store.exists(self.key)

    def entries(self) -> tuple[Entry, ...]:
        """What is directly below, by name; nothing where there is no such place."""
        return tuple(self.store.list(self.key))

    def list(self, after: str = "") -> tuple[str, ...]:
        """The names of what is directly below, in order, those `after` a name alone."""
        return tuple(one.name for one in self.store.list(self.key, after))

    def folders(self) -> "tuple[Place, ...]":
        """The places directly below that have places below them, by name."""
        return tuple(self / one.name for one in self.entries() if one.is_folder)

    def size(self) -> int:
        """The bytes here and below."""
        return self.store.size(self.key)

    def delete(self) -> None:
        """Remove the file here; for pruning, and for what has been copied. OSError if it stays."""
        self.store.delete(self.key)

    def delete_folder(self) -> None:
        """Remove the folder here; OSError when something is in it."""
        self.store.delete_folder(self.key)

    def prepare(self) -> None:
        """Make it ready to be written below; InvalidInput where it cannot be."""
        self.store.prepare(self.key)

    def lock(self) -> AbstractContextManager[None]:
        """Show other processes, while a block runs, that this one is alive."""
        return self.store.lock(self.key)

    def is_locked(self) -> bool | None:
        """Whether a living process shows that it is; None where nobody can tell."""
        return self.store.is_locked(self.key)

    def resolved(self) -> "Place":
        """The same place under the one key that it has, however it was spelled."""
        return Place(self.store, self.store.resolve(self.key))

    def find_checkout(self) -> str | None:
        """The Git checkout that it lies in; None where it lies in none."""
        return self.store.find_checkout(self.key)
