"""Which folders are clusters, and the files of each: YAML is read, Markdown left alone."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from quota_ops.desired.cluster_file import CLUSTER_YAML
from quota_ops.desired.source import unread
from quota_ops.model.problem import Problem

_YAML = (".yaml", ".yml")
_MARKDOWN = ".md"
_GIT = ".git"
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
"""Git's own, which say nothing about quotas."""
_FORGES = frozenset({".github", ".gitlab"})
"""Folders that GitHub and GitLab read, at a repository's root alone: a cluster's may be one."""


def cluster_folders(desired_state: Path) -> tuple[Path, ...]:
    """The clusters' folders in order of their names: those with YAML in them, at any depth.

    One without its cluster.yaml, one that cannot be read and a link that leads nowhere, unless it
    is named as a file, count too: skipped, their quotas would be forgotten in silence. A hidden one
    needs a cluster.yaml.
    """
    return tuple(sorted(filter(_is_cluster, desired_state.glob("*"))))


def clusters_beside(folder: Path) -> tuple[Path, ...]:
    """The cluster's folder and those beside it that have a cluster.yaml, in order of their names.

    None is walked: a folder that a person names may stand beside anything.
    """
    desired_state = (folder if folder.name else Path.cwd()).parent
    found = (one for one in desired_state.glob("*") if os.access(one / CLUSTER_YAML, os.F_OK))
    return tuple(sorted(found))


def dag_id(folder: Path) -> str:
    """The id of a cluster's reconcile DAG, which takes fewer characters than a folder's name."""
    return "reconcile_" + re.sub(r"[^A-Za-z0-9_.-]", "_", folder.name)


def stray_files(desired_state: Path) -> tuple[Path, ...]:
    """What is named as YAML beside the clusters' folders, which no cluster would read."""
    return tuple(
        path
        for path in sorted(desired_state.glob("*"))
        if path.suffix in _YAML and not (path.is_dir() or path.name.startswith("."))
    )


def _is_cluster(path: Path) -> bool:
    if path.name.startswith("."):
        return os.access(path / CLUSTER_YAML, os.F_OK)
    if not path.is_dir():
        return not (path.exists() or path.suffix in (*_YAML, _MARKDOWN))
    if not os.access(path, os.R_OK | os.X_OK):
        return True
    return any(name.endswith(_YAML) for _, _, names in os.walk(path) for name in names)


def list_quotas_files(folder: Path, problems: list[Problem]) -> tuple[Path, ...]:
    """The quotas files below a cluster's folder in order of their names, without cluster.yaml.

    What is neither YAML nor Markdown is a problem, because a quota in a misnamed file would read
    as removed.
    """
    found = _walk(folder, problems, _FORGES)
    return tuple(path for path in sorted(found, key=str) if path != folder / CLUSTER_YAML)


def _walk(
    folder: Path, problems: list[Problem], without: frozenset[str] = frozenset()
) -> Iterator[Path]:
    try:
        entries = list(os.scandir(folder))
    except OSError as error:
        problems.append(unread(str(folder), f"The folder cannot be read: {error.strerror}."))
        return
    for entry in entries:
        if entry.name == _GIT or (entry.name in _GITS_FILES and entry.is_file()):
            continue
        path = folder / entry.name
        if entry.is_dir(follow_symlinks=False):
            if entry.name not in without:
                yield from _walk(path, problems)
        elif (wrong := _what_is_wrong(entry)) is not None:
            problems.append(unread(_shown(path), *wrong))
        elif not entry.name.endswith(_MARKDOWN):
            yield path


def _what_is_wrong(entry: os.DirEntry[str]) -> tuple[str, str] | None:
    """Why a file is no part of a desired state, and what to do; None when it may be one."""
    if entry.is_symlink():
        return "A link: a review would not show what it leads to.", "Put the file itself here."
    if not entry.is_file():
        return "This is not a plain file.", "Remove it."
    if not entry.name.isprintable():
        return "The file's name holds what cannot be shown.", "Rename it."
    if not entry.name.endswith((*_YAML, _MARKDOWN)):
        remedy = "Name it .yaml if it holds quotas, else move it out of this folder."
        return "The file is neither YAML nor Markdown.", remedy
    return None


def _shown(path: Path) -> str:
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in str(path)
    )
