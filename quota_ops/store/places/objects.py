"""An object store as a store: S3, Google Cloud Storage or Azure, with the library obstore.

A file is created by a conditional put, which fails if the object exists. Each new object carries a
random id of its writer in its metadata: if the response to a put is lost, the retry fails because
of the writer's own object, and the id shows that.
"""

import errno
import io
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, BinaryIO, Self
from uuid import uuid4

from quota_ops.model.errors import Denied, InvalidInput
from quota_ops.store.places.object_client import (
    PATIENCE,
    client_errors,
    is_denied,
    is_transient,
    open_client,
    remedy,
    why_failed,
)
from quota_ops.store.places.place import Entry, Leaf, Place, explain_lost

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

    from quota_ops.store.places.object_client import Client

PART = 256 * 1024
"""Bytes that a read of a part fetches in one request."""
_WRITER = "writer"
_TEST = "created_once.txt"
_PURPOSE = b"quota-ops can create this object only once: another attempt must fail.\n"


@dataclass(frozen=True, slots=True)
class ObjectPlace(Place):
    """An object of a bucket or container; there are no folders, no links and no locks."""

    bucket: str
    """Its address, for example `s3://bucket`, without a slash at the end."""

    @property
    def uri(self) -> str:
        """The address of the object."""
        return f"{self.bucket}/{self.key}" if self.key else self.bucket

    @property
    def _client(self) -> "Client":
        return open_client(self.bucket)

    def read(self) -> bytes:
        """Return the bytes of an object."""
        with self._reading():
            return bytes(self._client.get(self.key).bytes())

    def open(self) -> BinaryIO:
        """Open an object; a small one is read completely, a large one in parts."""
        with self._reading():
            size = self._client.head(self.key)["size"]
        if size <= PART:
            return io.BytesIO(self.read())
        return io.BufferedReader(PartedFile(self.read_part, size), PART)

    def read_part(self, start: int, end: int) -> bytes:
        """Return the bytes of an object from `start` to before `end`."""
        with self._reading():
            return bytes(self._client.get_range(self.key, start=start, end=end))

    def create(self, content: bytes) -> bool:
        """Create an object by a conditional put, and retry it if its outcome is unknown.

        A put may end with a conflict although no object exists, fail after it has created the
        object, or be confirmed by a proxy although the store refused or lost it: the metadata of
        the object, if there is one, shows which. Raises InvalidInput if a confirmed object is
        missing.
        """
        writer, deadline = uuid4().hex, time.monotonic() + PATIENCE.total_seconds()
        pause = 0.05
        while True:
            failure = self._put_once(content, writer)
            if failure is not None and not is_transient(failure):
                raise self._refused(failure, "written")
            found = self._writer()
            if found is not None:
                return found == writer
            if failure is None:
                raise explain_lost(self.uri)
            if time.monotonic() > deadline:
                raise self._refused(failure, "written")
            time.sleep(pause)
            pause = min(2 * pause, 5.0)

    def replace(self, content: bytes, *, durable: bool = False) -> None:
        """Write an object, which is always durable."""
        del durable
        with self._refusing("written"):
            self._client.put(self.key, content, use_multipart=False)

    def exists(self) -> bool:
        """Return whether an object exists."""
        with self._refusing("read"):
            try:
                self._client.head(self.key)
            except FileNotFoundError:
                return False
        return True

    def modified(self) -> datetime:
        """Return the time of an object."""
        with self._reading():
            return self._client.head(self.key)["last_modified"]

    def entries(self, after: str = "") -> tuple[Entry, ...]:
        """List the objects and prefixes directly below, by one listing."""
        with self._refusing("listed"):
            if after:
                return self._list_after(after)
            found = self._client.list_with_delimiter(self.key or None)
        names = {meta["path"].rpartition("/")[2]: False for meta in found["objects"]}
        names |= {
            prefix.rstrip("/").rpartition("/")[2]: True for prefix in found["common_prefixes"]
        }
        return tuple(Entry(name, names[name], True) for name in sorted(names))

    def _list_after(self, after: str) -> tuple[Entry, ...]:
        names: dict[str, bool] = {}
        for path, _ in self._paths(self.below(after).key):
            name, slash, _ = path.partition("/")
            if name > after:
                names[name] = names.get(name, False) or bool(slash)
        return tuple(Entry(name, names[name], True) for name in sorted(names))

    def walk(self) -> tuple[Leaf, ...]:
        """List the objects below at every depth, by one listing."""
        with self._refusing("listed"):
            return tuple(sorted(Leaf(path, size, False, True) for path, size in self._paths()))

    def _paths(self, after: str | None = None) -> Iterator[tuple[str, int]]:
        """Yield the path below and the size of each object there."""
        above = f"{self.key}/" if self.key else ""
        for some in self._client.list(self.key or None, offset=after, chunk_size=1000):
            for meta in some:
                yield meta["path"].removeprefix(above), meta["size"]

    def delete(self) -> None:
        """Delete an object; do nothing if it does not exist."""
        try:
            with self._reading():
                self._client.delete(self.key)
        except FileNotFoundError:
            return

    def delete_folder(self) -> None:
        """Delete the empty folder that some servers leave behind; on others there is none."""
        self.delete()

    def prepare(self) -> None:
        """Raise InvalidInput if this store overwrites an object that exists; no folder is needed.

        A proxy may remove the condition from a request, so each call tests it.
        """
        self.entries()  # some servers create a bucket that does not exist with its first object
        test = self / _TEST
        if test.create(_PURPOSE) and test.create(_PURPOSE):
            raise InvalidInput(
                f"{self.uri} cannot be written: the store ignores If-None-Match, so two runs "
                "could take the same number",
                "Use a store that honors conditional writes, and no proxy that removes the header.",
            )

    def watch(self) -> None:
        """Do nothing: there are no folders."""

    def resolved(self) -> Self:
        """Return this place: an object has only one key."""
        return self

    def find_checkout(self) -> str | None:
        """Return None: no Git checkout is in a bucket."""
        return None

    def _put_once(self, content: bytes, writer: str) -> Exception | None:
        """Create an object if none exists; return the error otherwise."""
        try:
            self._client.put(
                self.key, content, mode="create", attributes={_WRITER: writer}, use_multipart=False
            )
        except client_errors() as error:
            return error
        return None

    def _writer(self) -> str | None:
        """Return the id of an object's writer; None if there is no object."""
        with self._refusing("written"):
            try:
                found = self._client.get(self.key, options={"head": True})
            except FileNotFoundError:
                return None
        return str(found.attributes.get(_WRITER, ""))

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except client_errors() as error:
            why, place = why_failed(error), self.uri
            if isinstance(error, FileNotFoundError) and why is None:
                raise FileNotFoundError(errno.ENOENT, "No such object", place) from None
            raise OSError(errno.EIO, why or "unknown error", place) from None

    @contextmanager
    def _refusing(self, how: str) -> Iterator[None]:
        try:
            yield
        except client_errors() as error:
            raise self._refused(error, how) from None

    def _refused(self, error: Exception, how: str) -> InvalidInput:
        kind = Denied if is_denied(error) else InvalidInput
        message = f"{self} cannot be {how}: {why_failed(error)}"
        return kind(message, remedy(error, self.bucket))


class PartedFile(io.RawIOBase):
    """A large object as a file that is fetched part by part."""

    def __init__(self, fetch: Callable[[int, int], bytes], size: int) -> None:
        """Use `fetch(start, end)`, which returns the bytes from `start` to before `end`."""
        self._fetch, self._size, self._at = fetch, size, 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position of the object."""
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Fetch the bytes at the position."""
        view = memoryview(buffer).cast("B")
        end = min(self._at + len(view), self._size)
        if end <= self._at:
            return 0
        part = self._fetch(self._at, end)
        view[: len(part)] = part
        self._at += len(part)
        return len(part)
