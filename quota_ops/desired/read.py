"""A cluster's desired state: its policy and one row for each limit, or every problem."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Self

from quota_ops.desired.cluster_file import (
    CLUSTER_YAML,
    ClusterFile,
    read_cluster_file,
    refuse_placeholder,
)
from quota_ops.desired.contradictions import refuse_repeated_entities, refuse_unmanageable
from quota_ops.desired.expand.expansion import expand
from quota_ops.desired.expand.rates import divide_rates
from quota_ops.desired.files import (
    cluster_folders,
    cluster_name,
    find_cluster_yaml,
    is_folder_or_link,
    list_quotas_files,
    list_sibling_clusters,
    open_cluster_folder,
    read_inventory_files,
)
from quota_ops.desired.findings import check_files, check_terms
from quota_ops.desired.owners import find_file_owner, refuse_foreign
from quota_ops.desired.quota_lines import read_quota_lines
from quota_ops.desired.quotas_file import QuotasFile, quota_rows, read_entries, read_quotas_file
from quota_ops.desired.shared import add_shared_profiles, list_shared_files, shared_name
from quota_ops.desired.yaml.checkout import Folder
from quota_ops.desired.yaml.nodes import SizeBudget, compose, read_bounded
from quota_ops.desired.yaml.source import MAX_FILE_BYTES, Problems, Source, not_opened, read_source
from quota_ops.findings.codes import CODES, IDLE_CEILING, OVERCOMMITTED, UNUSED_PROFILE, DecidedBy
from quota_ops.findings.shares import check_shares
from quota_ops.findings.silences import find_idle_silences, mark_silenced
from quota_ops.model.errors import InvalidDesiredState, InvalidInput
from quota_ops.model.finding import Finding, InvalidFile, Problem, Silence
from quota_ops.model.moment import iso_utc
from quota_ops.model.plans.placement import Placement
from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.rows import DesiredRow
from quota_ops.model.usage.recorded import FindUse

_UNTIL = b"until"
_BY_FILES = frozenset(code.code for code in CODES.values() if code.decided_by is DecidedBy.FILES)
_OF_ALL_FILES = frozenset({UNUSED_PROFILE, OVERCOMMITTED, IDLE_CEILING})
"""The findings that an invalid file, whose quotas are not known, could make false."""


@dataclass(frozen=True, slots=True)
class Desired:
    """The content of a cluster's folder: its policy, the rows of DESIRED, and its number of files.

    `findings` includes silenced ones. `contents` has the bytes of each file as they were read, by
    its path from the folder: `payments.yaml`, `../_shared/gold.yaml`.
    """

    policy: Policy
    rows: tuple[DesiredRow, ...]
    files: int
    findings: tuple[Finding, ...] = ()
    silences: tuple[Silence, ...] = ()
    contents: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    invalid: tuple[InvalidFile, ...] = ()
    """The files with problems that were left out."""
    coming: tuple[DesiredRow, ...] = ()
    """The limits that begin at `until`, of rows that Git does not declare before."""

    @property
    def needs_brokers(self) -> bool:
        """Whether some rows are limits of the whole cluster, which are not divided yet."""
        return any(row.needs_brokers for row in self.rows)

    def divide(self, placement: Placement | None, folder: Path) -> Self:
        """Return it with the share of each broker in limits of the whole cluster.

        Without brokers, they stay whole, and so do those with topics if nobody knows which broker
        leads what. `folder` is the folder of the cluster. Raises InvalidDesiredState.
        """
        if placement is None:
            return self
        skip = placement.leads is None
        rows = divide_rates(self.rows, placement, prefix=f"{folder}/", skip=skip)
        stay, new = check_shares(rows, self.findings, self.policy, is_complete=not self.invalid)
        findings = (*stay, *mark_silenced(new, self.silences))
        return replace(self, rows=rows, findings=findings)


def read_cluster(
    folder: Path,
    *,
    at: str | None = None,
    skip_invalid: bool = False,
    find_use: FindUse | None = None,
) -> Desired:
    """Read all files of a cluster's folder.

    Temporary limits are those at a time (ISO 8601, UTC), by default now. Without `find_use`, shares
    of groups are by weight alone. With `skip_invalid`, the
    quotas files with problems are left out and listed: no quota that is missing may count as
    removed then.

    Raises InvalidDesiredState with every problem of every file, if anything but a quotas file has
    one, or without `skip_invalid`. InvalidInput if the folder does not exist.
    """
    try:
        with open_cluster_folder(folder) as opened:
            return _read_cluster(opened, at or iso_utc(), find_use, skip_invalid=skip_invalid)
    except (FileNotFoundError, NotADirectoryError):
        beside = ", ".join(path.name for path in list_sibling_clusters(folder))
        remedy = f"Clusters in the same folder: {beside}." if beside else None
        raise InvalidInput(f"{folder} is not a folder.", remedy) from None
    except OSError as error:
        problem = not_opened(error, str(folder), "folder")
        raise InvalidDesiredState([problem], files=1, quotas=0) from None


def _read_cluster(
    folder: Folder, at: str, find_use: FindUse | None, *, skip_invalid: bool
) -> Desired:
    problems = Problems()
    cluster = _read_cluster_file(folder, problems)
    shared: tuple[Source, ...] = ()
    if cluster is not None and cluster.uses:
        cluster, shared = add_shared_profiles(folder, cluster, problems)
    inventory = (cluster and cluster.policy.inventory_in_git) or ""
    names = list_quotas_files(folder, problems, inventory)
    clients = read_inventory_files(folder, inventory, problems) if inventory else {}
    files: Sequence[QuotasFile] = list(_read_files(folder, names, problems))
    of_terms: tuple[Finding, ...] = ()
    if cluster is not None:
        find = partial(find_use, cluster.policy.cluster_id, at) if find_use else None
        of_terms = tuple(check_terms(files, cluster, at))
        files = expand(files, cluster.profiles, at, find)
    quotas = tuple(quota for file in files for quota in file.quotas)
    refuse_repeated_entities(quotas)
    if cluster is not None:
        refuse_placeholder(cluster)
        refuse_unmanageable(quotas, cluster)
        refuse_foreign(files, cluster.policy.owners, cluster.source, cluster.owner_nodes)
    left_out = (
        _leave_out_invalid(folder, cluster, names, files, problems)
        if cluster and problems and skip_invalid
        else {}
    )
    if left_out:
        files = [file for file in files if file.source.name not in left_out]
        quotas = tuple(quota for file in files for quota in file.quotas)
    findings, silences = check_files(files, cluster, of_terms) if cluster else ((), ())
    if problems:
        findings = tuple(found for found in findings if found.code not in _OF_ALL_FILES)
    if cluster is None or (problems and not left_out):
        limits = sum(len(quota.limits) for quota in quotas)
        there = {str(folder.path / name) for name in (CLUSTER_YAML, *names)}
        read = len((there | problems.files) - {str(folder.path)})
        raise problems.as_error(files=read, quotas=limits, findings=findings)
    decidable = _BY_FILES - _OF_ALL_FILES if left_out else _BY_FILES
    findings += tuple(find_idle_silences(findings, silences, decidable))
    sources = (cluster.source, *shared, *(file.source for file in files))
    contents = {source.name: source.content for source in sources} | clients
    contents |= {name: content for name, (content, _) in left_out.items()}
    invalid = tuple(file for _, file in left_out.values())
    rows = tuple(quota_rows(quotas, cluster.policy.cluster_id))
    later = (quota._replace(limits=quota.coming) for quota in quotas if quota.coming)
    coming = tuple(quota_rows(later, cluster.policy.cluster_id))
    read = len(names) + 1
    return Desired(cluster.policy, rows, read, findings, silences, contents, invalid, coming)


def _leave_out_invalid(
    folder: Folder,
    cluster: ClusterFile,
    names: Sequence[str],
    files: Sequence[QuotasFile],
    problems: Problems,
) -> dict[str, tuple[bytes, InvalidFile]]:
    """Return the bytes and the first problem of each quotas file with problems, by its name.

    Both files of a contradiction count. It is empty if that is not the whole trouble: anything else
    has a problem, some problems are not listed, a file was not read, or no valid file is left.
    """
    by_path = {str(folder.path / name): name for name in names}
    if problems.unlisted or not problems.files <= by_path.keys():
        return {}
    listed = [*problems.listed, *(found.other for found in problems.listed if found.other)]
    by_file: dict[str, list[Problem]] = {}
    for problem in listed:
        if problem.file in by_path:
            by_file.setdefault(by_path[problem.file], []).append(problem)
    is_read = {*by_file, *(file.source.name for file in files)}.issuperset(names)
    if not is_read or len(by_file) == len(names):
        return {}
    found = {}
    for name, wrong in sorted(by_file.items()):
        try:
            content = folder.read(name, MAX_FILE_BYTES)
        except OSError:
            return {}
        owner = find_file_owner(cluster.policy.owners, name, content)
        first = min(wrong, key=lambda problem: problem.line)
        found[name] = (content, InvalidFile(name, owner, first.line, first.message, len(wrong)))
    return found


def read_policy(folder: Path) -> Policy:
    """Read a cluster's cluster.yaml alone. Raises InvalidDesiredState with its problems."""
    problems = Problems()
    cluster = read_cluster_yaml(folder, problems)
    if cluster is None:
        raise problems.as_error(files=1, quotas=0)
    return cluster.policy


