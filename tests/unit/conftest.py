"""Fixtures shared by the unit tests."""

from pathlib import Path

import pytest

from quota_ops.store.places.run_store import ClusterStore, RunStore, open_place
from tests.repositories import commit_all, git, write_cluster


@pytest.fixture
def records(tmp_path: Path) -> ClusterStore:
    """Return what a run store has of a cluster: an empty ledger."""
    records = RunStore(open_place(tmp_path)).of_cluster("id")
    records.ledger.prepare()
    return records


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
