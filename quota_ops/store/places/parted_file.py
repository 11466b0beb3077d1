"""A large object as a file; a reader fetches only the parts that it needs."""

import io
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


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
