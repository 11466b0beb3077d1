"""The folders that are clusters, and the files in them: YAML is read, Markdown is ignored."""

import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from difflib import get_close_matches
from pathlib import Path

from quota_ops.desired.cluster_file import CLUSTER_YAML, CLUSTER_YML
from quota_ops.desired.yaml.checkout import Entry, Folder, Kind, LinkError, open_folder
from quota_ops.desired.yaml.shapes import CLUSTER_FILE
from quota_ops.desired.yaml.source import LINK, NOT_A_FILE, Problems, not_opened, unread
from quota_ops.model.errors import InvalidDesiredState, InvalidInput, find_limit
from quota_ops.model.text import counted

MAX_FOLDERS = 20
"""How deep folders may be nested; teams need one or two levels."""
MAX_LISTED = 20_000
"""How many files and folders a cluster's folder may contain."""

YAML = (".yaml", ".yml")
_MARKDOWN = ".md"
_GIT = ".git"
DRAFT = ".quota-ops."
"""How the name of a file begins that a command writes; one that is killed may leave it."""
_GITS_FILES = frozenset(
    {
        ".git-blame-ignore-revs",
        ".gitattributes",
        ".gitignore",
        ".gitkeep",
        ".gitmodules",
        ".mailmap",
    }
)
"""Files of Git, which contain no quotas."""
SHARED = "_shared"
"""The folder beside the clusters with files that several of them use."""
NESTED = (
    "This is a separate Git repository or a submodule: no commit of the outer one has its files.",
    "Keep all files of a cluster in one repository.",
)
_FORGES = frozenset({".github", ".gitlab"})
"""Folders of GitHub and GitLab at the root of a repository, which may be a cluster's folder."""
_EXAMPLES = ", ".join(
    f"{field}: {CLUSTER_FILE.fields[field].example}" for field in CLUSTER_FILE.required
)
_LEAST = f"with at least {{{_EXAMPLES}}}."
_FIND_ID = "kafka-cluster.sh cluster-id prints its id."
_MOST_NAMES = 5
"""How many clusters an error lists."""
_RENAME = f"Rename {CLUSTER_YML} to {CLUSTER_YAML}."
_BESIDE = (
    f"The folder already has a {CLUSTER_YAML}.",
    f"Move its fields to {CLUSTER_YAML} and remove it. If it contains quotas, rename it.",
)


def open_cluster_folder(folder: Path) -> AbstractContextManager[Folder]:
    """Open a cluster's folder. Raises OSError like `open_folder` raises it."""
    return open_folder(folder, own=2)


def is_folder_or_link(path: Path) -> bool:
    """Whether a path is a cluster's folder, or a link is in its place or above it."""
    try:
        with open_cluster_folder(path):
            return True
    except LinkError:
        return True
    except (OSError, ValueError) as error:  # not a valid path, for example with a NUL byte
        if find_limit(error):
            raise
        return False


def cluster_folders(desired_state: Path, top: Path | None = None) -> tuple[Path, ...]:
    """List the clusters' folders by name: those that contain YAML at any depth.

    A folder without cluster.yaml, an unreadable folder and a link (unless it is named like a file)
    count too: to skip them would silently drop their quotas. A hidden folder counts if it has a
    cluster.yaml. No component below `top` may be a link, even without `.git`. InvalidInput if the
    desired state does not exist.
    """
    with _open_desired_state(desired_state, top) as folder:
        found = tuple(entry.name for entry in folder.entries() if _is_cluster(folder, entry))
    return tuple(desired_state / name for name in found)


def is_cluster(desired_state: Path, name: str, top: Path | None) -> bool:
    """Whether `cluster_folders` lists a folder of this name, without looking into the others."""
    with _open_desired_state(desired_state, top) as folder:
        return any(entry.name == name and _is_cluster(folder, entry) for entry in folder.entries())


def list_sibling_clusters(folder: Path) -> tuple[Path, ...]:
    """List the folders with a cluster.yaml in the same parent folder, this one included, by name.

    They are not searched, because the parent folder may contain anything.
    """
    desired_state = (folder if folder.name else Path.cwd()).parent
    try:
        with open_folder(desired_state, own=1) as opened:
            return tuple(
                desired_state / entry.name
                for entry in opened.entries()
                if entry.kind is Kind.FOLDER and _has_cluster_yaml(opened, entry.name)
            )
    except OSError as error:
        if find_limit(error):
            raise
        return ()


