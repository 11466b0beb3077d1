"""Which folders of a desired state are clusters, and that no two are one cluster."""

import errno
from pathlib import Path
from typing import Any

import pytest
from click.exceptions import Exit

from quota_ops.cli.commands.check import check_clusters
from quota_ops.desired.clusters import find_clusters, refuse_stray_files
from quota_ops.desired.read import read_cluster
from quota_ops.desired.yaml.checkout import Folder
from quota_ops.model.errors import InvalidDesiredState, InvalidInput

CLUSTER_YAML = "cluster_id: MkU3OEVBNTcwNTJENDM2Qg\nconnection: demo\n"


def new_cluster(desired_state: Path, name: str, text: str = CLUSTER_YAML) -> Path:
    """Create a cluster folder with a cluster.yaml."""
    folder = desired_state / name
    folder.mkdir()
    (folder / "cluster.yaml").write_text(text)
    return folder


def test_a_cluster_that_is_not_there_is_answered_with_those_that_are(tmp_path: Path) -> None:
    """The error for an unknown cluster lists the existing clusters."""
    new_cluster(tmp_path, "demo")
    new_cluster(tmp_path, "prod")

    with pytest.raises(InvalidInput) as caught:
        read_cluster(tmp_path / "dmeo")

    assert f"{tmp_path}/dmeo is not a folder.\n  Clusters in the same folder: demo, prod." == str(
        caught.value
    )
    with pytest.raises(InvalidInput) as alone:
        read_cluster(tmp_path / "none" / "demo")
    assert f"{tmp_path}/none/demo is not a folder." == str(alone.value)


def test_a_folder_with_almost_the_name_of_a_cluster(tmp_path: Path) -> None:
    """Quotas in a folder without cluster.yaml belong into the cluster of almost the same name."""
    new_cluster(tmp_path, "demo")
    (new_cluster(tmp_path, "dmeo") / "cluster.yaml").rename(tmp_path / "dmeo" / "payments.yaml")

    with pytest.raises(InvalidDesiredState) as caught:
        read_cluster(tmp_path / "dmeo")

    (problem,) = caught.value.problems[:1]
    assert problem.message == "The file is missing."
    assert problem.remedy == (
        "Did you mean demo? Then move the files there. A new cluster needs it with at least "
        "{cluster_id: MkU3OEVBNTcwNTJENDM2Qg, connection: demo}."
    )


def test_clusters_are_the_folders_with_yaml(tmp_path: Path) -> None:
    """Clusters are listed by name; a broken one is listed too, other folders are not."""
    new_cluster(tmp_path, "prod", "cluster_id: prod\nconnection: prod\n")
    new_cluster(tmp_path, "broken", "cluster_id: [\n")
    new_cluster(tmp_path, "demo")
    (new_cluster(tmp_path, "misnamed") / "cluster.yaml").rename(tmp_path / "misnamed/cluster.yml")
    (tmp_path / "deep" / "teams").mkdir(parents=True)
    (tmp_path / "deep" / "teams" / "payments.yaml").touch()
    (tmp_path / "nowhere").symlink_to(tmp_path / "nothing")
    (tmp_path / "round").symlink_to(tmp_path / "round")
    (tmp_path / "schema").mkdir()
    (tmp_path / "schema" / "quotas.json").touch()
    (tmp_path / "README.md").touch()
    (tmp_path / "OPERATIONS.md").symlink_to(tmp_path / "nothing")
    (tmp_path / "payments.yaml").symlink_to(tmp_path / "nothing")
    (tmp_path / ".github" / "workflows").mkdir(parents=True)
    (tmp_path / ".github" / "workflows" / "check.yaml").touch()

    found = [folder.name for folder in find_clusters(tmp_path)]

    assert found == ["broken", "deep", "demo", "misnamed", "nowhere", "prod", "round"]


