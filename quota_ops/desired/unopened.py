"""Why a file or folder of desired state is not opened."""

import errno
import os
from pathlib import Path

from quota_ops.model.text import counted


class LinkError(OSError):
    """A link where none is followed; `is_above` tells a parent folder of what was to be read."""

    def __init__(self, path: Path, *, is_above: bool = False) -> None:
        super().__init__(errno.ELOOP, "It is a link", str(path))
        self.is_above = is_above


class NotAFileError(OSError):
    """A pipe, a device or a socket in place of a file."""

    def __init__(self, path: Path) -> None:
        super().__init__(errno.EINVAL, "It is a pipe, a device or a socket", str(path))


class TooManyError(OSError):
    """A folder of more entries than anybody reads."""

    def __init__(self, path: Path, most: int) -> None:
        super().__init__(errno.EFBIG, f"It holds more than {counted(most, 'file')}", str(path))


class TooLargeError(OSError):
    """A file of more bytes than its reader takes; `size` is how many."""

    def __init__(self, path: Path, size: int) -> None:
        super().__init__(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
        self.size = size