def _read_files(folder: Folder, names: Iterable[str], problems: Problems) -> Iterator[QuotasFile]:
    """Read the quotas files, up to the one that exceeds what a cluster's files may contain."""
    room = SizeBudget()
    for name in names:
        source = read_bounded(folder, name, problems, room)
        file = None if source is None else _read_file(source, room)
        if file is not None:
            yield file
        if room.is_spent:
            break


def _read_file(source: Source, room: SizeBudget) -> QuotasFile | None:
    if (file := read_quota_lines(source, room)) is not None:
        return file
    root = compose(source, room)
    return None if root is None else read_quotas_file(source, root)


def read_changes(folder: Path, since: str) -> tuple[str, ...]:
    """Return when temporary limits of a cluster start or end, from a time on (ISO 8601, UTC).

    Only files that mention `until` are parsed. Empty if they cannot be read: check shows why.
    """
    problems = Problems()
    try:
        with open_cluster_folder(folder) as opened:
            names = [
                name
                for name in list_quotas_files(opened, problems)
                if _UNTIL in opened.read(name, MAX_FILE_BYTES)
            ]
            files = list(_read_files(opened, names, problems))
    except OSError:
        return ()
    terms = chain(
        (quota.terms for file in files for quota in file.quotas),
        (group.terms for file in files for group in file.groups),
    )
    changes = {time for found in terms if found for time in found.changes}
    return tuple(sorted(time for time in changes if time >= since))


