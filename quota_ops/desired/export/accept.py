"""Accept drift: change the files of a cluster so that they declare what the cluster stores."""

from collections.abc import Iterable, Mapping
from difflib import unified_diff
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from quota_ops.desired.cluster_file import CLUSTER_YAML
from quota_ops.desired.export.disk import write_files
from quota_ops.desired.export.limit_edits import accept_values, add_values
from quota_ops.desired.export.quotas_text import split_writable
from quota_ops.desired.git.commit import find_path
from quota_ops.desired.read import Desired, read_cluster
from quota_ops.desired.yaml.problems import Problems
from quota_ops.desired.yaml.source import Source
from quota_ops.model.errors import InvalidInput
from quota_ops.model.plans.scope import Scope
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.owners import OwnerIndex
from quota_ops.model.quotas.quota import same
from quota_ops.model.quotas.rows import DesiredRow, Key, StoredQuota

_FEW = 5
_BOM = b"\xef\xbb\xbf"


class NewLimit(NamedTuple):
    """A limit for Git to declare; a value of None removes it."""

    id: Key
    value: float | None
    declared: float | None
    """What Git declared when the run compared; None if nothing."""
    is_conflict: bool = False
    """Whether a change in Git would be lost, which a person must name."""
    replaces_any: bool = False
    """Whether it replaces whatever Git declares, as that run did not read it."""


class Accepted(NamedTuple):
    """What was accepted, what Git declares already, what was left out and why, and the patch."""

    accepted: tuple[Key, ...]
    already: tuple[Key, ...]
    left_out: tuple[tuple[Key, str], ...]
    patch: str


def accept_limits(
    folder: Path,
    limits: Iterable[NewLimit],
    *,
    dry_run: bool,
    receiver: str | None = None,
    reason: str | None = None,
) -> Accepted:
    """Change the files of a cluster's folder, unless `dry_run`, and return what changed.

    A quota that Git does not declare goes, with a reason, to the file `receiver` or, without one,
    to the file that declares its entity, or to the only file.
    Raises InvalidDesiredState if the files have problems now, and InvalidInput if they change
    while they are written, or cannot be written.
    """
    desired = read_cluster(folder)
    declared = {row.id: row for row in desired.rows}
    already: set[Key] = set()
    left_out: dict[Key, str] = {}
    wanted: dict[str, dict[Key, float | None]] = {}
    added: dict[str, dict[Key, float]] = {}
    files = _Receivers(desired, receiver)
    for limit in limits:
        row, known = limit.id, declared.get(limit.id)
        if same(known and known.value, limit.value):
            already.add(row)
        elif known is None and limit.value is not None and limit.declared is None:
            file, why = files.find(row.entity, row.key, limit.value)
            if file:
                added.setdefault(file, {})[row] = limit.value
            else:
                left_out[row] = why
        elif known is None:
            left_out[row] = "Git does not declare it"
        elif why := _explain_change(limit, known):
            left_out[row] = why
        else:
            wanted.setdefault(known.file, {})[row] = limit.value
    contents: dict[str, bytes] = {}
    patch: list[str] = []
    for name in sorted({*wanted, *added}):
        content = desired.contents[name]
        source = Source(str(folder / name), name, content.decode("utf-8-sig"), Problems(), content)
        text, missed = accept_values(source, wanted.get(name, {}))
        text, unsafe = add_values(replace(source, text=text), added.get(name, {}), reason)
        left_out |= missed | unsafe
        if text != source.text:
            contents[name] = (_BOM if content.startswith(_BOM) else b"") + text.encode()
            patch += _diff(folder / name, content.decode(), contents[name].decode())
    if not dry_run:
        _write(folder, contents, desired.contents)
    changed = {key for values in wanted.values() for key in values}
    changed |= {key for values in added.values() for key in values}
    accepted = changed - left_out.keys()
    return Accepted(
        tuple(sorted(accepted)),
        tuple(sorted(already)),
        tuple(sorted(left_out.items())),
        "".join(patch),
    )


class _Receivers:
    """Finds the file that receives a quota that Git does not declare."""

    def __init__(self, desired: Desired, receiver: str | None) -> None:
        names = [name for name in desired.contents if name != CLUSTER_YAML]
        self._files = [name for name in names if name != desired.policy.inventory_in_git]
        if receiver is not None and receiver not in self._files:
            there = ", ".join(self._files[:_FEW]) or "none"
            raise InvalidInput(
                f"--file {receiver} is not a quotas file of this cluster",
                f"Choose one below its folder: {there}.",
            )
        self._receiver = receiver
        self._by_entity = {row.entity: row.file for row in desired.rows}
        self._owners = OwnerIndex(desired.policy.owners)
        self._policy = desired.policy
        self._scope = Scope(desired.policy)
        self._owner_of = {row.file: row.owner for row in desired.rows}

    def find(self, entity: str, key: str, value: float) -> tuple[str | None, str]:
        """Return the name, below the cluster's folder, of the file for a new quota.

        None if no file can declare it, or a person must choose one; the text is why.
        """
        quota = StoredQuota(Entity.parse(entity), key, value)
        _, undeclarable = split_writable([quota])
        if undeclarable:
            return None, undeclarable[0].reason
        if not self._scope.covers(quota.entity):
            return None, f"it is outside the scope of {self._policy.cluster}: extend that first"
        if self._scope.find_protection(quota.entity) is not None:
            return None, "cluster.yaml protects it, so Git cannot declare it"
        only = self._files[0] if len(self._files) == 1 else None
        owner = self._owners.find_owner(quota.entity)
        owned = (name for name in self._files if owner and self._owner_of.get(name) == owner)
        file = self._by_entity.get(entity) or self._receiver or next(owned, None) or only
        if file is None:
            return None, f"Git does not declare it: pass a file, {self._example}"
        others = self._owner_of.get(file)
        if owner and others and owner != others:
            return None, f"it belongs to {owner}, and {file} to {others}: pass a file of {owner}"
        return file, ""

    @property
    def _example(self) -> str:
        """An example of the option --file, for the remedy of an error."""
        return f"for example --file {self._files[0]}" if self._files else "which you create first"


def _explain_change(limit: NewLimit, known: DesiredRow) -> str:
    """Return why the limit in Git is not replaced; empty if it is."""
    if limit.replaces_any:
        return ""
    if limit.declared is None:
        return "it was added to Git after that run"
    if not (known.needs_brokers or same(known.value, limit.declared)):
        return "it changed in Git after that run"
    if known.needs_brokers or known.derivation is not None:
        how = "for the whole cluster" if known.needs_brokers else f"indirectly: {known.derivation}"
        return f"{known.file}:{known.line} declares it {how}"
    if limit.is_conflict:
        return "it changed in Git too, which would be lost: pass it with --names to accept it"
    return ""


def _diff(path: Path, before: str, after: str) -> list[str]:
    """Return the patch of a file for `git apply` in its checkout; outside any, from the root."""
    lines = (before.splitlines(keepends=True), after.splitlines(keepends=True))
    below = find_path(path.parent, None)
    name = str(path).lstrip("/") if below is None else f"{below}/{path.name}".lstrip("/")
    found = unified_diff(*lines, f"a/{name}", f"b/{name}")
    return [
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in found
    ]


def _write(folder: Path, contents: Mapping[str, bytes], before: Mapping[str, bytes]) -> None:
    """Write the files if nothing changed them since they were read."""
    now = read_cluster(folder).contents
    for name in contents:
        if now.get(name) != before[name]:
            raise InvalidInput(f"{folder / name} was changed just now", "Try again.")
    write_files(folder, contents, replaced=contents)
