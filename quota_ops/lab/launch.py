"""Starts a program, and stops it when the parent process ends, even by SIGKILL.

Run by its path: `python launch.py attached|detached LOG COMMAND...`. It prints the command's
process id. Attached, its standard input is a pipe from the parent. The pipe closes when the parent
ends, on every operating system, and this program then stops the command. Detached, it exits
immediately and the command continues. It imports only the standard library, to start fast.
"""

import contextlib
import subprocess
import sys
import threading
from pathlib import Path

_GRACE_SECONDS = 15


def main(mode: str, log: str, *command: str) -> int:
    """Start the command in its own session, and append its output to the log."""
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
