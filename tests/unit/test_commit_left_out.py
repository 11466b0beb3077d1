"""The commit of files in a checkout that omits some of them, or has them in another form."""

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from quota_ops.cli import main
from quota_ops.desired.git.commit import BundleVersion, read_with_commit
from quota_ops.model.commit import CommitSource, Provenance
from quota_ops.model.errors import GitFailed, InvalidDesiredState, InvalidInput
from tests.repositories import TEAM, commit_all, found, git, head, uncommitted, write_cluster

COMPARED = CommitSource.COMPARED


@pytest.mark.parametrize(
    "command",
    [
        "sparse-checkout set --no-cone /desired_state/demo/* !/desired_state/demo/teams/",
        "sparse-checkout set --no-cone --sparse-index /desired_state/demo/cluster.yaml",
        "update-index --skip-worktree desired_state/demo/teams/payments.yml",
    ],
)
def test_a_file_that_the_checkout_leaves_out(
    cluster_folder: Path, repository: Path, command: str
) -> None:
    """A file that the checkout omits is a problem, not a removal, even if a commit is given."""
    git(repository, *command.split())
    (cluster_folder / "teams" / "payments.yml").unlink(missing_ok=True)

    for commit in (None, "f00", head(repository)):
        with pytest.raises(InvalidInput, match=r"payments\.yml:1:1  The checkout lacks"):
            read_with_commit(cluster_folder, given=commit)


def test_check_finds_a_file_that_the_checkout_leaves_out(
    cluster_folder: Path, repository: Path
) -> None:
    """Check rejects it as plan does; uncommitted files or a folder without Git are no problem."""
    (cluster_folder / "uncommitted.yaml").write_text(TEAM.format("new", 1))
    (cluster_folder / "search.yaml").unlink()
    call = ("check", "demo", "--desired-state", str(cluster_folder.parent))
    assert CliRunner().invoke(main, call).exit_code == 0

    git(repository, "update-index", "--skip-worktree", "desired_state/demo/teams/payments.yml")
    (cluster_folder / "teams" / "payments.yml").unlink()
    result = CliRunner().invoke(main, call)
    assert result.exit_code == InvalidDesiredState.exit_code
    assert "teams/payments.yml:1:1  The checkout lacks this file" in result.stdout

    (cluster_folder / "uncommitted.yaml").write_text(TEAM.format("new", 1) + "nothing: 1\n")
    result = CliRunner().invoke(main, call)
    assert "teams/payments.yml:1:1  The checkout lacks this file" in result.stdout
    assert "uncommitted.yaml:5:1  nothing is not a field" in result.stdout
    assert "2 problems in 2 of 3 files (1 quota read)" in result.stdout

    shutil.rmtree(repository / ".git")
    (cluster_folder / "uncommitted.yaml").unlink()
    assert CliRunner().invoke(main, call).exit_code == 0


@pytest.mark.parametrize("checked_out", [True, False])
def test_a_submodule(
    cluster_folder: Path, repository: Path, tmp_path: Path, *, checked_out: bool
) -> None:
    """No commit of the repository contains its files, so they are not read."""
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "inner.yaml").write_text(TEAM.format("inner", 1))
    kind = git(repository, "rev-parse", "--show-object-format")
    git(inner, "init", "--quiet", f"--object-format={kind}")
    commit_all(inner)
    git(repository, "submodule", "--quiet", "add", str(inner), "desired_state/demo/inner")
    commit_all(repository)
    if not checked_out:
        git(repository, "submodule", "--quiet", "deinit", "--all")

    with pytest.raises(InvalidInput, match=r"demo/inner.* separate Git repository"):
        read_with_commit(cluster_folder)


def test_a_repository_in_a_cluster_s_folder(cluster_folder: Path, repository: Path) -> None:
    """A nested repository's files are in no commit of the outer one, whatever its index has."""
    git(cluster_folder / "teams", "init", "--quiet")

    with pytest.raises(InvalidDesiredState, match=r"demo/teams.* separate Git repository"):
        read_with_commit(cluster_folder)
    shutil.rmtree(cluster_folder / "teams" / ".git")
    assert found(cluster_folder).commit == head(repository)