def find_clusters_that_use(
    desired_state: Path, clusters: Iterable[str], files: AbstractSet[str]
) -> set[str]:
    """Return which clusters use one of these shared files; a cluster.yaml with problems may."""
    found = set()
    for name in clusters:
        cluster = read_cluster_yaml(desired_state / name, Problems())
        if cluster is None or any(use.file in files for use in cluster.uses):
            found.add(name)
    return found


def find_unused_files(desired_state: Path, folders: Iterable[Path]) -> list[str]:
    """Return the shared files that no cluster uses; none if a cluster.yaml has problems."""
    files = list_shared_files(desired_state)
    clusters = [read_cluster_yaml(folder, Problems()) for folder in folders] if files else []
    if None in clusters:
        return []
    used = {use.file for cluster in clusters if cluster for use in cluster.uses}
    return [file for file in files if file not in used]


def find_policy(folder: Path) -> Policy | None:
    """Read a cluster's cluster.yaml alone; None if it is not valid."""
    cluster = read_cluster_yaml(folder, Problems())
    return cluster and cluster.policy


def find_cluster(cluster: str, desired_state: Path) -> Path:
    """Return the folder of a cluster, given as a name under --desired-state or as a path."""
    for folder in (desired_state / cluster, Path(cluster)):
        if is_folder_or_link(folder):
            return folder
    there = [path.name for path in cluster_folders(desired_state)]
    raise InvalidInput(
        f"there is no cluster {cluster!r} in {desired_state}",
        f"Clusters in this folder: {', '.join(there)}."
        if there
        else "Pass --desired-state, or create a repository with quota-ops init.",
    )


def read_cluster_yaml(folder: Path, problems: Problems) -> ClusterFile | None:
    """Read the cluster.yaml of a folder; None, after adding problems, if it is not valid."""
    try:
        with open_cluster_folder(folder) as opened:
            return _read_cluster_file(opened, problems)
    except OSError as error:
        problems.add(not_opened(error, str(folder), "folder"))
        return None


def _read_cluster_file(folder: Folder, problems: Problems) -> ClusterFile | None:
    if not find_cluster_yaml(folder, problems):
        return None
    source = read_source(folder, CLUSTER_YAML, problems)
    if source is None or (root := compose(source)) is None:
        return None
    return read_cluster_file(source, root, cluster_name(folder.path))


def read_as_written(desired: Desired, entities: AbstractSet[str]) -> Iterator[QuotasFile]:
    """Yield the files that may declare these entities as they are written: nothing is expanded."""
    names = {row.entity: row.file for row in desired.rows if row.entity in entities}
    may_have_ended = bool(entities - names.keys())
    for name, content in desired.contents.items():
        if name in names.values() or (may_have_ended and _UNTIL in content):
            source = Source(name, name, content.decode("utf-8-sig"), Problems())
            if (file := _read_file(source, SizeBudget())) is not None:
                yield file


def find_entities(desired: Desired, file: str, line: int) -> frozenset[str]:
    """Return the entities of the entry that a line belongs to; of a profile, those that use it.

    `file` is a path below the cluster's folder. Empty if the line belongs to no entry.
    """
    if file == CLUSTER_YAML or file.startswith(shared_name("")):
        place = f"({file}:{line})"
        return frozenset(row.entity for row in desired.rows if place in (row.derivation or ""))
    content = desired.contents.get(file, b"").decode("utf-8-sig")
    source = Source(file, file, content, Problems())
    root = compose(source)
    found: frozenset[str] = frozenset()
    for item, entities in () if root is None else read_entries(source, root):
        if item.start_mark.line < line <= max(item.end_mark.line, item.start_mark.line + 1):
            found = frozenset(entity.text for entity in entities)
    return found
