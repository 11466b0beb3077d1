"""The commit of a run: a cluster's files as read, compared with the checked-out commit."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha1, sha256
from itertools import chain, islice
from pathlib import Path
from time import monotonic, sleep

from msgspec import Struct

from quota_ops.desired import cluster_file, code_owners, files, read
from quota_ops.desired.git.repository import Entry, Repository
from quota_ops.desired.shared import read_shared_files, shared_folder, shared_name
from quota_ops.desired.yaml.source import MAX_FILE_BYTES, Problems, unread
from quota_ops.model.commit import (
    MOST_COMMITS,
    MOST_UNCOMMITTED,
    Changes,
    Commit,
    CommitSource,
    Provenance,
    is_git,
    named,
)
from quota_ops.model.errors import GitFailed, InvalidDesiredState, InvalidInput, find_limit
from quota_ops.model.finding import Problem
from quota_ops.model.usage.recorded import FindUse

_LEFT_OUT = (
    "The checkout lacks this file of its commit, so its quotas would look removed.",
    "Check it out (git sparse-checkout disable, git update-index --no-skip-worktree FILE).",
)
_SHARED = shared_name("")
_SHA_1 = 40
"""The digits of an object's id where a repository uses SHA-1; otherwise it is SHA-256."""
_SETTLED_AFTER = 10.0
_PAUSE = 0.1


class BundleVersion(Struct, frozen=True):
    """The version of a DAG bundle as Airflow states it, and where its files are.

    `bare` is the bundle's own repository; None when it has none.
    """

    name: str
    root: Path
    bare: Path | None


def read_with_commit(
    folder: Path,
    *,
    given: str | None = None,
    bundle: BundleVersion | None = None,
    must_know: bool = False,
    at: str | None = None,
    skip_invalid: bool = False,
    find_use: FindUse | None = None,
) -> tuple[read.Desired, Provenance]:
    """Read a cluster's folder as `read_cluster` does, and find the commit with exactly these bytes.

    A commit that is `given` takes precedence. Raises what `read_cluster` does, InvalidDesiredState
    also if the checkout lacks a file of its commit; InvalidInput if the files keep changing;
    GitFailed if Git fails, `must_know` is set and no commit is given.
    """
    until = monotonic() + _SETTLED_AFTER
    while True:
        desired = read.read_cluster(folder, at=at, skip_invalid=skip_invalid, find_use=find_use)
        try:
            found = _find_commit(folder, desired.contents, bundle)
        except GitFailed as error:
            if must_know and given is None:
                raise
            found = Provenance(failure=error.message)
        if not found.uncommitted or _is_settled(folder, desired):
            found = found if given in {None, found.commit} else Provenance.given(given)
            return desired, _add_author(folder, found, bundle)
        if monotonic() > until:
            raise InvalidInput(
                f"The files of {folder} keep changing while quota-ops reads them.",
                "Retry when Git has finished. If no Git process is running, remove the index.lock "
                "that a killed one left in the .git folder.",
            )
        sleep(_PAUSE)


def list_changes(
    folder: Path,
    provenance: Provenance,
    applied: Sequence[str],
    equal: Sequence[str],
    *,
    written: str | None,
    bundle: BundleVersion | None,
) -> Changes:
    """List the commits that changed a cluster's files since the last applied one, up to a run's.

    If none was `applied` before, all of them count. A run of a commit that contains one of `equal`
    contains what the last one of `applied` declares. `written` is a later commit, which a run wrote
    and did not verify.
    """
    own, since = provenance.commit, applied[-1] if applied else None
    found, failure = list[Commit](), None
    repository = _find_repository(folder, bundle)
    if repository is None:
        last = next(filter(is_git, reversed(applied)), None)
        why = "the files of this run are in no Git repository"
        return Changes(since, failure=why, uncompared=written or last)
    paths = [path for path in (folder, shared_folder(folder)) if path.exists()]
    # A commit that a person passed is compared with nothing, so the one that is checked out counts.
    is_given = provenance.source is CommitSource.GIVEN
    files = "HEAD" if is_given and bundle is None else own or provenance.base
    lacks, uncompared = _find_missing(repository, files, applied, equal, written)
    has_own = True
    checked_out: str | None = None
    try:
        checked_out = repository.head() if lacks and files == "HEAD" else None
        has_own = own is None or not is_given or repository.has(own)
        if own is None:
            failure = "the files of this run are not those of a commit"
        elif since is not None and not is_git(since):
            failure = "it is not a commit"
        elif missing := [
            commit for commit in (since, own) if commit and not repository.has(commit)
        ]:
            how = "git fetch; in a shallow clone, git fetch --unshallow"
            failure = f"this repository lacks {named(missing[0])}: fetch it ({how})"
        else:
            found = repository.commits_since(since, repository.resolve(own), paths)
    except GitFailed as error:
        failure = error.message
    commits = tuple(found[:MOST_COMMITS])
    return Changes(since, commits, len(found), failure, lacks, checked_out, uncompared, has_own)


