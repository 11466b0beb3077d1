"""Which commit a cluster's folder is of, in real Git repositories."""

import subprocess
from pathlib import Path

import pytest

from quota_ops.commit import find_commit


def git(root: Path, *arguments: str) -> str:
    """What Git says."""
    who = ("-c", "user.name=test", "-c", "user.email=test@localhost")
    call = ["git", "-C", str(root), *who, *arguments]
    return subprocess.run(call, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    """A cluster's folder in a repository with one commit."""
    folder = tmp_path / "desired_state" / "demo"
    (folder / "teams").mkdir(parents=True)
    for name in ("cluster.yaml", "teams/payments.yml", "notes.md"):
        (folder / name).write_text("a: 1\n")
    (tmp_path / ".gitignore").write_text("local*\n")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "Quotas")
    return folder


@pytest.mark.parametrize(
    "changed", [None, "desired_state/other/quotas.yaml", "cluster.yaml", "README.md"]
)
@pytest.mark.parametrize("notes", ["a: 1\n", "other"])
def test_what_is_read_is_in_the_commit(
    folder: Path, tmp_path: Path, changed: str | None, notes: str
) -> None:
    """What changed outside of the folder, or is Markdown, is none of a cluster's quotas."""
    (folder / "notes.md").write_text(notes)
    if changed is not None:
        (tmp_path / changed).parent.mkdir(exist_ok=True)
        (tmp_path / changed).write_text("a: 2\n")

    assert find_commit(folder) == git(tmp_path, "rev-parse", "HEAD")


@pytest.mark.parametrize(
    "changed", ["cluster.yaml", "teams/payments.yml", "new.yaml", "new/deep.yml", "local.yaml"]
)
@pytest.mark.parametrize("shown", ["all", "no"])
def test_no_commit_holds_a_file_that_is_changed_untracked_or_ignored(
    folder: Path, tmp_path: Path, changed: str, shown: str
) -> None:
    """Whatever of it somebody's own settings would show."""
    git(tmp_path, "config", "status.showUntrackedFiles", shown)
    (folder / changed).parent.mkdir(exist_ok=True)
    (folder / changed).write_text("a: 2\n")

    assert find_commit(folder) is None


def test_no_commit_holds_what_is_staged_moved_or_gone(folder: Path, tmp_path: Path) -> None:
    """A commit that is still to be made is none; one that was made is, with nothing written."""
    git(tmp_path, "mv", str(folder / "cluster.yaml"), str(folder / "cluster.md"))
    assert find_commit(folder) is None
    git(tmp_path, "commit", "--quiet", "--message", "Moved")
    index = (tmp_path / ".git/index").read_bytes()
    (folder / "teams/payments.yml").touch()
    assert find_commit(folder) == git(tmp_path, "rev-parse", "HEAD")
    assert (tmp_path / ".git/index").read_bytes() == index
    (folder / "teams/payments.yml").unlink()
    assert find_commit(folder) is None


def test_no_commit_holds_a_folder_that_git_ignores(folder: Path, tmp_path: Path) -> None:
    """A whole folder that is not in Git is none of its commits."""
    (folder.parent / "local").mkdir()
    (folder.parent / "local" / "cluster.yaml").touch()

    assert find_commit(folder.parent / "local") is None
    assert find_commit(folder) == git(tmp_path, "rev-parse", "HEAD")


def test_a_worktree_has_the_commit_of_its_own(folder: Path, tmp_path: Path) -> None:
    """A checkout beside a bare clone, as Airflow's Git bundles are."""
    bare, tree = tmp_path / "local.git", tmp_path / "local"
    git(tmp_path, "clone", "--quiet", "--bare", str(tmp_path), str(bare))
    git(bare, "worktree", "add", "--quiet", "--detach", str(tree))

    assert find_commit(tree / folder.relative_to(tmp_path)) == git(tmp_path, "rev-parse", "HEAD")


@pytest.mark.parametrize("repository", [True, False])
def test_there_is_no_commit(tmp_path: Path, *, repository: bool) -> None:
    """In a repository before its first commit, and in none at all."""
    if repository:
        git(tmp_path, "init", "--quiet")

    assert find_commit(tmp_path) is None


def test_there_is_no_git(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Git is not installed the commit is unknown."""
    monkeypatch.setenv("PATH", "")

    assert find_commit(folder) is None
