"""Starts a program beside its parent, and stops it when the parent is gone, however it went.

Run by its path: `python launch.py attached|detached LOG COMMAND...`. It prints the command's
process id. Attached, it holds a pipe from the parent as its standard input: the pipe's end, which
comes on every system even when the parent is killed by SIGKILL, stops the command. Detached, it
exits at once and the command lives on. It imports the standard library alone, to start at once.
"""

import contextlib
import subprocess
import sys
import threading
from pathlib import Path

_GRACE_SECONDS = 15


def main(mode: str, log: str, *command: str) -> int:
    """Start the command in a session of its own, its output appended to the log."""
    with Path(log).open("ab") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    sys.stdout.write(f"{process.pid}\n")
    sys.stdout.flush()
    if mode == "detached":
        return 0
    threading.Thread(target=_stop_at_end_of_input, args=(process,), daemon=True).start()
    return process.wait()


def _stop_at_end_of_input(process: subprocess.Popen[bytes]) -> None:
    sys.stdin.read()
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE_SECONDS)
    process.kill()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
