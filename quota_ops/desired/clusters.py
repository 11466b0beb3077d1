"""The clusters of a desired state: each in one folder, and nothing outside these folders."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from quota_ops.desired.cluster_file import CLUSTER_YAML
from quota_ops.desired.contradictions import refuse_repeated_cluster
from quota_ops.desired.files import (
    YAML,
    cluster_folders,
    dag_id,
    list_sibling_clusters,
    list_stray_files,
)
from quota_ops.desired.git.repository import Repository
from quota_ops.desired.read import read_cluster_yaml
from quota_ops.desired.yaml.source import MAX_FILE_BYTES, Problems, unread
from quota_ops.model.errors import GitFailed
from quota_ops.model.finding import Problem


def find_clusters(desired_state: Path) -> tuple[Path, ...]:
    """List the clusters' folders by name.

    Raises InvalidDesiredState if two folders declare the same cluster or would have the same DAG;
    other problems of a folder are left to its own check. InvalidInput if the desired state does
    not exist.
    """
    folders = cluster_folders(desired_state)
    _refuse(folders, _find_duplicates(folders))
    return folders


def refuse_duplicate_clusters(folder: Path) -> None:
    """Raise InvalidDesiredState if a folder next to this one declares the same cluster."""
    folders = list_sibling_clusters(folder)
    name = (folder if folder.name else Path.cwd()).name
    _refuse(folders, (duplicate for duplicate in _find_duplicates(folders) if name in duplicate[0]))


_Duplicate = tuple[frozenset[str], Problem]
"""The names of two folders of the same cluster or DAG."""


def _refuse(folders: Sequence[Path], duplicates: Iterable[_Duplicate]) -> None:
    problems = Problems()
    for _, problem in duplicates:
        problems.add(problem)
    if problems:
        raise problems.as_error(files=len(folders), quotas=0)


def _find_duplicates(folders: Sequence[Path]) -> Iterator[_Duplicate]:
    yield from _find_shared_dags(folders)
    first: dict[str, Path] = {}
    for folder in folders:
        cluster_id = _find_id(folder)
        same = folder if cluster_id is None else first.setdefault(cluster_id, folder)
        if same is not folder:
            yield from _explain_same_cluster(same, folder)


def _find_id(folder: Path) -> str | None:
    """Return the cluster id of a folder; None if its cluster.yaml is not valid."""
    try:
        file = (folder / CLUSTER_YAML).lstat()
        return _parse_id(folder, file.st_dev, file.st_ino, file.st_size, file.st_ctime_ns)
    except OSError:
        return None


# The drift DAG checks hundreds of clusters in one process, each against all others.
@lru_cache(maxsize=4096)
def _parse_id(folder: Path, *_version: int) -> str | None:
    cluster = read_cluster_yaml(folder, Problems())
    return cluster and cluster.policy.cluster_id


def _explain_same_cluster(known: Path, folder: Path) -> Iterator[_Duplicate]:
    first = read_cluster_yaml(known, Problems())
    second = read_cluster_yaml(folder, found := Problems())
    if first is not None and second is not None:
        refuse_repeated_cluster(second, first)
        yield frozenset((known.name, folder.name)), found.listed[0]


def _find_shared_dags(folders: Iterable[Path]) -> Iterator[_Duplicate]:
    first: dict[str, Path] = {}
    for folder in folders:
        known = first.setdefault(dag_id(folder), folder)
        if known is not folder:
            message = f"Its DAG in Airflow would be {dag_id(folder)}, as that of {known}."
            remedy = "Rename one of the two; use only letters, digits, '_', '.' and '-'."
            problem = unread(str(folder), message, remedy)
            yield frozenset((known.name, folder.name)), problem


def find_astray_files(desired_state: Path, folders: Iterable[Path]) -> list[tuple[Path, Path]]:
    """Return the quotas files outside the desired state in folders named like a cluster.

    Absolute paths, each with the folder of that cluster. No run reads them. None without a checkout
    of Git.
    """
    clusters = {folder.name: folder for folder in folders}
    repository = Repository.of_checkout(desired_state) if clusters else None
    if repository is None:
        return []
    try:
        prefix, root, files = repository.prefix(), repository.root(), repository.list_all(*YAML)
    except GitFailed:
        return []
    return [
        (root / file, clusters[name])
        for file in files
        if not file.startswith(prefix) and _has_quotas(root / file)
        for name in Path(file).parent.parts[-1:]
        if name in clusters
    ]


_QUOTAS = re.compile(rb"^quotas[ ]*:", re.MULTILINE)


def _has_quotas(file: Path) -> bool:
    """Return whether a file has the field `quotas`; not if it is a link or cannot be read."""
    try:
        is_small = not file.is_symlink() and file.stat().st_size <= MAX_FILE_BYTES
        return is_small and bool(_QUOTAS.search(file.read_bytes()))
    except OSError:
        return False


def refuse_stray_files(desired_state: Path) -> None:
    """Raise InvalidDesiredState for the YAML files that are not in a cluster's folder."""
    remedy = "Move it into one, or out of this folder."
    problems = Problems()
    for path in list_stray_files(desired_state):
        problems.add(unread(str(path), "The file is not in a cluster's folder.", remedy))
    if problems:
        raise problems.as_error(files=len(problems), quotas=0)