def _find_missing(
    repository: Repository,
    own: str | None,
    applied: Sequence[str],
    equal: Sequence[str],
    written: str | None,
) -> tuple[str | None, str | None]:
    """Return the commit that was written or applied last, if it is not in the history of another.

    First if that is certain, second if it is unknown. Nothing is compared with a name that is no
    commit of the repository: the one applied before it counts.
    """
    commits = [commit for commit in reversed(applied) if is_git(commit)]
    last = written or next(iter(commits), None)
    if own is None or last is None:
        return None, None
    try:
        for names, same in (([written] if written else [], ()), (commits, equal)):
            if last := next(filter(repository.may_have, names), None):
                contains = _contains_any(repository, own, (last, *filter(is_git, same)))
                if not contains:
                    return (None, last) if contains is None else (last, None)
    except GitFailed:
        return None, last
    return None, None


def _contains_any(repository: Repository, own: str, commits: Iterable[str]) -> bool | None:
    """Return whether a commit contains one of others; None if a clone cannot tell."""
    is_certain = True
    for commit in commits:
        contains = repository.contains(own, commit)
        if contains:
            return True
        is_certain &= contains is not None
    return False if is_certain and repository.has(own) else None


def _find_repository(folder: Path, bundle: BundleVersion | None) -> Repository | None:
    """Return the repository of a folder, or that of its DAG bundle."""
    repository = Repository.of_checkout(folder)
    if repository is None and bundle is not None and bundle.bare is not None:
        return Repository.of_export(folder, bundle.bare, bundle.root)
    return repository


def find_path(folder: Path, bundle: BundleVersion | None) -> str | None:
    """Return the path of a folder below the root of its repository, `a/b`; None outside any.

    That is the root of its checkout or, without one, of the bundle. It is empty for the root.
    """
    place = folder.resolve()
    above = (path for path in (place, *place.parents) if os.path.lexists(path / ".git"))
    root = next(above, bundle.root if bundle else None)
    return None if root is None else "/".join(place.relative_to(root).parts)


def read_whole_checkout(folder: Path, *, at: str | None = None) -> read.Desired:
    """Read a cluster's folder as `read_cluster` does, from a checkout that leaves out no file.

    One that does is InvalidDesiredState, and so is a CODEOWNERS that disagrees with cluster.yaml.
    Nothing else is compared with Git, which need not be installed.
    """
    try:
        desired = read.read_cluster(folder, at=at)
    except InvalidDesiredState as invalid:
        raise invalid.adding(_find_left_out(folder)) from None
    compared = code_owners.find_disagreements(folder, find_path(folder, None), desired.policy)
    if problems := [*_find_left_out(folder), *compared]:
        raise InvalidDesiredState(problems, files=desired.files, quotas=len(desired.rows))
    return desired


def _find_left_out(folder: Path) -> list[Problem]:
    """Find the files that a checkout leaves out; none if Git fails or the folder is a link."""
    try:
        with files.open_cluster_folder(folder):
            checkout = Repository.of_checkout(folder)
            skipped = frozenset() if checkout is None else checkout.skipped()
    except (GitFailed, OSError):
        return []
    absent = (
        path for path in skipped if files.is_read(path) and not os.path.lexists(folder / path)
    )
    return list(_report_missing(folder, {}, absent))


