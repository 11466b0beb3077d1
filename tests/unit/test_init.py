"""init: what it writes passes check, and what would not is refused before it is written."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from quota_ops.cli import main
from quota_ops.desired.read import find_clusters, read_cluster


@pytest.fixture(name="root", autouse=True)
def _root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def init(*options: str) -> Result:
    """A repository in the folder `quotas`."""
    return CliRunner().invoke(main, ["init", "quotas", *options])


@pytest.mark.parametrize("cluster", ["main", "10", "yes", "null", "1e5", "eu.prod_1-a", "_x"])
@pytest.mark.parametrize("cluster_id", ["MkU3OEVBNTcwNTJENDM2Qg", "10", '"x', "a:b", "-", "#7"])
def test_what_is_written_passes_check(cluster: str, cluster_id: str) -> None:
    """Names that YAML would take for something else are written in quotes."""
    ended = init("--cluster", cluster, "--cluster-id", cluster_id)

    assert ended.exit_code == 0, ended.output
    (folder,) = find_clusters(Path("quotas/desired_state"))
    policy = read_cluster(folder).policy
    assert (policy.cluster, policy.cluster_id, policy.connection) == (cluster, cluster_id, cluster)


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "/abs", "a b", "-x", "é", "a\n"])
def test_what_is_no_name_of_a_cluster_is_refused(name: str, root: Path) -> None:
    """Nothing is written outside of the folder, nor where no check would find it."""
    ended = init("--cluster", name)

    assert ended.exit_code == 2
    assert ended.stderr == (
        f"--cluster {name!r} cannot be the name of a cluster\n"
        "  It names a folder and a connection: letters, digits and '_', then also '.' and '-'.\n"
    )
    assert list(root.iterdir()) == []


@pytest.mark.parametrize("cluster_id", ["", "a: b", "a\tb", "\udce9"])
def test_what_is_no_cluster_id_is_refused(cluster_id: str, root: Path) -> None:
    """An id that check would refuse is not written down; an empty one is not one left out."""
    ended = init("--cluster-id", cluster_id)

    said = f"--cluster-id {cluster_id!r} is not a cluster id\n"
    assert ended.stderr == f"{said}  kafka-cluster.sh cluster-id prints it.\n"
    assert ended.exit_code == 2
    assert list(root.iterdir()) == []
