"""A branch and its merge base: which clusters it changes, and their files in both commits."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from msgspec import Struct
from msgspec.structs import replace

from quota_ops.desired.cluster_file import CLUSTER_YAML
from quota_ops.desired.code_owners import PLACES, find_disagreements
from quota_ops.desired.files import SHARED, cluster_folders, is_read
from quota_ops.desired.git.repository import Repository
from quota_ops.desired.read import find_policy, read_cluster
from quota_ops.model.errors import InvalidDesiredState, InvalidInput
from quota_ops.model.finding import Problem
from quota_ops.model.quotas.entity import USER, Entity
from quota_ops.model.quotas.rows import Key
from quota_ops.model.runs.review import BaseFiles, Unjudged
from quota_ops.model.text import name_first
from quota_ops.model.usage.recorded import FindUse

_REMEDY = "Merge the target branch into this one, and run the review again."
_FEW = 3


class Merge(Struct, frozen=True):
    """The clusters' files after a merge; `changed` are the paths that differ from the target.

    They and `conflicts` are paths from the desired state.
    """

    files: Mapping[str, BaseFiles]
    changed: tuple[str, ...]
    conflicts: tuple[str, ...] = ()

    def find_doubt(
        self, name: str, base: BaseFiles | None, head: BaseFiles | None, target: BaseFiles | None
    ) -> Unjudged | None:
        """Return why the changes from `base` to `head` are not those of the merge, if they are not.

        A merge goes line by line. It can drop, add or mix quotas, with or without several merge
        bases, and two valid sides can become invalid.
        """
        merged = self.files.get(name)
        if conflicts := [
            path for path in self.conflicts if path.partition("/")[0] in {name, SHARED}
        ]:
            what = "it conflicts with its target branch"
            return Unjudged(what, ", ".join(conflicts[:_FEW]), _REMEDY)
        if target is not None and target.invalid:
            what = "the files of its target branch are invalid"
            return Unjudged(what, target.invalid, f"Repair the target branch. {_REMEDY}")
        if merged is not None and merged.invalid:
            what = "merged with its target branch, the files are invalid"
            return Unjudged(what, merged.invalid, _REMEDY)
        if base is not None and base.invalid:
            return None  # the review reports an invalid merge base anyway
        ours, theirs = _find_changes(base, head), _find_changes(target, merged)
        after = _list_values(merged)
        other = {key for key, value in theirs.items() if key not in ours or ours[key] != value}
        other |= {key for key, value in ours.items() if after.get(key) != value}
        if not other:
            return None
        names = name_first(map(" ".join, sorted(other)), _FEW)
        what = "merging it changes other values than this branch alone"
        return Unjudged(what, names, _REMEDY)


def _find_changes(before: BaseFiles | None, after: BaseFiles | None) -> dict[Key, Any]:
    """Return the values and settings that differ, as they are afterwards; None for none."""
    old, new = _list_values(before), _list_values(after)
    return {key: new.get(key) for key in old | new if old.get(key) != new.get(key)}


def _list_values(files: BaseFiles | None) -> dict[Key, Any]:
    """Return all values and settings; the name of the folder is none."""
    if files is None or files.policy is None:
        return {}
    values: dict[Key, Any] = {key: row.declared for key, row in files.rows.items()}
    settings = files.policy.as_json().items()
    return values | {
        Key(CLUSTER_YAML, name): value for name, value in settings if name != "cluster"
    }


USUAL_TARGETS = ("origin/HEAD", "origin/main", "origin/master", "main", "master")
"""The branches that a branch is compared with if no target is named, the first that exists."""
_ALL_BRANCHES = "origin '+refs/heads/*:refs/remotes/origin/*'"
"""What `git fetch` fetches so that a clone of one branch has the target too."""
_SHALLOW = (
    "Fetch the history: on GitHub fetch-depth: 0 in actions/checkout, on GitLab GIT_DEPTH: 0, "
    f"elsewhere git fetch --unshallow {_ALL_BRANCHES}"
)
_NO_CLUSTER = (
    "If the branch removes the last cluster: its quotas stay on the cluster, unmanaged. To see "
    "that in the review, keep the folder, for example with a README.md in it."
)


class Branch(Struct, frozen=True):
    """The checked-out branch and the commit where it left its target; paths as in `Repository`."""

    repository: Repository
    desired_state: Path
    prefix: str
    """The path of the desired state below the root of the repository: `quotas/`, or empty."""
    head: str
    base: str
    target: str
    target_name: str
    """As it was given: a branch, or another revision."""
    is_crossed: bool = False
    """Whether there are several merge bases, of which `base` is one."""
    find_use: FindUse | None = None
    """The use of the members of groups; without it, their shares are by weight alone."""

    @classmethod
    def find(cls, desired_state: Path, targets: Sequence[str]) -> Self:
        """Find the merge base of HEAD and the first of the targets that exists.

        Raises InvalidInput outside a checkout, before the first commit, or without a merge base,
        which a shallow clone may lack; GitFailed if Git fails.
        """
        repository = Repository.of_checkout(desired_state)
        if repository is None or not desired_state.is_dir():
            is_there = desired_state.is_dir()
            what = "in a Git checkout" if is_there else "a folder"
            remedy = "Run this in a checkout, or pass the folder with --desired-state."
            raise InvalidInput(
                f"{desired_state} is not {what}, so there is no branch to review",
                remedy if is_there or repository is None else f"{remedy} {_NO_CLUSTER}",
            )
        head = repository.head()
        if head is None:
            raise InvalidInput(
                f"the repository of {desired_state} has no commit, so there is no branch to review",
                "Commit the files first.",
            )
        for name in targets:
            if target := repository.find_commit(name):
                break
        else:
            fetch = _SHALLOW if repository.is_shallow() else f"Run git fetch {_ALL_BRANCHES}"
            raise InvalidInput(
                f"this checkout has no commit named {' or '.join(targets)} to compare with",
                f"{fetch}, or pass another commit with --base.",
            )
        bases = repository.merge_bases(target)
        if not bases and repository.is_shallow():
            raise InvalidInput(
                f"this clone is shallow: it lacks the merge base of HEAD and {name}", f"{_SHALLOW}."
            )
        if not bases:
            raise InvalidInput(
                f"there is no merge base of HEAD and {name}",
                "Pass a commit that the branch began from with --base.",
            )
        return cls(
            *(repository, desired_state, repository.prefix(), head, bases[0], target, name),
            len(bases) > 1,
        )

    def list_changed(self) -> list[str]:
        """List the changed files that quota-ops reads, committed or not, below the desired state.

        A file at the top of the desired state is in no cluster, and listed too.
        """
        changed = self.repository.changed_since(self.base)
        return [path for path in changed if is_read(path.partition("/")[2] or path)]

    def find_code_owner_problems(self) -> Iterator[Problem]:
        """Yield where CODEOWNERS and a cluster.yaml disagree, if the branch changes one of them."""
        of_base, of_head = (
            self.repository.entries(commit, "") for commit in (self.base, self.head)
        )
        is_changed = any(of_base.get(place) != of_head.get(place) for place in PLACES)
        changed = self.list_changed()
        for folder in cluster_folders(self.desired_state):
            policy = find_policy(folder)
            if policy and (is_changed or f"{folder.name}/{CLUSTER_YAML}" in changed):
                yield from find_disagreements(folder, f"{self.prefix}{folder.name}", policy)

    def place_problems(self, problems: Sequence[Problem]) -> Iterator[Problem]:
        """Yield each problem, at its other place if the branch changes that line alone."""
        known = (
            self.repository.entries(self.base) if any(problem.other for problem in problems) else {}
        )

        @cache
        def list_lines(file: str) -> list[range] | None:
            path = file.removeprefix(f"{self.desired_state}/")
            is_new = path not in known
            return None if is_new else self.repository.lines_changed_since(self.base, path)

        def is_changed(problem: Problem) -> bool:
            lines = list_lines(problem.file)
            return lines is None or any(problem.line in line for line in lines)

        for problem in problems:
            yield (
                problem.other
                if problem.other and not is_changed(problem) and is_changed(problem.other)
                else problem
            )

    def read_commit(self, commit: str, clusters: Iterable[str]) -> Mapping[str, BaseFiles]:
        """Return what a commit or tree declares for each of these clusters that it contains."""
        with self._export(commit, clusters) as root:
            folders = [root / name for name in sorted(clusters) if os.path.lexists(root / name)]
            return {folder.name: _read_files(folder, self.find_use) for folder in folders}

    def read_merge(self, clusters: Iterable[str]) -> Merge | None:
        """Merge HEAD with the target, and return what those clusters and all changed ones declare.

        None if this Git cannot merge without a checkout: before 2.38. Nothing is written to the
        repository.
        """
        with TemporaryDirectory(prefix="quota-ops-merge-") as objects:
            repository = self.repository.with_objects(Path(objects))
            merged = repository.merge_tree(self.head, self.target)
            if merged is None:
                return None
            tree, conflicts = merged
            parts = (
                (path, *path.partition("/"))
                for path in repository.changed_between(self.target, tree)
            )
            changed = tuple(path for path, _, _, below in parts if below and is_read(below))
            branch = replace(self, repository=repository)
            tops = {path.partition("/")[0] for path in changed} - {SHARED}
            files = branch.read_commit(tree, {*clusters, *tops})
        return Merge(files, changed, tuple(conflicts))

    def find_users(self, users: Collection[str], but: str) -> Mapping[str, list[str]]:
        """Return the clusters, other than `but`, that declare quotas of some users in HEAD."""
        entries = self.repository.entries(self.head)
        others = {path: entry for path, entry in entries.items() if path.partition("/")[0] != but}
        contents = self.repository.read_blobs([entry.object_id for entry in others.values()])
        names = [user.encode() for user in users]
        may_have = {
            path.partition("/")[0]
            for path, entry in others.items()
            if "/" in path and any(name in contents[entry.object_id] for name in names)
        }
        found: dict[str, list[str]] = {}
        for cluster, files in sorted(self.read_commit(self.head, may_have).items()):
            for user in list_users(files.rows) & set(users):
                found.setdefault(user, []).append(cluster)
        return found

    def find_earlier_folder(self, commit: str) -> str | None:
        """Return the folder of the desired state in a commit, from the root, if it has moved since.

        It is the only one in which the commit has the cluster.yaml of a folder of today. None if
        the commit has files in the folder of today.
        """
        if self.repository.entries(commit):
            return None
        found = {
            path.removesuffix(f"{folder.name}/{CLUSTER_YAML}").removesuffix("/")
            for path in self.repository.entries(commit, "")
            for folder in cluster_folders(self.desired_state)
            if f"/{path}".endswith(f"/{folder.name}/{CLUSTER_YAML}")
        }
        return found.pop() if len(found) == 1 else None

    def count_missing(self) -> int:
        """Return how many commits of the target the branch does not have."""
        return self.repository.count_missing(self.target)

    @contextmanager
    def _export(self, commit: str, clusters: Iterable[str]) -> Iterator[Path]:
        """Write the files of some clusters in a commit to a folder, for the block.

        A link is written as one that leads nowhere, so that reading it is a problem there too.
        """
        entries = self.repository.entries(commit)
        if not entries and (earlier := self.find_earlier_folder(commit)) is not None:
            entries = self.repository.entries(commit, earlier)
        tops = {*clusters, SHARED}
        wanted = {path: entry for path, entry in entries.items() if path.partition("/")[0] in tops}
        contents = self.repository.read_blobs([entry.object_id for entry in wanted.values()])
        with TemporaryDirectory(prefix="quota-ops-base-") as folder:
            root = Path(folder).resolve()
            for path, entry in wanted.items():
                place = root / path
                place.parent.mkdir(parents=True, exist_ok=True)
                if entry.is_file:
                    place.write_bytes(contents[entry.object_id])
                elif not entry.is_submodule:
                    place.symlink_to("nowhere")
            yield root


def list_users(rows: Iterable[Key]) -> set[str]:
    """Return the users that have a quota of their own, alone or with a client id."""
    entities = {key.entity for key in rows if USER in key.entity}
    return {
        name
        for entity in entities
        if (name := Entity.parse(entity).as_dict().get(USER)) is not None
    }


def _read_files(folder: Path, find_use: FindUse | None) -> BaseFiles:
    """Read a cluster's exported folder."""
    try:
        desired = read_cluster(folder, find_use=find_use)
    except InvalidDesiredState as error:
        first = str(error.problems[0]).replace(f"{folder.parent}/", "")
        return BaseFiles(find_policy(folder), {}, (), folder.name, first)
    rows = {row.id: row for row in desired.rows}
    coming = {row.id: row for row in desired.coming}
    return BaseFiles(desired.policy, rows, desired.findings, folder.name, coming=coming)
