"""The files beside the clusters' folders that several clusters use."""

import dataclasses
from collections.abc import Iterator, Sequence
from decimal import ROUND_FLOOR, Decimal
from pathlib import Path

from msgspec.structs import replace

from quota_ops.desired.cluster_file import ClusterFile
from quota_ops.desired.files import SHARED, YAML
from quota_ops.desired.profiles import Profile, SharedUse, read_profiles
from quota_ops.desired.quotas_file import Limit
from quota_ops.desired.yaml.checkout import Folder, open_folder
from quota_ops.desired.yaml.fields import read_fields
from quota_ops.desired.yaml.nodes import compose
from quota_ops.desired.yaml.shapes import SHARED_FILE
from quota_ops.desired.yaml.source import MAX_FILE_BYTES, Problems, Source, read_source
from quota_ops.model.errors import find_limit
from quota_ops.model.quotas.quota import QUOTA_KEYS, to_decimal


def shared_folder(folder: Path) -> Path:
    """Return the folder of the files that the cluster of this folder may use."""
    return (folder.parent if folder.name else folder / "..") / SHARED


def shared_name(file: str) -> str:
    """Return the path of a shared file from a cluster's folder."""
    return f"../{SHARED}/{file}"


def list_shared_files(desired_state: Path) -> list[str]:
    """List the names of the shared files; none if there is no folder of them."""
    try:
        with open_folder(desired_state / SHARED, own=2) as shared:
            return [entry.name for entry in shared.entries() if entry.name.endswith(YAML)]
    except OSError as error:
        if find_limit(error):
            raise
        return []


def add_shared_profiles(
    folder: Folder, cluster: ClusterFile, problems: Problems
) -> tuple[ClusterFile, tuple[Source, ...]]:
    """Return the cluster with the profiles of the files that it uses, and these files.

    Each problem of a shared file mentions the cluster, because others may use the file too.
    """
    sources: list[Source] = []
    profiles: dict[str, Profile] = dict(cluster.profiles)
    for use in cluster.uses:
        found = Problems()
        source = _read_source(folder, use, cluster, found)
        if source is not None:
            sources.append(source)
            profiles |= _read_profiles(source, use, profiles)
        for problem in found.listed:
            words = f"{problem.message} The cluster {cluster.policy.cluster} uses this file."
            problems.add(dataclasses.replace(problem, message=words))
    return cluster._replace(profiles=profiles), tuple(sources)


def read_shared_files(folder: Path, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the bytes of the shared files among these files of a cluster.

    Raises OSError without one.
    """
    shared = [name for name in names if name.startswith(shared_name(""))]
    if shared:
        with open_folder(shared_folder(folder), own=2) as opened:
            for name in shared:
                yield name, opened.read(name.removeprefix(shared_name("")), MAX_FILE_BYTES)


def _read_source(
    folder: Folder, use: SharedUse, cluster: ClusterFile, problems: Problems
) -> Source | None:
    try:
        with open_folder(shared_folder(folder.path), own=2) as shared:
            if shared.has(use.file):
                source = read_source(shared, use.file, problems)
                return None if source is None else replace(source, name=shared_name(use.file))
            there = ", ".join(entry.name for entry in shared.entries())
    except OSError as error:
        if find_limit(error):
            raise
        there = ""
    remedy = f"There are {there}." if there else f"Create it in {shared_folder(folder.path)}."
    message = f"There is no shared file {use.file}."
    cluster.source.refuse_at(use.span, message, remedy)
    return None


def _read_profiles(source: Source, use: SharedUse, known: dict[str, Profile]) -> dict[str, Profile]:
    root = compose(source)
    fields = None if root is None else read_fields(source, root, SHARED_FILE)
    if not fields or "profiles" not in fields:
        return {}
    profiles = read_profiles(source, fields["profiles"], known)
    if use.factor is None:
        return profiles
    for name, profile in profiles.items():
        limits = tuple([_scale_limit(profile, limit, use.factor) for limit in profile.limits])
        profiles[name] = profile._replace(limits=limits, factor=use.factor)
    return profiles


def _scale_limit(profile: Profile, limit: Limit, factor: Decimal) -> Limit:
    """Multiply a limit, rounded down to a whole number where Kafka has no other."""
    key = QUOTA_KEYS[limit.key]
    if limit.value == key.unlimited:
        return limit
    exact = to_decimal(limit.value) * factor
    value = exact.to_integral_value(ROUND_FLOOR) if key.whole else exact
    if not 0 < value <= Decimal(key.largest):
        profile.source.refuse_at(
            limit.span,
            f"{limit.key} times {factor} is {value:f}, which is not a limit.",
            "Kafka has no quota of 0." if not value else f"The largest is {int(key.largest)}.",
        )
        return limit
    return limit._replace(value=float(value))
