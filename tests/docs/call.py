"""Calls quota-ops in a server of `preloaded.py`: `python -I -S call.py ADDRESS ARGUMENT...`.

It passes its arguments, folder, environment and standard streams, and exits as the command does.
"""

import marshal
import os
import socket
import sys

with socket.socket(socket.AF_UNIX) as server:
    server.connect(sys.argv[1])
    here = os.getcwd()  # noqa: PTH109 - pathlib would take longer than all of this
    request = marshal.dumps((sys.argv[2:], here, dict(os.environ)))
    socket.send_fds(server, [len(request).to_bytes(8, "big")], [0, 1, 2])
    server.sendall(request)
    code = int(server.recv(8))
sys.exit(code if code >= 0 else 128 - code)
