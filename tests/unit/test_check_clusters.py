"""The clusters of a desired state: which folders they are, and that no two are one cluster."""

from pathlib import Path

import pytest

from quota_ops.desired.read import find_clusters, read_cluster
from quota_ops.model.errors import InvalidDesiredState, InvalidInput

CLUSTER_YAML = "cluster_id: MkU3OEVBNTcwNTJENDM2Qg\nconnection: demo\n"


def new_cluster(desired_state: Path, name: str, text: str = CLUSTER_YAML) -> Path:
    """A cluster's folder with a cluster.yaml."""
    folder = desired_state / name
    folder.mkdir()
    (folder / "cluster.yaml").write_text(text)
    return folder


def test_a_cluster_that_is_not_there_is_answered_with_those_that_are(tmp_path: Path) -> None:
    """Asking for an unknown cluster names its neighbours."""
    new_cluster(tmp_path, "demo")
    new_cluster(tmp_path, "prod")

    with pytest.raises(InvalidInput) as caught:
        read_cluster(tmp_path / "dmeo")

    assert f"{tmp_path}/dmeo is not a folder.\n  The clusters beside it: demo, prod." == str(
        caught.value
    )
    with pytest.raises(InvalidInput) as alone:
        read_cluster(tmp_path / "none" / "demo")
    assert f"{tmp_path}/none/demo is not a folder." == str(alone.value)


def test_clusters_are_the_folders_with_a_cluster_yaml(tmp_path: Path) -> None:
    """Clusters come in order of their names; a broken one is still found, other folders are not."""
    new_cluster(tmp_path, "prod", "cluster_id: prod\nconnection: prod\n")
    new_cluster(tmp_path, "broken", "cluster_id: [\n")
    new_cluster(tmp_path, "demo")
    (tmp_path / "schema").mkdir()

    found = [folder.name for folder in find_clusters(tmp_path)]

    assert found == ["broken", "demo", "prod"]


def test_two_folders_of_one_cluster_are_refused(tmp_path: Path) -> None:
    """Two folders would undo each other's quotas, so both are named."""
    new_cluster(tmp_path, "demo")
    new_cluster(tmp_path, "twin", "# the same\n" + CLUSTER_YAML)

    with pytest.raises(InvalidDesiredState) as caught:
        find_clusters(tmp_path)

    assert (
        f"{tmp_path}/twin/cluster.yaml:2:13  MkU3OEVBNTcwNTJENDM2Qg is already the cluster of"
        f" {tmp_path}/demo/cluster.yaml:1. Keep one folder for a cluster."
    ) == str(caught.value)


def test_a_desired_state_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """A missing folder is an error, never a desired state without clusters."""
    with pytest.raises(InvalidInput) as caught:
        find_clusters(tmp_path / "desired")

    assert (
        f"{tmp_path}/desired is not a folder.\n"
        "  Name one with --desired-state; quota-ops init writes one."
    ) == str(caught.value)