def test_a_folder_that_git_ignores(cluster_folder: Path, repository: Path) -> None:
    """An ignored folder is in none of its repository's commits."""
    write_cluster(cluster_folder.parent / "local")

    names = ("cluster.yaml", "search.yaml", "teams/payments.yml")
    assert found(cluster_folder.parent / "local") == uncommitted(repository, *names)


def test_a_worktree_has_the_commit_of_its_own(
    cluster_folder: Path, repository: Path, tmp_path: Path
) -> None:
    """Linked worktrees beside a bare clone, as git-sync creates them, have their own commit."""
    bare, tree = tmp_path / "local.git", tmp_path / "local"
    git(tmp_path, "clone", "--quiet", "--bare", str(repository), str(bare))
    git(bare, "worktree", "add", "--quiet", "--detach", str(tree))

    assert found(tree / cluster_folder.relative_to(repository)) == Provenance(
        head(repository), COMPARED
    )


def test_a_partial_clone_fetches_nothing(
    cluster_folder: Path, repository: Path, tmp_path: Path
) -> None:
    """In a partial clone the commit is found, and uncommitted files are named, without a fetch."""
    git(repository, "config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "clone"
    url = f"file://{repository}"
    git(tmp_path, "clone", "--quiet", "--filter=blob:none", "--no-checkout", url, str(clone))
    shutil.copytree(repository / "desired_state", clone / "desired_state")
    objects = sorted((clone / ".git/objects").rglob("*"))

    copy = clone / cluster_folder.relative_to(repository)
    assert found(copy) == Provenance(head(repository), COMPARED)
    (copy / "search.yaml").write_text(TEAM.format("search", 2))
    assert found(copy) == uncommitted(repository, "search.yaml")
    assert sorted((clone / ".git/objects").rglob("*")) == objects


@pytest.mark.parametrize("bare", [True, False])
def test_a_bundle_without_git(
    cluster_folder: Path, repository: Path, tmp_path: Path, *, bare: bool
) -> None:
    """A bundle without `.git` is compared with its bare repository.

    Without a bare repository, the version is recorded as Airflow states it.
    """
    mine, version = head(repository), tmp_path / "versions" / head(repository)
    git(tmp_path, "clone", "--quiet", "--bare", str(repository), str(tmp_path / "bare"))
    shutil.copytree(repository, version, ignore=shutil.ignore_patterns(".git"))
    bundle = BundleVersion(mine, version, tmp_path / "bare" if bare else None)
    copy = version / cluster_folder.relative_to(repository)

    def in_bundle() -> Provenance:
        return read_with_commit(copy, bundle=bundle, must_know=True)[1]

    assert in_bundle() == Provenance(mine, COMPARED if bare else CommitSource.AIRFLOW)
    (copy / "search.yaml").write_text(TEAM.format("search", 2))
    changed = uncommitted(repository, "search.yaml")
    assert in_bundle() == (changed if bare else Provenance(mine, CommitSource.AIRFLOW))
    (copy / "search.yaml").unlink()
    if bare:
        with pytest.raises(InvalidInput, match=r"search\.yaml:1:1  The checkout lacks"):
            in_bundle()
        shutil.rmtree(tmp_path / "bare" / "refs")
        with pytest.raises(GitFailed, match="not a git repository"):
            in_bundle()


def test_a_bundle_that_has_its_own_git(
    cluster_folder: Path, repository: Path, tmp_path: Path
) -> None:
    """If a bundle has a `.git`, its checked-out commit is recorded, not the one Airflow states."""
    stated = BundleVersion("f00", repository, tmp_path / "no-such-bare")

    assert read_with_commit(cluster_folder, bundle=stated)[1] == Provenance(
        head(repository), COMPARED
    )
