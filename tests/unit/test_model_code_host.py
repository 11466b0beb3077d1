"""The addresses of lines and commits on code hosts, and the texts that are no address."""

import pytest

from quota_ops.model.code_host import Repository, is_commit_id

SHA = "9fceb02d0ae598e95dc970b74767f19372d61af8"
AZURE = "https://dev.azure.com/o/p/_git/q?path=/{path}&version=GC{commit}&line={line}"


@pytest.mark.parametrize(
    ("text", "line", "commit"),
    [
        ("https://github.com/o/r", "https://github.com/o/r/blob/{}#L8", "/commit/"),
        ("https://gitlab.com/o/tree", "https://gitlab.com/o/tree/-/blob/{}#L8", "/-/commit/"),
        ("https://bitbucket.org/o/r/", "https://bitbucket.org/o/r/src/{}#lines-8", "/commits/"),
        ("http://gitlab.acme.example:8443/a/b/r.git/", "/-/blob/{}#L8", "/-/commit/"),
        ("https://codeberg.org/o/r", "https://codeberg.org/o/r/src/commit/{}#L8", "/commit/"),
        ("https://bitbucket.org/o/r", "https://bitbucket.org/o/r/src/{}#lines-8", "/commits/"),
        ("https://git.acme.example/r/-/blob/{commit}/{path}#L{line}", "{}#L8", "/-/commit/"),
        ("https://git.acme.example/r/blob/{commit}/{path}#L{line}", "{}#L8", "/r/commit/"),
        ("https://cgit.example/r/tree/{path}?id={commit}#n{line}", f"?id={SHA}#n8", ""),
        ("https://git.example/{line}/{path}?{commit}", f"/8/a%20b/c%23.yaml?{SHA}", ""),
        (AZURE, f"?path=/a%20b/c%23.yaml&version=GC{SHA}&line=8", ""),
    ],
)
def test_addresses(text: str, line: str, commit: str) -> None:
    """A known code host needs its address alone; for any other, the address of a line is enough."""
    repository = Repository.parse(text)
    found = repository.find_line(SHA, "a b/c#.yaml", 8)

    assert found.endswith(line.format(f"{SHA}/a%20b/c%23.yaml"))
    assert repository.find_commit(SHA).endswith(f"{commit}{SHA}" if commit else "")
    assert bool(repository.find_commit(SHA)) is bool(commit)
    comparison = repository.find_comparison("abc1234", SHA)
    assert bool(comparison) is bool(commit)
    assert "#" not in repository.find_line(SHA, "c.yaml", None)
    assert found.startswith(repository.find_start(SHA, "a b/")) or "/8/" in found


@pytest.mark.parametrize(
    ("address", "comparison"),
    [
        ("https://github.com/o/r", f"/o/r/compare/abc1234...{SHA}"),
        ("https://gitlab.com/o/r", f"/o/r/-/compare/abc1234...{SHA}"),
        ("https://codeberg.org/o/r", f"/o/r/compare/abc1234...{SHA}"),
        ("https://bitbucket.org/o/r", f"/o/r/branches/compare/{SHA}..abc1234"),
    ],
)
def test_comparisons(address: str, comparison: str) -> None:
    """Each code host has a page of what changed between two commits, and none with a rollback."""
    repository = Repository.parse(address)

    assert repository.find_comparison("abc1234", SHA).endswith(comparison)
    assert repository.find_comparison("rollback of x", SHA) == ""
    assert repository.find_comparison("abc1234", None) == ""


def test_a_path_in_a_fragment_stays_without_a_line() -> None:
    """Only the line is left out where none is known."""
    repository = Repository.parse("https://git.example/q#/{commit}/{path}")

    assert repository.find_line(SHA, "c.yaml", None) == f"https://git.example/q#/{SHA}/c.yaml"


def test_a_name_is_no_placeholder() -> None:
    """A file may be called as a placeholder, and text that is no UTF-8 still has an address."""
    found = Repository.parse("https://github.com/o/r").find_line(SHA, "{commit}\ud800.yaml", 1)

    assert found == f"https://github.com/o/r/blob/{SHA}/%7Bcommit%7D%3F.yaml#L1"


@pytest.mark.parametrize(
    ("commit", "is_id"),
    [(SHA, True), ("9fceb02", True), (None, False), ("main", False), ("9fceb02 ", False)],
)
def test_commit_ids(commit: str | None, *, is_id: bool) -> None:
    """Only the id of a commit has a page: a rollback, a branch and an unknown commit have none."""
    assert is_commit_id(commit) is is_id
    assert bool(Repository.parse("https://github.com/o/r").find_commit(commit)) is is_id


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("github.com/o/r", "not the web address"),
        ("git@github.com:o/r.git", "not the web address"),
        ("javascript:alert(1)//github.com/o/r", "not the web address"),
        ("https://github.com", "not the web address"),
        ("https://github.com:port/o/r", "not the web address"),
        ("https://[github.com/o/r", "not the web address"),
        ("https://github.com/o/r\u202e", "not the web address"),
        ("https://github.com/o/r 'x'", "not the web address"),
        ("https://github.com/" + "r" * 500, "not the web address"),
        ("https://github.com/o", "ends with /OWNER/REPOSITORY"),
        ("https://github.com/o//r", "ends with /OWNER/REPOSITORY"),
        ("https://github.com/o/r/tree/main", "ends with /OWNER/REPOSITORY"),
        ("https://github.com/o/r/blob/main/demo/cluster.yaml", "ends with /OWNER/REPOSITORY"),
        ("https://codeberg.org/o/r/src/branch/main", "ends with /OWNER/REPOSITORY"),
        ("https://gitlab.com/o", "ends with /GROUP/REPOSITORY"),
        ("https://gitlab.com/o/r/-/tree/main", "ends with /GROUP/REPOSITORY"),
        ("https://gitlab.com/o/r/blob/main/a.yaml", "ends with /GROUP/REPOSITORY"),
        ("https://bitbucket.acme.example/projects/K/repos/q", "ends with /OWNER/REPOSITORY"),
        ("https://github.com/o/r#readme", "it has a '?' or a '#'"),
        ("https://anna:secret@github.com/o/r", "has a user name or a password"),
        ("https://notgithub.example/o/r", "does not show which kind"),
        ("https://git.example/{commit}/{file}", "only placeholders"),
        ("https://git.example/{commit}", "needs {path}"),
        ("https://git.example/q#L{line}", "needs {commit} and {path}"),
        ("https://{commit}.example/{path}/{commit}", "name of the host"),
    ],
)
def test_what_is_no_address(text: str, why: str) -> None:
    """Anything else is refused with a reason, which repeats no password."""
    with pytest.raises(ValueError, match=r"address|show|placeholder") as refused:
        Repository.parse(text)

    assert why in str(refused.value)
    assert "secret" not in str(refused.value)