@pytest.mark.parametrize("named", [(), ("prod",)])
@pytest.mark.parametrize("target", ["nothing", "prod", "demo"])
def test_a_link_in_place_of_a_cluster_is_one_problem(
    tmp_path: Path, named: tuple[str, ...], target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A link may hide quotas, so it is not an absent cluster; its target is not read."""
    (new_cluster(tmp_path, "demo") / "team.yaml").write_text("owner: yes")
    (tmp_path / "prod").symlink_to(tmp_path / target)

    with pytest.raises(Exit):
        check_clusters(named, tmp_path, "text", strict=False)

    said = capsys.readouterr().out.replace(f"{tmp_path}/", "")
    assert said.endswith(
        "prod:1:1  This is a link, and quota-ops follows no links. Replace it with the folder. "
        "If no commit can change the link, pass the path of its target.\n"
        "1 problem in 1 of 1 file (0 quotas read)\n"
    )


def test_yaml_beside_the_clusters_is_refused(tmp_path: Path) -> None:
    """No command would read a quotas file outside the cluster folders; hidden files are allowed."""
    new_cluster(tmp_path, "demo")
    for name in ("payments.yaml", ".yamllint.yaml", "README.md"):
        (tmp_path / name).touch()
    (tmp_path / "search.yml").symlink_to(tmp_path / "nothing")

    with pytest.raises(InvalidDesiredState) as caught:
        refuse_stray_files(tmp_path)

    assert str(caught.value).replace(f"{tmp_path}/", "") == "\n".join(
        f"{name}:1:1  The file is not in a cluster's folder. Move it into one, or out of this "
        f"folder."
        for name in ("payments.yaml", "search.yml")
    )


def test_what_is_wrong_beside_the_clusters_hides_no_other_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The check of all clusters lists the problems of each, then YAML outside their folders."""
    new_cluster(tmp_path, "demo", "cluster_id: [\n")
    (tmp_path / "payments.yaml").touch()

    with pytest.raises(InvalidDesiredState) as caught:
        check_clusters((), tmp_path, "text", strict=False)

    assert [problem.file for problem in caught.value.problems] == [f"{tmp_path}/payments.yaml"]
    assert capsys.readouterr().out.startswith(f"{tmp_path}/demo/cluster.yaml:2:1  ")


def test_yaml_without_any_cluster_is_refused(tmp_path: Path) -> None:
    """The error names the misplaced quotas, not just the absence of clusters."""
    (tmp_path / "payments.yaml").touch()

    with pytest.raises(InvalidDesiredState):
        check_clusters((), tmp_path, "text", strict=False)


def test_two_folders_of_one_cluster_are_refused(tmp_path: Path) -> None:
    """Two folders would undo each other's quotas, so both are named, also if one has changed."""
    new_cluster(tmp_path, "demo")
    twin = new_cluster(tmp_path, "twin", "# another\n" + CLUSTER_YAML.replace("MkU3", "AAAA"))
    assert len(find_clusters(tmp_path)) == 2
    (twin / "cluster.yaml").write_text("# the same\n" + CLUSTER_YAML)

    with pytest.raises(InvalidDesiredState) as caught:
        find_clusters(tmp_path)

    assert (
        f"{tmp_path}/twin/cluster.yaml:2:13  The cluster MkU3OEVBNTcwNTJENDM2Qg is already "
        f"declared at {tmp_path}/demo/cluster.yaml:1. Keep one folder per cluster."
    ) == str(caught.value)


def test_beside_a_cluster_that_is_named_only_other_clusters_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A cluster beside a folder that cannot be walked, such as /proc, still finds its twin."""
    new_cluster(tmp_path, "demo")
    (tmp_path / "proc" / "deep").mkdir(parents=True)
    looked_at: list[str] = []
    entries = Folder.entries

    def refusing(folder: Folder, name: str = "") -> Any:
        looked_at.append(f"{folder.path}/{name}")
        if "proc" in name:
            raise OSError(errno.EINVAL, "Invalid argument")
        return entries(folder, name)

    monkeypatch.setattr(Folder, "entries", refusing)
    check_clusters(("demo",), tmp_path, "text", strict=False)
    assert capsys.readouterr().out == "demo: 0 quotas in 1 file, no problems\n"
    assert not [path for path in looked_at if "proc" in path]
    assert [folder.name for folder in find_clusters(tmp_path)] == ["demo"]
    assert [path for path in looked_at if "proc" in path]

    new_cluster(tmp_path, "twin")
    with pytest.raises(InvalidDesiredState):
        check_clusters(("demo",), tmp_path, "text", strict=False)


def test_two_folders_of_one_dag_are_refused(tmp_path: Path) -> None:
    """Airflow would have one DAG for both, so one of them would never be applied."""
    new_cluster(tmp_path, "a b", "cluster_id: one\nconnection: one\n")
    new_cluster(tmp_path, "a_b", "cluster_id: [\n")
    new_cluster(tmp_path, "a-b", "cluster_id: three\nconnection: three\n")

    with pytest.raises(InvalidDesiredState) as caught:
        find_clusters(tmp_path)

    assert str(caught.value).replace(f"{tmp_path}/", "") == (
        "a_b:1:1  Its DAG in Airflow would be reconcile_a_b, as that of a b. "
        "Rename one of the two; use only letters, digits, '_', '.' and '-'."
    )


def test_a_desired_state_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """A missing folder is an error, never a desired state without clusters."""
    with pytest.raises(InvalidInput) as caught:
        find_clusters(tmp_path / "desired")

    assert (
        f"{tmp_path}/desired is not a folder.\n"
        "  Change to the root of your repository of quotas, pass another folder with "
        "--desired-state, or create a repository with quota-ops init."
    ) == str(caught.value)


def test_files_that_could_not_be_read_are_counted_too(tmp_path: Path) -> None:
    """A file rejected for its name counts once, even with two problems."""
    folder = new_cluster(tmp_path, "demo", "cluster_id: 7\n")
    for name in ("payments.yml", "search.yaml"):
        (folder / name).write_text("owner: payments\nquotas: []\n")
    (folder / "twice.yaml").symlink_to(folder / "none.yaml")
    with pytest.raises(InvalidDesiredState) as caught:
        read_cluster(folder)

    with_problems = {problem.file for problem in caught.value.problems}
    assert (len(with_problems), caught.value.files) == (2, 4)
