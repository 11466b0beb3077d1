"""The program quota-ops for tests: a process that has imported the command line, forked.

Half of the CPU time of a small command is its imports. The program is a script for Python that
passes its streams, folder, environment and arguments to a fork, and exits with the fork's code.
The fork may read only files that its user may, also if that is root.
How the real process starts and ends is tested in tests/cli/test_process.py.
"""

import atexit
import gc
import marshal
import os
import runpy
import select
import shutil
import socket
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import mkdtemp
from threading import Lock
from typing import Any

ROOT = Path(__file__).parents[1]
_IMPORTED = ("quota_ops.cli.stage_run", "quota_ops.stages.report.forms", "duckdb", "kafka.admin")
_STARTING = Lock()
_BOUND = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")
"""Starts a process of root for which the permissions of files hold."""
_PROGRAM = """\
#!/bin/sh
'''exec' '{python}' -ISE "$0" "$@"
' '''
import _socket, marshal, os, sys  # socket itself is half of the start
server = _socket.socket(_socket.AF_UNIX)
server.connect({address!r})
request = marshal.dumps((os.getcwd(), dict(os.environ), sys.argv[1:]))
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
length = len(request).to_bytes(4, "big")
server.sendmsg([length], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
server.sendall(request)
code = server.recv(1)
sys.exit(code[0] if code else 1)
"""


def preloaded() -> Path:
    """Return the command that runs quota-ops, an executable of this name.

    Its process starts with the first call, also if threads make it at the same time.
    """
    with _STARTING:
        return _start()


@cache
def _start() -> Path:
    folder = Path(mkdtemp(prefix="quota-ops-preloaded-"))
    address, program = folder / "socket", folder / "quota-ops"
    program.write_text(_PROGRAM.format(python=sys.executable, address=str(address)))
    program.chmod(0o755)
    # Warnings are errors, except of a function with which kafka-python reads its schemas.
    environment = {"LANG": "C.UTF-8", "PYTHONWARNINGS": "error,ignore::DeprecationWarning"}
    server = subprocess.Popen(
        [*(_BOUND if os.geteuid() == 0 else ()), sys.executable, "-m", "tests.preloaded", address],
        cwd=ROOT,
        env=os.environ | environment,
        stdin=subprocess.PIPE,  # closed when this process ends, even if it is killed
        stdout=subprocess.PIPE,
    )
    assert server.stdout
    assert server.stdout.readline() == b"ready\n"

    def end() -> None:
        server.communicate()
        shutil.rmtree(folder)

    atexit.register(end)
    return program


def serve(address: str) -> None:
    """Import the command line, and fork for each request until standard input is closed."""
    for module in _IMPORTED:
        import_module(module)
    gc.freeze()
    setattr(os, "fsync", lambda _descriptor: None)  # noqa: B010 - no test cuts the power
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        os.write(1, b"ready\n")
        running, listening = 0, server.fileno()
        while listening in select.select([0, listening], [], [])[0]:
            connection, _ = server.accept()
            if os.fork() == 0:
                _run(connection)
            connection.close()
            running += 1
            while running and os.waitpid(-1, os.WNOHANG)[0]:
                running -= 1
    gc.unfreeze()  # DuckDB lists objects that Python does not free


def _run(connection: socket.socket) -> None:
    """Become the process of a command, run it, and send its exit code."""
    code: Any = 1
    try:
        size, streams, _, _ = socket.recv_fds(connection, 4, 3)
        with connection.makefile("rb") as request:
            sent = request.read(int.from_bytes(size, "big"))
        folder, environment, sys.argv[1:] = marshal.loads(sent)  # noqa: S302 - from the program
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        runpy.run_module("quota_ops", run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        code = ended.code or 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        connection.sendall(bytes([code]))
        os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1])
