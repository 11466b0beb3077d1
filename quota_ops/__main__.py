"""The process `quota-ops`: the command line, and a quick end. `python -m quota_ops` is the same."""

import atexit
import gc
import os
import sys

from quota_ops.cli import main
from quota_ops.cli.streams import Printed, open_streams

_UNPRINTED = 120
"""What Python itself exits with when its last words cannot be written."""


def run() -> None:
    """Run the command that the arguments name, and end the process with its exit code."""
    gc.disable()  # saves a fifth of plan and reconcile, as `make bench` measures them
    ended: list[object] = []
    atexit.register(_end, ended, open_streams())  # called last, because it is registered first
    try:
        main(prog_name="quota-ops")
    except SystemExit as error:
        ended.append(error.code)
        raise


def _end(ended: list[object], printed: Printed) -> None:
    """End at once: to free every object takes longer than to plan, and what is open is closed."""
    match ended:
        case [int() as status]:
            code = status
        case [None]:
            code = 0
        case _:  # an error that Python has told
            code = 1
    sys.stdout.flush()
    if printed.failure:
        sys.stderr.write(f"quota-ops: cannot print: {printed.failure.strerror}\n")
        code = code or _UNPRINTED
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    run()
