"""Git commands, isolated from the environment and from fetches that could change their result."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from quota_ops.model.commit import Commit
from quota_ops.model.errors import GitFailed

_PATIENCE = 10.0
"""Seconds that one call of Git may take; each takes milliseconds on a local disk."""
_SETTINGS = ("GIT_CONFIG_", "GIT_EXEC_PATH")
"""Inherited variables that stay: where Git's own settings are, `safe.directory` among them.

The others could name another repository, index or set of objects than the checkout's.
"""
_OVERRIDES = {
    "GIT_ALLOW_PROTOCOL": "none",  # before Git 2.44 nothing else keeps a partial clone from a fetch
    "GIT_DISCOVERY_ACROSS_FILESYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}
_CONFLICTS, _USAGE = 1, 129
"""Exit codes of `git merge-tree`: the merge has conflicts; this Git does not know an option."""
_FATAL = 128
"""The exit code of Git for a name that is not valid, or an object that it lacks."""
_COMMIT_ID = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")
_HUNK = re.compile(rb"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_SAFE_DIRECTORY = "safe.directory"


class Entry(Struct, frozen=True):
    """An entry of a commit at a path: its mode in octal digits, and the id of its object."""

    mode: str
    object_id: str

    @property
    def is_file(self) -> bool:
        """Whether it is a plain file: no link, and no submodule."""
        return self.mode.startswith("100")

    @property
    def is_submodule(self) -> bool:
        """Whether it names a commit of another repository."""
        return self.mode == "160000"


class Repository(Struct, frozen=True):
    """The repository of a folder; paths are those below the folder, in both directions.

    Every method raises GitFailed when Git refuses, is not installed or takes too long.
    """

    folder: Path
    options: tuple[str, ...] = ()
    objects: dict[str, str] = {}
    """Variables that name another folder for new objects."""

    @classmethod
    def of_checkout(cls, folder: Path) -> Self | None:
        """Find the repository in whose checkout a folder is; None outside any checkout."""
        place = folder.resolve()
        above = (place, *place.parents)
        return cls(place) if any(os.path.lexists(path / ".git") for path in above) else None

    @classmethod
    def of_export(cls, folder: Path, bare: Path, root: Path) -> Self:
        """Return a bare repository for a folder below `root` that has the files of a commit."""
        return cls(folder.resolve(), (f"--git-dir={bare}", f"--work-tree={root}"))

    def head(self) -> str | None:
        """Return the id of the checked-out commit; None before the first commit."""
        return self._run("rev-parse", "--revs-only", "HEAD").decode().strip() or None

    def resolve(self, revision: str) -> str:
        """Return the commit id of a revision."""
        return self._run("rev-parse", "--verify", f"{revision}^{{commit}}").decode().strip()

    def author(self, commit: str) -> str:
        """Return the author of a commit id: `Anna <anna@example.com>`."""
        shown = self._run("log", "-1", "--no-show-signature", "--format=%an <%ae>", commit)
        return shown.decode(errors="replace").strip()

    def commits_since(self, since: str | None, commit: str, paths: Sequence[Path]) -> list[Commit]:
        """List the commits that change these paths, the newest first, up to a commit.

        Commits that `since` already has are not listed.
        """
        log = ("log", "-z", "--no-show-signature", "--format=%H%x00%an <%ae>%x00%s")
        revisions = f"{since}..{commit}" if since else commit
        shown = self._run(*log, revisions, "--", *map(str, paths))
        fields = iter(shown.decode(errors="replace").split("\0")[:-1])
        return list(map(Commit, fields, fields, fields))

    def entries(self, commit: str, folder: str | None = None) -> dict[str, Entry]:
        """List the entries of a commit below the folder, links and submodules included.

        Another `folder` is named from the root.
        """
        where = [commit] if folder is None else ["--full-tree", f"{commit}:{folder}"]
        return dict(map(_entry, _records(self._run("ls-tree", "-r", "-z", *where))))

    def skipped(self) -> frozenset[str]:
        """List the paths that Git leaves out of the checkout: sparse and skip-worktree files."""
        listed = self._run("ls-files", "-t", "-z")
        return frozenset(
            os.fsdecode(record[2:]) for record in _records(listed) if record[:1] == b"S"
        )

    def blob_id(self, path: str, content: bytes) -> str:
        """Return the id of these bytes in a commit at a path, after attributes and filters."""
        return self._run("hash-object", "--stdin", "--path", path, content=content).decode().strip()

    def list_all(self, *endings: str) -> list[str]:
        """List the files of the checkout with these endings, from its root; no ignored ones."""
        paths = (f":(top,glob)**/*{ending}" for ending in endings)
        names = ("-z", "--cached", "--others", "--exclude-standard", "--full-name", "--")
        return sorted(
            {os.fsdecode(path) for path in _records(self._run("ls-files", *names, *paths))}
        )

    def prefix(self) -> str:
        """Return the path of the folder below the root of the checkout: `a/b/`, or empty."""
        return os.fsdecode(self._run("rev-parse", "--show-prefix").removesuffix(b"\n"))

    def root(self) -> Path:
        """Return the top folder of the checkout."""
        return Path(os.fsdecode(self._run("rev-parse", "--show-toplevel").removesuffix(b"\n")))

    def is_shallow(self) -> bool:
        """Whether the clone lacks the beginning of its history."""
        return self._run("rev-parse", "--is-shallow-repository").strip() == b"true"

    def find_commit(self, name: str) -> str | None:
        """Return the commit id of a branch or another revision; None if there is none.

        A tag counts with `tags/` before its name only: everybody who may push can add one with the
        name of a branch.
        """
        commits = (name, f"refs/remotes/{name}", f"refs/heads/{name}")
        tag = f"refs/tags/{re.split('[~^@:]', name, maxsplit=1)[0]}"
        # It also lists the refs below these names.
        listed = self._run("for-each-ref", "--format=%(objectname) %(refname)", *commits, tag)
        lines = os.fsdecode(listed).split("\n")  # a name can contain other white space
        found = {ref: commit for commit, _, ref in (line.partition(" ") for line in lines)}
        if ref := next(filter(found.get, commits), None):
            return found[ref]
        if tag in found:
            return None
        parse = ("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        return self._run(*parse, accepted=(0, 1, _FATAL)).decode().strip() or None

    def merge_bases(self, commit: str) -> list[str]:
        """Return the merge bases of HEAD and another commit."""
        found = self._run("rev-parse", "--revs-only", f"{commit}...HEAD").decode().split()
        return [line[1:] for line in found if line.startswith("^")]

    def with_objects(self, folder: Path) -> Self:
        """Return the same repository, with a folder that receives all objects that Git writes."""
        own = self._run("rev-parse", "--git-path", "objects").removesuffix(b"\n")
        return replace(
            self,
            objects={
                "GIT_OBJECT_DIRECTORY": str(folder),
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(self.folder / os.fsdecode(own)),
            },
        )

    def merge_tree(self, one: str, other: str) -> tuple[str, list[str]] | None:
        """Return the tree of the merge of two commits, and the paths with conflicts.

        A path that is not below the folder begins with `../`. None before Git 2.38.
        """
        merge = ("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z")
        found = list(_records(self._run(*merge, one, other, accepted=(0, _CONFLICTS, _USAGE))))
        return (found[0].decode(), list(map(os.fsdecode, found[1:]))) if found else None

    def changed_between(self, one: str, other: str) -> list[str]:
        """List the paths that differ between two commits or trees."""
        compare = ("diff-tree", "-r", "--name-only", "--no-renames", "--relative", "-z")
        return sorted(map(os.fsdecode, _records(self._run(*compare, one, other, "--"))))

    def count_missing(self, target: str) -> int:
        """Return how many commits another commit has that HEAD does not have."""
        return int(self._run("rev-list", "--count", f"HEAD..{target}"))

    def contains(self, commit: str, other: str) -> bool | None:
        """Return whether a commit contains another; None if a shallow clone cannot tell.

        It does not if the repository lacks the first.
        """
        if self.has(other):
            beside = ("rev-list", "--count", "--max-count=1", f"{commit}..{other}")
            if self._run(*beside, accepted=(0, _FATAL)).strip() == b"0":
                return True
        return None if self.is_shallow() else False

    def may_have(self, name: str) -> bool:
        """Return whether a name may be a commit: whole ids are, even where history was rewritten.

        So is every name in a shallow clone, which lacks tags and branches.
        """
        return bool(_COMMIT_ID.fullmatch(name)) or self.has(name) or self.is_shallow()

    def has(self, commit: str) -> bool:
        """Return whether the repository has a commit."""
        find = ("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}")
        return bool(self._run(*find, accepted=(0, 1, _FATAL)))

    def changed_since(self, commit: str) -> list[str]:
        """List the paths that differ from a commit in the checkout, untracked ones included.

        A file whose times alone changed may be listed too.
        """
        changed = self._run(
            "diff-index", "--name-only", "--no-renames", "--relative", "-z", commit, "--", "."
        )
        untracked = self._run("ls-files", "--others", "-z", "--", ".")
        return sorted({os.fsdecode(record) for record in _records(changed + untracked)})

    def lines_changed_since(self, commit: str, path: str) -> list[range]:
        """List the lines, by numbers from 1, of a checked-out file that differ from a commit."""
        patch = self._run(
            "diff-index",
            "--patch",
            "--unified=0",
            "--text",
            "--no-ext-diff",
            "--no-textconv",
            "--no-renames",
            commit,
            "--",
            f":(literal){path}",
        )
        found = _HUNK.finditer(patch)
        return [range(int(hunk[1]), int(hunk[1]) + int(hunk[2] or 1)) for hunk in found]

    def read_blobs(self, object_ids: Sequence[str]) -> dict[str, bytes]:
        """Return the content of objects, as the commits have it."""
        if not object_ids:
            return {}
        names = "".join(f"{object_id}\n" for object_id in object_ids).encode()
        output, found, at = self._run("cat-file", "--batch", content=names), {}, 0
        for object_id in object_ids:
            end = output.index(b"\n", at)
            size = output[at:end].decode().partition(" ")[2].partition(" ")[2]
            if not size.isdigit():
                raise self._failure(f"it lacks the object {object_id}", _FETCH)
            found[object_id] = output[end + 1 : end + 1 + int(size)]
            at = end + 2 + int(size)
        return found

    def is_locked(self) -> bool:
        """Whether another Git process is changing the checkout now."""
        lock = self._run("rev-parse", "--git-path", "index.lock")
        return (self.folder / os.fsdecode(lock.removesuffix(b"\n"))).exists()

    def _run(self, *arguments: str, content: bytes = b"", accepted: Sequence[int] = (0,)) -> bytes:
        call = ["git", "-C", str(self.folder), *self.options, *arguments]
        try:
            with subprocess.Popen(
                call,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=_environment() | self.objects,
                start_new_session=True,  # a filter that Git started is ended with it
            ) as process:
                try:
                    output, complaint = process.communicate(content, timeout=_PATIENCE)
                except BaseException:
                    os.killpg(process.pid, signal.SIGKILL)
                    raise
        except FileNotFoundError:
            raise self._failure("git is not installed", "Install Git") from None
        except subprocess.TimeoutExpired:
            raise self._failure(f"git {arguments[0]} took more than {_PATIENCE:g} s") from None
        except OSError as error:
            raise self._failure(f"git cannot be run: {error.strerror}") from error
        if process.returncode not in accepted:
            message = complaint.decode(errors="replace")
            raise self._failure(_first_line(message), _remedy(message))
        return output

    def _failure(self, why: str, remedy: str | None = None) -> GitFailed:
        if remedy == _FETCH:
            return GitFailed(f"Git cannot read the commits of {self.folder}: {why}", remedy)
        first = remedy or f"Make this command succeed: git -C {self.folder} rev-parse HEAD"
        return GitFailed(
            f"Git cannot determine the commit of {self.folder}: {why}",
            f"{first}; or pass the commit with --commit.",
        )


def _environment() -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith(_SETTINGS)
    }
    return kept | _OVERRIDES


def _records(listed: bytes) -> Iterator[bytes]:
    return filter(None, listed.split(b"\0"))


def _entry(record: bytes) -> tuple[str, Entry]:
    about, _, path = record.partition(b"\t")
    mode, _, object_id = about.decode().split(" ")
    return os.fsdecode(path), Entry(mode, object_id)


_FETCH = (
    "Objects of a commit are missing or damaged: fetch them all, or use a clone without --filter "
    "and --depth."
)


def _first_line(message: str) -> str:
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return lines[0].removeprefix("fatal: ") if lines else "it gave no reason"


def _remedy(message: str) -> str | None:
    """Return how to get objects that are missing, or what Git recommends for another owner."""
    if "promisor remote" in message or "object" in message:
        return _FETCH
    advice = (line.strip() for line in message.splitlines() if _SAFE_DIRECTORY in line)
    return next((line for line in advice if line.startswith("git ")), None)
