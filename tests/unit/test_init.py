"""init: what it writes passes check, and any other input is rejected before it is written."""

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from quota_ops.cli import main
from quota_ops.desired.clusters import find_clusters
from quota_ops.desired.read import read_cluster, read_policy
from quota_ops.model.errors import InvalidDesiredState


@pytest.fixture(name="root", autouse=True)
def _root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def init(*options: str) -> Result:
    """Run init with the folder `quotas`."""
    return CliRunner().invoke(main, ["init", "quotas", *options])


@pytest.mark.parametrize("cluster", ["main", "10", "yes", "null", "1e5", "eu.prod_1-a", "_x"])
@pytest.mark.parametrize("cluster_id", ["MkU3OEVBNTcwNTJENDM2Qg", "10", '"x', "a:b", "-", "#7"])
def test_what_is_written_passes_check(cluster: str, cluster_id: str) -> None:
    """Names that YAML would read as another type are written in quotes."""
    ended = init("--cluster", cluster, "--cluster-id", cluster_id)

    assert ended.exit_code == 0, ended.output
    (folder,) = find_clusters(Path("quotas/desired_state"))
    policy = read_cluster(folder).policy
    assert (policy.cluster, policy.cluster_id, policy.connection) == (cluster, cluster_id, cluster)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", "/abs", "a b", "-x", "é", "a\n", "x" * 201]
)
def test_what_is_no_name_of_a_cluster_is_refused(name: str, root: Path) -> None:
    """Nothing is written outside the folder, nor where check would not find it."""
    ended = init("--cluster", name)

    assert ended.exit_code == 2
    assert ended.stderr == (
        f"--cluster {name!r} is not a cluster name\n"
        "  It also names a folder and a connection. It may have up to 200 letters, digits, '.', "
        "'_' and '-', and must not start with '.' or '-'.\n"
    )
    assert list(root.iterdir()) == []


@pytest.mark.parametrize("cluster_id", ["", "a: b", "a\tb", "\udce9"])
def test_what_is_no_cluster_id_is_refused(cluster_id: str, root: Path) -> None:
    """An id that check would reject is not written; an empty one is an error, not a missing one."""
    ended = init("--cluster-id", cluster_id)

    said = f"--cluster-id {cluster_id!r} is not a cluster id\n"
    assert ended.stderr == f"{said}  Get the id with kafka-cluster.sh cluster-id.\n"
    assert ended.exit_code == 2
    assert list(root.iterdir()) == []


@pytest.mark.parametrize("folder", ["quotas", "we ird", "."])
def test_what_comes_next_can_be_typed(folder: str, root: Path) -> None:
    """The folder is quoted for a shell, and the README uses the folder's own name."""
    ended = CliRunner().invoke(main, ["init", folder, "--cluster-id", "x", "--ci", "none"])

    go = "" if folder == "." else f"cd {shlex.quote(folder)}, then "
    assert ended.output.split("\n\n")[1] == (
        f"Next: {go}quota-ops check\n"
        "Keep it in Git (git init, git add, git commit), because a run records its commit.\n"
        "In CODEOWNERS and cluster.yaml, replace @OWNER/my-team and @OWNER/platform with those who "
        "approve changes.\n"
    )
    readme = (root / folder / "README.md").read_text()
    assert readme.startswith(f"# {(root / folder).name}\n")


@pytest.mark.parametrize("cluster", ["a", "payments-eu-west-1"])
def test_the_commands_of_the_readme_stand_in_columns(cluster: str) -> None:
    """The columns are aligned, however long the cluster's name is."""
    init("--cluster", cluster)

    lines = Path("quotas/README.md").read_text().splitlines()
    commands = [line for line in lines if line.startswith("    quota-ops")]
    starts = {line.rindex("    ") for line in commands}
    assert (len(commands), len(starts)) == (3, 1)


def test_the_id_that_is_to_be_replaced_is_a_problem_of_check_alone() -> None:
    """Check rejects the placeholder.

    Ping reads the policy all the same and can show the real id.
    """
    assert "put your cluster's id into cluster.yaml, then quota-ops check" in init().output
    folder = Path("quotas/desired_state/main")

    with pytest.raises(InvalidDesiredState) as caught:
        read_cluster(folder)

    assert str(caught.value) == (
        f"{folder}/cluster.yaml:5:13  REPLACE-WITH-THE-CLUSTER-ID is a placeholder, not a "
        f"cluster id. Get the id with quota-ops ping or kafka-cluster.sh cluster-id."
    )
    assert read_policy(folder).connection == "main"