def find_cluster_yaml(folder: Folder, problems: Problems) -> bool:
    """Whether a folder has a cluster.yaml; adds a problem if not, or if cluster.yml exists too."""
    is_there, misnamed = folder.has(CLUSTER_YAML), folder.has(CLUSTER_YML)
    if not is_there:
        remedy = _RENAME if misnamed else _explain_missing(folder.path)
        problems.add(unread(str(folder.path / CLUSTER_YAML), "The file is missing.", remedy))
    elif misnamed:
        problems.add(unread(str(folder.path / CLUSTER_YML), *_BESIDE))
    return is_there


def _explain_missing(folder: Path) -> str:
    """Say how to create cluster.yaml, or which cluster beside the folder has almost its name."""
    names = [cluster.name for cluster in list_sibling_clusters(folder)]
    if near := get_close_matches(cluster_name(folder), names, 1):
        return f"Did you mean {near[0]}? Then move the files there. A new cluster needs it {_LEAST}"
    move = f"Move the files to the folder of their cluster ({', '.join(names[:_MOST_NAMES])}). "
    return f"{move if names else ''}A new cluster needs it {_LEAST} {_FIND_ID}"


def cluster_name(folder: Path) -> str:
    """Return the name of a cluster's folder, even if it was typed as `.`."""
    return Path(os.path.abspath(folder)).name  # noqa: PTH100 - Path.resolve follows links


def dag_id(folder: Path) -> str:
    """Return the id of a cluster's reconcile DAG, with only characters that Airflow allows."""
    return "reconcile_" + re.sub(r"[^A-Za-z0-9_.-]", "_", folder.name)


def list_stray_files(desired_state: Path) -> tuple[Path, ...]:
    """List the YAML files outside the clusters' folders, which no cluster reads."""
    with _open_desired_state(desired_state) as folder:
        return tuple(
            desired_state / entry.name
            for entry in folder.entries()
            if entry.name.endswith(YAML)
            and entry.kind is not Kind.FOLDER
            and not entry.name.startswith(".")
        )


@contextmanager
def _open_desired_state(path: Path, top: Path | None = None) -> Iterator[Folder]:
    own = 1 if top is None else len(path.absolute().relative_to(top).parts)
    try:
        with open_folder(path, own) as folder:
            yield folder
    except (FileNotFoundError, NotADirectoryError):
        remedy = (
            "Change to the root of your repository of quotas, pass another folder with "
            "--desired-state, or create a repository with quota-ops init."
        )
        raise InvalidInput(f"{path} is not a folder.", remedy) from None
    except OSError as error:
        problem = not_opened(error, str(path), "folder")
        raise InvalidDesiredState([problem], files=1, quotas=0) from None


def _is_cluster(folder: Folder, entry: Entry) -> bool:
    if entry.name == SHARED and entry.kind is Kind.FOLDER:
        return False
    if entry.name.startswith("."):
        return entry.kind is Kind.FOLDER and _has_cluster_yaml(folder, entry.name)
    if entry.kind is Kind.LINK:
        return not entry.name.endswith((*YAML, _MARKDOWN))
    return entry.kind is Kind.FOLDER and _has_yaml(folder, entry.name)


def _has_cluster_yaml(folder: Folder, name: str) -> bool:
    try:
        return folder.has(f"{name}/{CLUSTER_YAML}")
    except PermissionError:
        return False


def _has_yaml(folder: Folder, name: str) -> bool:
    """Whether a folder contains YAML at any depth; one that is nested too deep counts as YAML."""
    below = [name]
    while below:
        name = below.pop()
        try:
            entries = folder.entries(name)
        except OSError as error:
            if find_limit(error):
                raise
            if isinstance(error, PermissionError) and "/" not in name:
                return True
            continue
        folders = [f"{name}/{entry.name}" for entry in entries if entry.kind is Kind.FOLDER]
        if any(entry.name.endswith(YAML) and entry.kind is not Kind.FOLDER for entry in entries):
            return True
        if folders and name.count("/") >= MAX_FOLDERS:
            return True
        below += folders
    return False


