"""The program `quota-ops` of pages: each call is a process, forked from one that has imported it.

Of a short command, starting Python and importing the libraries takes most of the CPU time. The
server, `python -m tests.docs.preloaded ADDRESS`, does both once. A call is `call.py`.
"""

import gc
import marshal
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from select import select
from tempfile import TemporaryDirectory

import click

from quota_ops.__main__ import run
from quota_ops.cli import COMMANDS, main
from tests.docs.markdown import ROOT

CALL = Path(__file__).with_name("call.py")
IMPORTED_LATE = ("jinja2", "quota_ops.report.page", "quota_ops.sql.embedded")
"""What commands import when they need it, besides their own modules."""


@contextmanager
def preloaded() -> Iterator[str]:
    """Yield the address of a server, which ends with the block, or with this process."""
    with TemporaryDirectory(prefix="quota-ops-") as folder:
        address = f"{folder}/server"
        with subprocess.Popen(
            [sys.executable, "-m", __name__, address],
            env={"PYTHONPATH": str(ROOT), "LANG": "C.UTF-8", "PATH": os.environ["PATH"]},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as server:
            assert server.stdout
            assert server.stdout.readline() == b"ready\n"
            yield address
            assert server.stdin
            server.stdin.close()


def serve(address: str) -> None:
    """Fork a process for each call, until standard input ends."""
    for name in COMMANDS:
        main.get_command(click.Context(main), name)
    for name in IMPORTED_LATE:
        import_module(name)
    gc.freeze()  # a collection would copy all of it into the process of each call
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that answer
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        os.write(1, b"ready\n")
        while sys.stdin not in select([server, sys.stdin], [], [])[0]:
            call, _ = server.accept()
            with call:
                if os.fork() == 0:
                    server.close()
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    answer(call)
    gc.unfreeze()  # DuckDB lists what is not freed


def answer(call: socket.socket) -> None:
    """Run one command in a process with the caller's streams; send its exit code, and exit."""
    size, streams, _, _ = socket.recv_fds(call, 8, 3)
    request = b""
    while len(request) < int.from_bytes(size, "big"):
        request += call.recv(2**16)
    arguments, folder, environment = marshal.loads(request)  # noqa: S302 - from call.py
    if (pid := os.fork()) == 0:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = ["quota-ops", *arguments]
        run()
    for stream in streams:
        os.close(stream)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    call.sendall(b"%d" % code)
    os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1])