def _find_commit(
    folder: Path, contents: Mapping[str, bytes], bundle: BundleVersion | None
) -> Provenance:
    if (checkout := Repository.of_checkout(folder)) is not None:
        commit = checkout.head()
        entries = {} if commit is None else checkout.entries(commit)
        lost = _find_unread(entries, contents)
        skipped = checkout.skipped() if lost else frozenset()
        lacking = [path for path in lost if path in skipped]
    elif bundle is not None and bundle.bare is not None:
        checkout = Repository.of_export(folder, bundle.bare, bundle.root)
        commit = checkout.resolve(bundle.name)
        entries = checkout.entries(commit)
        lacking = lost = _find_unread(
            entries, contents
        )  # as by sparse_dirs: no file is deleted here
    elif bundle is not None:
        return Provenance(bundle.name, CommitSource.AIRFLOW)
    else:
        return Provenance()
    if problems := list(_report_missing(folder, entries, lacking)):
        raise InvalidDesiredState(problems, files=len(contents), quotas=0)
    changed = (
        path
        for path, content in contents.items()
        if not path.startswith(_SHARED)
        if not _is_committed(path, content, entries.get(path), checkout)
    )
    shared = _find_changed_shared(folder, contents, commit, bundle)
    if uncommitted := tuple(sorted(islice(chain(lost, changed, shared), MOST_UNCOMMITTED))):
        return Provenance(uncommitted=uncommitted, base=commit)
    return Provenance(commit, CommitSource.COMPARED)


def _find_changed_shared(
    folder: Path, contents: Mapping[str, bytes], commit: str | None, bundle: BundleVersion | None
) -> Iterator[str]:
    """Yield the shared files that the commit does not have with these bytes."""
    shared = {path: content for path, content in contents.items() if path.startswith(_SHARED)}
    if not shared:
        return
    place = shared_folder(folder)
    repository = _find_repository(place, bundle)
    entries = {} if repository is None or commit is None else repository.entries(commit)
    for path, content in shared.items():
        entry = entries.get(path.removeprefix(_SHARED))
        if repository is None or not _is_committed(
            path.removeprefix(_SHARED), content, entry, repository
        ):
            yield path


def _add_author(folder: Path, provenance: Provenance, bundle: BundleVersion | None) -> Provenance:
    """Add the author of the commit, if the repository of the folder has that commit."""
    repository = _find_repository(folder, bundle)
    if repository is not None and provenance.commit is not None:
        with suppress(GitFailed):
            commit = repository.resolve(provenance.commit)
            return replace(provenance, author=repository.author(commit))
    return provenance


def _find_unread(entries: Mapping[str, Entry], contents: Mapping[str, bytes]) -> list[str]:
    """List the paths of a commit that quota-ops reads, but that were not in the folder."""
    return [path for path in entries if path not in contents and files.is_read(path)]


def _is_committed(path: str, content: bytes, entry: Entry | None, repository: Repository) -> bool:
    """Whether a commit has these bytes, directly or after Git's filters (line ends, LFS)."""
    if entry is None or not entry.is_file:
        return False
    algorithm = sha1 if len(entry.object_id) == _SHA_1 else sha256
    blob = algorithm(b"blob %d\0" % len(content), usedforsecurity=False)
    blob.update(content)
    same = entry.object_id == blob.hexdigest()
    return same or entry.object_id == repository.blob_id(path, content)


def _report_missing(
    folder: Path, entries: Mapping[str, Entry], lacking: Iterable[str]
) -> Iterator[Problem]:
    for path in sorted(lacking):
        yield unread(str(folder / path), *_LEFT_OUT)
    for path, entry in entries.items():
        if entry.is_submodule and files.is_read(path):
            yield unread(str(folder / path), *files.NESTED)


def _is_settled(folder: Path, desired: read.Desired) -> bool:
    """Whether the files are still as they were read, and no Git process is changing them.

    The lock is checked first, so that a Git process that ends in between is noticed by its files.
    """
    checkout, policy = Repository.of_checkout(folder), desired.policy
    if checkout is not None and checkout.is_locked():
        return False
    inventory = policy.inventory_in_git
    try:
        with files.open_cluster_folder(folder) as opened:
            names = (
                cluster_file.CLUSTER_YAML,
                *files.list_quotas_files(opened, Problems(), inventory),
            )
            now = {name: opened.read(name, MAX_FILE_BYTES) for name in names}
            clients = files.list_inventory_files(opened, inventory) if inventory else ()
            now |= {name: opened.read(name, files.MAX_INVENTORY_BYTES) for name in clients}
            now |= dict(read_shared_files(folder, tuple(desired.contents)))
    except OSError as error:
        if find_limit(error):
            raise
        return False
    return now == desired.contents
