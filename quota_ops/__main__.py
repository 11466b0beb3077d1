"""The process `quota-ops`: the command line. `python -m quota_ops` is the same."""

import gc
import os
import sys
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import TYPE_CHECKING, TextIO

from quota_ops.cli import main

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_STDIN, _STDOUT, _STDERR = range(3)


class Printed(FileIO):
    """The file of a stream; output that cannot be written is dropped, and `failure` has the error.

    A reader that stops early, such as `head`, is not a failure.
    """

    failure: OSError | None = None

    def write(self, data: "ReadableBuffer", /) -> int:
        """Write bytes; if that fails, drop them and report them as written."""
        try:
            return super().write(data)
        except BrokenPipeError:
            pass
        except OSError as error:
            self.failure = error
        return memoryview(data).nbytes


def open_streams() -> Printed:
    """Replace the standard streams so that no write fails; return the file of standard output.

    A stream that the process was started without (`>&-`) becomes /dev/null.
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


_UNPRINTED = 120
"""What Python itself exits with when its last words cannot be written."""


def run() -> None:
    """Run the command that the arguments name, and end the process with its exit code."""
    gc.disable()  # saves a fifth of plan and reconcile, as `make bench` measures them
    printed, code = open_streams(), None
    try:
        main(prog_name="quota-ops")
    except SystemExit as ended:
        code = ended.code
    sys.stdout.flush()
    if printed.failure:
        sys.stderr.write(f"quota-ops: cannot print: {printed.failure.strerror}\n")
        code = code or _UNPRINTED
    sys.exit(code)


if __name__ == "__main__":
    run()
