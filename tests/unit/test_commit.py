"""The commit of a cluster's files, in real Git repositories."""

from pathlib import Path

import pytest

from quota_ops.desired.files import is_read, list_quotas_files, open_cluster_folder
from quota_ops.desired.git.commit import BundleVersion, find_path, read_with_commit
from quota_ops.desired.yaml.source import Problems
from quota_ops.model.commit import MOST_UNCOMMITTED, CommitSource, Provenance
from tests.repositories import (
    CLUSTER,
    TEAM,
    commit_all,
    found,
    git,
    head,
    uncommitted,
    write_cluster,
)

COMPARED = CommitSource.COMPARED


@pytest.mark.parametrize("changed", [None, "desired_state/other/quotas.yaml", "cluster.yaml"])
@pytest.mark.parametrize("notes", ["Notes", "other", None])
def test_what_is_read_is_in_the_commit(
    cluster_folder: Path, repository: Path, changed: str | None, notes: str | None
) -> None:
    """Changes outside the folder, and changes of Markdown, do not affect a cluster's quotas."""
    if notes is None:
        (cluster_folder / "notes.md").unlink()
    else:
        (cluster_folder / "notes.md").write_text(notes)
    if changed is not None:
        (repository / changed).parent.mkdir(exist_ok=True)
        (repository / changed).write_text("a: 2\n")

    assert found(cluster_folder) == Provenance(head(repository), COMPARED)


@pytest.mark.parametrize("name", ["cluster.yaml", "teams/payments.yml", "new.yaml", "local.yaml"])
@pytest.mark.parametrize("hidden", [None, "--assume-unchanged", "--skip-worktree"])
def test_no_commit_has_a_file_that_is_changed_untracked_or_ignored(
    cluster_folder: Path, repository: Path, name: str, hidden: str | None
) -> None:
    """Such a file is named, even where Git was configured to ignore its changes."""
    if hidden is not None and (cluster_folder / name).exists():
        git(repository, "update-index", hidden, str(cluster_folder / name))
    text = f"{CLUSTER}# another\n" if name == "cluster.yaml" else TEAM.format("other", 2)
    (cluster_folder / name).write_text(text)

    assert found(cluster_folder) == uncommitted(repository, name)


def test_what_is_staged_moved_or_deleted(cluster_folder: Path, repository: Path) -> None:
    """A deletion is a change of its own; once it is committed, the rest is committed too."""
    (cluster_folder / "search.yaml").rename(cluster_folder / "moved.yaml")
    assert found(cluster_folder) == uncommitted(repository, "moved.yaml", "search.yaml")
    git(repository, "add", "--all")
    assert found(cluster_folder) == uncommitted(repository, "moved.yaml", "search.yaml")
    (cluster_folder / "moved.yaml").unlink()
    assert found(cluster_folder) == uncommitted(repository, "search.yaml")
    commit_all(repository)
    assert found(cluster_folder) == Provenance(head(repository), COMPARED)


def test_the_index_is_not_written(cluster_folder: Path, repository: Path) -> None:
    """Inspecting a checkout changes nothing in it."""
    index = (repository / ".git/index").read_bytes()
    (cluster_folder / "search.yaml").touch()

    assert found(cluster_folder) == Provenance(head(repository), COMPARED)
    assert (repository / ".git/index").read_bytes() == index


def test_more_changes_than_anybody_reads(cluster_folder: Path) -> None:
    """Git compares up to a fixed number of files, one process each, and no more."""
    for number in range(MOST_UNCOMMITTED + 5):
        (cluster_folder / f"team-{number}.yaml").write_text(TEAM.format(f"u{number}", 1))

    assert len(found(cluster_folder).uncommitted) == MOST_UNCOMMITTED


