"""The process `quota-ops`: the command line. `python -m quota_ops` is the same."""

import atexit
import gc
import os
import sys

from quota_ops.cli import main
from quota_ops.cli.streams import open_streams

_UNPRINTED = 120
"""What Python itself exits with when its last words cannot be written."""


def run() -> None:
    """Run the command that the arguments name, and end the process with its exit code."""
    gc.disable()  # saves a fifth of plan and reconcile, as `make bench` measures them
    code: str | int | None = None

    def end_at_once() -> None:
        # Python would free every module and object first: a seventh of the CPU time of a plan.
        if isinstance(code, int):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    atexit.register(end_at_once)  # the first to be registered, so the last to be called
    printed = open_streams()
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
