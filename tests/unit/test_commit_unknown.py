"""If Git fails, is misled or is busy, no wrong commit is ever recorded."""

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from quota_ops.desired.git import commit as committed
from quota_ops.desired.git import repository as quota_ops_git
from quota_ops.desired.git.commit import read_with_commit
from quota_ops.desired.read import Desired, read_cluster
from quota_ops.model.commit import CommitSource, Provenance
from quota_ops.model.errors import GitFailed, InvalidInput
from quota_ops.model.usage.recorded import FindUse
from tests.repositories import TEAM, commit_all, found, git, head, write_cluster

COMPARED = CommitSource.COMPARED


REFUSALS = {
    "dubious ownership": "git config --global --add safe.directory",
    "git is not installed": "Install Git",
    "git rev-parse took more than 0.3 s": "Make this command succeed: git -C",
    "not a git repository": "Make this command succeed: git -C",
}


def refuse(why: str, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make Git fail, for one of the reasons above."""
    if why == "dubious ownership":
        monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
        monkeypatch.setattr(quota_ops_git, "_SETTINGS", "GIT_TEST")  # which Git's own tests set
    elif why == "git is not installed":
        monkeypatch.setenv("PATH", "")
    elif why == "not a git repository":
        (repository / ".git" / "HEAD").unlink()
    else:
        slow = repository.parent / "bin" / "git"
        slow.parent.mkdir()
        slow.write_text("#!/bin/sh\nsleep 60\n")  # the shell's child has the pipes open too
        slow.chmod(stat.S_IRWXU)
        monkeypatch.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
        monkeypatch.setattr(quota_ops_git, "_PATIENCE", 0.3)


@pytest.mark.parametrize("repository", ["sha1"], indirect=True)
@pytest.mark.parametrize("why", REFUSALS)
def test_git_does_not_tell(
    cluster_folder: Path, repository: Path, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that only reads shows the reason; one that writes stops without a given commit."""
    refuse(why, repository, monkeypatch)

    only_looks = found(cluster_folder)
    assert only_looks == Provenance(failure=only_looks.failure)
    assert why in (only_looks.failure or "")
    with pytest.raises(GitFailed) as failed:
        read_with_commit(cluster_folder, must_know=True)
    assert failed.value.message == only_looks.failure
    assert (failed.value.remedy or "").startswith(REFUSALS[why])
    assert "--commit" in (failed.value.remedy or "")
    given = Provenance("f00", CommitSource.GIVEN)
    assert read_with_commit(cluster_folder, given="f00", must_know=True)[1] == given


def test_a_checkout_while_files_are_read(
    cluster_folder: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of two commits are read again; the last commit read is recorded."""
    first = head(repository)
    for name in ("search", "teams/payments"):
        path = next(cluster_folder.glob(f"{name}.*"))
        path.write_text(TEAM.format(path.stem, 9))
    second = commit_all(repository)
    git(repository, "checkout", "--quiet", first)
    reads: list[Desired] = []

    def read(
        cluster_folder: Path,
        *,
        skip_invalid: bool,
        at: str | None = None,
        find_use: FindUse | None = None,
    ) -> Desired:
        desired = read_cluster(cluster_folder, at=at, skip_invalid=skip_invalid, find_use=find_use)
        if not reads:  # half of the files were read before the checkout, half after it
            git(repository, "checkout", "--quiet", second)
            mixed = dict(desired.contents)
            mixed["search.yaml"] = (cluster_folder / "search.yaml").read_bytes()
            desired = replace(desired, contents=mixed)
        reads.append(desired)
        return desired

    monkeypatch.setattr("quota_ops.desired.read.read_cluster", read)

    desired, provenance = read_with_commit(cluster_folder)

    assert provenance == Provenance(second, COMPARED)
    assert ({row.value for row in desired.rows}, len(reads)) == ({9 * 2**20}, 2)


def test_a_checkout_that_does_not_end(
    cluster_folder: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While Git holds its lock, files that differ are not a person's changes, and are not used."""
    (repository / ".git" / "index.lock").touch()
    assert found(cluster_folder).commit == head(repository), (
        "files that match the commit do, whatever Git does meanwhile"
    )
    (cluster_folder / "search.yaml").write_text(TEAM.format("search", 2))
    monkeypatch.setattr(committed, "_SETTLED_AFTER", 0.2)

    with pytest.raises(
        InvalidInput, match=r"keep changing while quota-ops reads them.*\n.*index\.lock"
    ):
        read_with_commit(cluster_folder)


def test_what_the_environment_says_of_git_is_not_heard(
    cluster_folder: Path, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No environment variable and no replace ref redirects to another repository's commit."""
    other = tmp_path / "other"
    write_cluster(other / "desired_state" / "demo")
    git(other, "init", "--quiet")
    commit_all(other)
    mine = head(repository)
    (cluster_folder / "search.yaml").write_text(TEAM.format("search", 3))
    changed = commit_all(repository)
    git(repository, "replace", changed, mine)
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(repository))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(other / ".git" / "objects"))

    assert found(cluster_folder) == Provenance(changed, COMPARED)
