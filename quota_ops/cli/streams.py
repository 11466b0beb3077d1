"""The standard streams: output that cannot be written does not stop a command."""

import os
import sys
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_STDIN, _STDOUT, _STDERR = range(3)


class Printed(FileIO):
    """Where a stream leads; what cannot be written is dropped, and `failure` says why.

    A reader that has left, as `head` does, is no failure.
    """

    failure: OSError | None = None

    def write(self, data: "ReadableBuffer", /) -> int:
        """Write some bytes, or drop them all."""
        try:
            return super().write(data)
        except BrokenPipeError:
            pass
        except OSError as error:
            self.failure = error
        return memoryview(data).nbytes


def open_streams() -> Printed:
    """Make the standard streams such that no writing fails; give where standard output leads.

    One that the process was started without (`>&-`) is /dev/null.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= _STDERR:
        os.set_inheritable(number, True)
    os.close(number)
    sys.stdin = sys.stdin or open(_STDIN, encoding="utf-8")  # noqa: SIM115, PTH123 - a number
    sys.stdout, printed = _stream(_STDOUT, sys.stdout)
    sys.stderr, _ = _stream(_STDERR, sys.stderr)
    return printed


def _stream(number: int, before: TextIO | None) -> tuple[TextIOWrapper, Printed]:
    raw = Printed(number, "w", closefd=False)
    stream = TextIOWrapper(
        BufferedWriter(raw),
        encoding=before.encoding if before else "utf-8",
        errors=before.errors if before else None,
        line_buffering=bool(before and before.line_buffering),
    )
    return stream, raw
