"""Azurite, a server of Azure's blob storage in Node.js, from the npm registry."""

import base64
import hashlib
import hmac
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path

import pytest

from quota_ops.lab.process import launch
from tests.docs.markdown import ROOT

AZURITE = "azurite@3.37.0"
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account and the key that every Azurite has, as Microsoft documents them."""
_PATIENCE = 60.0
_LISTENS = re.compile(r"listens on http://127\.0\.0\.1:(\d+)")


@dataclass(frozen=True, slots=True)
class AzureServer:
    """A running server."""

    port: int

    def environment(self) -> Mapping[str, str]:
        """Return the variables that a client needs."""
        return {
            "AZURE_ENDPOINT": f"http://127.0.0.1:{self.port}/{ACCOUNT}",
            "AZURE_ALLOW_HTTP": "true",
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": KEY,
        }

    def create_container(self, name: str) -> None:
        """Create a container, by a request that is signed with the key of the account."""
        headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
        signed = "".join(f"{header}:{value}\n" for header, value in headers.items())
        text = "PUT" + 12 * "\n" + f"{signed}/{ACCOUNT}/{ACCOUNT}/{name}\nrestype:container"
        digest = hmac.digest(base64.b64decode(KEY), text.encode(), hashlib.sha256)
        headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request("PUT", f"/{ACCOUNT}/{name}?restype=container", headers=headers)
        response = connection.getresponse()
        content = response.read()
        connection.close()
        assert response.status == HTTPStatus.CREATED, content


@contextmanager
def start_azure(folder: Path) -> Iterator[AzureServer]:
    """Start a server that keeps its data in memory, and stop it at the end."""
    log = folder / "azurite.log"
    options = ("--blobPort", "0", "--inMemoryPersistence", "--disableTelemetry", "--silent")
    process = launch(
        ("node", f"--title={folder}", str(_install()), *options),
        mark=str(folder),
        log=log,
        environment={"PATH": os.environ["PATH"]},
        detached=False,
    )
    try:
        deadline = time.monotonic() + _PATIENCE
        while not (found := _LISTENS.search(log.read_text())):
            assert process.alive, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        yield AzureServer(int(found[1]))
    finally:
        process.stop(grace=0.0)


def _install() -> Path:
    """Install Azurite once for this checkout, and return its program; skip the test without npm."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed; it installs Azurite, the server of Azure's blob storage")
    folder = ROOT / f".venv-{AZURITE.replace('@', '-')}"
    program = folder / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
    if not program.exists():
        # Its drivers of databases have scripts that fetch programs; it works without these.
        options = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
        command = [npm, "install", *options, "--prefix", str(folder), AZURITE]
        subprocess.run(command, check=True, capture_output=True)
    return program