@pytest.mark.parametrize(
    "attributes",
    ["*.yaml text eol=crlf\n", "*.yaml text=auto\n*.yml text=auto\n", "*.yaml filter=upper\n"],
)
def test_what_git_writes_differently_into_a_checkout(
    cluster_folder: Path, repository: Path, attributes: str
) -> None:
    """Line endings by attributes or core.autocrlf, and filters such as LFS, are not changes."""
    git(repository, "config", "filter.upper.clean", "sed 's/^# SEEN$/# seen/'")
    git(repository, "config", "filter.upper.smudge", "sed 's/^# seen$/# SEEN/'")
    git(repository, "config", "filter.upper.required", "true")
    git(repository, "config", "core.autocrlf", "true")
    with (cluster_folder / "search.yaml").open("a") as file:
        file.write("# seen\n")
    (repository / ".gitattributes").write_text(attributes)
    commit_all(repository)
    read = (cluster_folder / "search.yaml").read_bytes()
    for name in ("cluster.yaml", "search.yaml", "teams/payments.yml"):
        (cluster_folder / name).unlink()
    git(repository, "checkout", "--", ".")
    assert (cluster_folder / "search.yaml").read_bytes() != read

    assert found(cluster_folder) == Provenance(head(repository), COMPARED)
    with (cluster_folder / "search.yaml").open("ab") as file:
        file.write(b"# more\r\n")
    assert found(cluster_folder) == uncommitted(repository, "search.yaml")


def test_a_link_that_became_a_file(cluster_folder: Path, repository: Path) -> None:
    """A file that replaced a committed link is a change, even if it contains the link's target."""
    target = TEAM.format("linked", 1)
    (cluster_folder / "linked.yaml").symlink_to(target)
    commit_all(repository)
    (cluster_folder / "linked.yaml").unlink()
    (cluster_folder / "linked.yaml").write_text(target)

    assert found(cluster_folder) == uncommitted(repository, "linked.yaml")


def test_a_commit_that_is_given(cluster_folder: Path, repository: Path) -> None:
    """A given commit counts as compared if Git reports the same one; otherwise as given."""
    assert read_with_commit(cluster_folder, given=head(repository))[1] == Provenance(
        head(repository), COMPARED
    )
    unknown = read_with_commit(cluster_folder, given="f00")[1]
    assert unknown == Provenance("f00", CommitSource.GIVEN)
    authors = [read_with_commit(cluster_folder)[1].author, unknown.author]
    assert authors == [git(repository, "log", "-1", "--format=%an <%ae>").strip(), None]
    (cluster_folder / "search.yaml").unlink()
    given = Provenance(head(repository), CommitSource.GIVEN)
    assert read_with_commit(cluster_folder, given=head(repository))[1] == given


@pytest.mark.parametrize("in_git", [True, False])
def test_there_is_no_commit(tmp_path: Path, *, in_git: bool) -> None:
    """Before the first commit all files are uncommitted; without a repository none is."""
    cluster_folder = tmp_path / "desired_state" / "demo"
    write_cluster(cluster_folder)
    if in_git:
        git(tmp_path, "init", "--quiet")

    names = ("cluster.yaml", "search.yaml", "teams/payments.yml") if in_git else ()
    assert read_with_commit(cluster_folder, must_know=True)[1] == Provenance(uncommitted=names)


def test_what_is_read_and_what_is_compared_are_the_same(tmp_path: Path) -> None:
    """Files are read and compared by the same rule, judging by their names."""
    names = ["cluster.yaml", "a.yaml", "a.yml", "b/c.yaml", "d.md/e.yaml", ".gitignore"]
    names += ["b/.gitattributes", "f.md", "b/g.md", ".github/h.yaml", "b/.github/i.yaml"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    with open_cluster_folder(tmp_path) as folder:
        read = list_quotas_files(folder, Problems())
    assert {"cluster.yaml", *read} == set(filter(is_read, names))


def test_the_path_of_a_folder_in_its_repository(cluster_folder: Path, repository: Path) -> None:
    """It is below the root of the checkout or of a bundle, also if a link leads to the folder."""
    link = repository.parent / "link"
    link.symlink_to(cluster_folder)
    bundle = BundleVersion("1", cluster_folder.parent.resolve(), None)
    below = cluster_folder.relative_to(repository).as_posix()

    assert find_path(cluster_folder, bundle) == find_path(link, None) == below
    assert find_path(repository, None) == ""
    (repository / ".git").rename(repository.parent / "elsewhere.git")
    assert find_path(cluster_folder, bundle) == cluster_folder.name
    assert find_path(cluster_folder, None) is None
