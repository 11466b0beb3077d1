"""Fixtures shared by the unit tests."""

from pathlib import Path

import pytest

from quota_ops.store.place import Place
from quota_ops.store.run_store import open_place
from tests.repositories import commit_all, git, write_cluster


@pytest.fixture
def ledger_folder(tmp_path: Path) -> Place:
    """Return the empty folder of a cluster's ledger in a run store."""
    folder = open_place(tmp_path / "ledger" / "id")
    folder.prepare()
    return folder


@pytest.fixture(params=["sha1", "sha256"])
def repository(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Create a repository with one cluster and one commit."""
    root = tmp_path / "repository"
    write_cluster(root / "desired_state" / "demo")
    (root / ".gitignore").write_text("local*\n")
    git(root, "init", "--quiet", f"--object-format={request.param}")
    commit_all(root)
    return root


@pytest.fixture
def cluster_folder(repository: Path) -> Path:
    """Return the folder of the cluster."""
    return repository / "desired_state" / "demo"