def list_quotas_files(folder: Folder, problems: Problems, skip: str = "") -> tuple[str, ...]:
    """List the quotas files below a cluster's folder by name: no cluster.yaml, and no `skip`.

    A file that is neither YAML nor Markdown is a problem, because the quotas of a misnamed file
    would look removed. OSError if the cluster's folder cannot be listed.
    """
    found: list[str] = []
    below = [("", folder.entries())]
    listed = 0
    while below:
        parent, entries = below.pop()
        listed += len(entries)
        if listed > MAX_LISTED:
            message = f"The folder contains more than {counted(MAX_LISTED, 'file')}."
            problems.add(unread(str(folder.path), message, "Keep one file per team."))
            return ()
        for entry in entries:
            name = f"{parent}{entry.name}"
            if entry.name == _GIT and parent:
                problems.add(unread(_shown(folder.path / parent), *NESTED))
            if _is_left_alone(entry, parent) or name == skip:
                continue
            if entry.kind is Kind.FOLDER:
                below += _list_folder(folder, name, problems)
            elif (wrong := _refuse_entry(entry)) is not None:
                problems.add(unread(_shown(folder.path / name), *wrong))
            elif not name.endswith(_MARKDOWN):
                found.append(name)
    return tuple(sorted(found))


def is_read(name: str) -> bool:
    """Whether quota-ops reads a file, by its path below a cluster's folder."""
    *above, last = name.split("/")
    is_note = last.endswith(_MARKDOWN) or last.startswith(DRAFT)
    return not (is_note or last in _GITS_FILES or {*above[:1]} & _FORGES)


def _is_left_alone(entry: Entry, parent: str) -> bool:
    """Whether an entry belongs to Git, GitHub or GitLab, is the cluster's own file or a draft."""
    if entry.name == _GIT or (entry.name in _GITS_FILES and entry.kind is Kind.FILE):
        return True
    if entry.name.startswith(DRAFT) and entry.kind is Kind.FILE:
        return True
    at_top = parent == ""
    return at_top and (
        entry.name in {CLUSTER_YAML, CLUSTER_YML}
        or (entry.name in _FORGES and entry.kind is Kind.FOLDER)
    )


def _list_folder(folder: Folder, name: str, problems: Problems) -> list[tuple[str, list[Entry]]]:
    path = _shown(folder.path / name)
    if name.count("/") >= MAX_FOLDERS:
        message = f"The folder is nested more than {MAX_FOLDERS} levels deep."
        problems.add(unread(path, message, "Move its files further up."))
        return []
    try:
        return [(f"{name}/", folder.entries(name))]
    except OSError as error:
        problems.add(not_opened(error, path, "folder"))
        return []


def _refuse_entry(entry: Entry) -> tuple[str, str] | None:
    """Return why a file does not belong to a desired state, and the remedy; None if it may."""
    if entry.kind is Kind.LINK:
        return LINK
    if entry.kind is not Kind.FILE:
        return NOT_A_FILE
    if not entry.name.isprintable():
        return "The name of the file contains unprintable characters.", "Rename it."
    if not entry.name.endswith((*YAML, _MARKDOWN)):
        remedy = "If it contains quotas, rename it to .yaml; otherwise move it out of this folder."
        return "The file is neither YAML nor Markdown.", remedy
    return None


def _shown(path: Path) -> str:
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in str(path)
    )


MAX_INVENTORY_BYTES = 256 * 2**20
"""The largest file of an inventory in Git: millions of clients. Engines limit what they decode."""


def list_inventory_files(folder: Folder, inventory: str) -> tuple[str, ...]:
    """List the files of an inventory below a cluster's folder: a file, or the files in a folder.

    OSError if it does not exist or has a link.
    """
    try:
        entries = folder.entries(inventory)
    except NotADirectoryError:
        return (inventory,)
    below = [(entry, f"{inventory}/{entry.name}") for entry in entries]
    inner = [name for entry, name in below if entry.kind is Kind.FOLDER]
    files = [name for entry, name in below if entry.kind is not Kind.FOLDER]
    return (*files, *(file for name in inner for file in list_inventory_files(folder, name)))


def read_inventory_files(folder: Folder, inventory: str, problems: Problems) -> dict[str, bytes]:
    """Read the files of an inventory in Git, which are part of the commit like all others."""
    try:
        names = list_inventory_files(folder, inventory)
        return {name: folder.read(name, MAX_INVENTORY_BYTES) for name in names}
    except OSError as error:
        problems.add(not_opened(error, str(folder.path / inventory), "inventory"))
        return {}
