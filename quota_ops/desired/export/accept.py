"""Accept limits: change the files of a cluster so that they declare what the cluster stores.

Only the characters of these limits change, by the places that PyYAML reports: a library that writes
a whole file again would change its layout. Whatever cannot be changed so safely is refused.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

import yaml
from msgspec.structs import replace

from quota_ops.desired.cluster_file import CLUSTER_YAML
from quota_ops.desired.export.disk import write_files
from quota_ops.desired.export.quotas_text import Writable, quota_entry, spell_limit, split_writable
from quota_ops.desired.git.commit import find_path
from quota_ops.desired.quotas_file import quota_rows, read_entries, read_quotas_file
from quota_ops.desired.read import Desired, read_cluster
from quota_ops.desired.yaml.fields import find_field
from quota_ops.desired.yaml.nodes import compose
from quota_ops.desired.yaml.source import Problems, Source
from quota_ops.model.errors import InvalidInput
from quota_ops.model.plans.scope import Scope
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.owners import OwnerIndex
from quota_ops.model.quotas.quota import QUOTA_KEYS, format_limit, same
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
    overridden: str = ""
    """The declared entity that it overrides, if any."""


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

    A quota that Git does not declare goes, with a reason, to the file that declares its entity,
    else to the file `receiver`, to one of its owner, to that of the quota that it overrides, or to
    the only file.
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
            file, why = files.find(row.entity, row.key, limit.value, limit.overridden)
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

    def find(self, entity: str, key: str, value: float, overridden: str) -> tuple[str | None, str]:
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
        declared = self._by_entity.get
        file = declared(entity) or self._receiver or next(owned, None) or declared(overridden)
        file = file or only
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
    if not limit.replaces_any and limit.declared is None:
        return "it was added to Git after that run"
    if not (limit.replaces_any or known.needs_brokers or same(known.value, limit.declared)):
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


_MARGIN = re.compile(r"[ ]*(?:-[ ]+)?")
_REST = re.compile(r"[ \t]*(?:#[^\r\n]*)?(?:\r\n|\n|\r|\Z)")
_BY_HAND = "change it by hand"


class Edit(NamedTuple):
    """A part of a text, and its replacement."""

    start: int
    end: int
    text: str = ""


class Unsafe(Exception):
    """A limit that cannot be changed without touching anything else."""


def accept_values(source: Source, values: Mapping[Key, float | None]) -> tuple[str, dict[Key, str]]:
    """Return the text of a file with these values, and why some of them are left out.

    None removes a limit, with its entry if it is the entry's last one. The new text is read again:
    exactly the accepted limits differ.
    """
    left_out: dict[Key, str] = {}
    edits: list[Edit] = []
    entries = _find_entries(source, compose(source))
    for key, value in values.items():
        try:
            if value is not None:
                edits.append(_set(source, *_find_limit(entries, key), value))
        except Unsafe as why:
            left_out[key] = str(why)
    text = apply_edits(source.text, edits)
    for key in [key for key, value in values.items() if value is None]:
        try:  # one after the other, because an entry goes with its last limit
            proposed = apply_edits(text, _remove(replace(source, text=text), key))
            _require_only(text, proposed, source, {key: None})
        except Unsafe as why:
            left_out[key] = str(why)
        else:
            text = proposed
    accepted = {key: value for key, value in values.items() if key not in left_out}
    try:
        _require_only(source.text, text, source, accepted)
    except Unsafe as why:
        return source.text, left_out | dict.fromkeys(accepted, str(why))
    return text, left_out


def add_values(
    source: Source, values: Mapping[Key, float], reason: str | None
) -> tuple[str, dict[Key, str]]:
    """Return the text of a file that declares more limits, and why some of them are left out.

    A limit goes below the others of its entity; a new entity below the last entry, with a reason.
    """
    text = source.text
    left_out: dict[Key, str] = {}
    for entity in dict.fromkeys(key.entity for key in values):
        new = {key: value for key, value in values.items() if key.entity == entity}
        try:
            proposed = apply_edits(text, _add(replace(source, text=text), new, reason))
            _require_only(text, proposed, source, new)
        except Unsafe as why:
            left_out |= dict.fromkeys(new, str(why))
        else:
            text = proposed
    return text, left_out


def _add(source: Source, new: Mapping[Key, float], reason: str | None) -> list[Edit]:
    """Add the limits of one entity, in the layout of its neighbors."""
    root = compose(source)
    items: Any = _find(root, "quotas")
    entity = next(iter(new)).entity
    entries = _find_entries(source, root)
    if entity in entries:
        _refuse_fields(entries[entity], "until")
        limits: Any = _find(entries[entity], "limits")
        if not isinstance(limits, yaml.MappingNode) or not limits.value:
            raise Unsafe(f"its entry has no limits of its own: {_BY_HAND}")
        lines = [f"{key.key}: {_spell(key, value)}" for key, value in new.items()]
        if _is_flow(limits):
            at = int(limits.end_mark.index) - 1
            return [Edit(at, at, f", {', '.join(lines)}")]
        return [add_below(source.text, limits.value[-1][1], limits.value[0][0], lines)]
    limits = tuple((key.key, _spell(key, value)) for key, value in new.items())
    entry = dedent(quota_entry(Writable(Entity.parse(entity), limits), reason)).splitlines()
    named = [
        name.text for _, names in (read_entries(source, root) if root else ()) for name in names
    ]
    if entity in named:
        raise Unsafe(f"its entry declares several names: {_BY_HAND}")
    if not isinstance(items, yaml.SequenceNode) or (_is_flow(items) and items.value):
        raise Unsafe(f"its quotas are not a list of lines: {_BY_HAND}")
    if items.value:
        return [add_below(source.text, items.value[-1], items, entry)]
    indented = "".join(f"{_find_newline(source.text)}  {line}" for line in entry)
    start = len(source.text[: items.start_mark.index].rstrip(" "))
    return [Edit(start, items.end_mark.index, indented)]


def _spell(key: Key, value: float) -> str:
    spelled = spell_limit(QUOTA_KEYS[key.key], value)
    if spelled is None:
        raise Unsafe(f"YAML cannot declare {format_limit(key.key, value)}")
    return spelled


def add_below(text: str, last: yaml.Node, aligned: yaml.Node, lines: Iterable[str]) -> Edit:
    """Add lines below the last line of a node, at the column of another."""
    rest = _REST.match(text, _end(last))
    if rest is None:
        raise Unsafe(f"it shares lines with others: {_BY_HAND}")
    margin = " " * int(aligned.start_mark.column)
    newline, at = _find_newline(text), rest.end()
    added = "".join(f"{margin}{line}{newline}" for line in lines)
    is_after_line = text[at - 1] in "\r\n"
    return Edit(at, at, added if is_after_line else f"{newline}{added}")


def _find_newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return the text with its parts replaced, the last one first."""
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def _require_only(
    before: str, after: str, source: Source, values: Mapping[Key, float | None]
) -> None:
    """Raise Unsafe unless the two texts differ in exactly these limits, and in nothing else."""
    expected = _read_limits(before, source)
    for key, value in values.items():
        if value is None:
            expected.pop(key)
        elif key in expected:
            expected[key] = (value, *expected[key][1:])
    found = _read_limits(after, source)
    added = {key: value for key, value in values.items() if key not in expected}
    is_added = all(key in found and found.pop(key)[0] == of for key, of in added.items() if of)
    if not is_added or found != expected:
        raise Unsafe(f"the file would not be read as intended afterwards: {_BY_HAND}")


def _read_limits(text: str, source: Source) -> dict[Key, tuple[float, str | None, str | None]]:
    """Return value, owner and reason of each limit of a file. Raises Unsafe for an invalid one."""
    parsed = replace(source, text=text, problems=Problems())
    root = compose(parsed)
    rows = quota_rows(() if root is None else read_quotas_file(parsed, root).quotas, "")
    found = {row.id: (row.value, row.owner, row.reason) for row in rows}
    if parsed.problems:
        raise Unsafe(f"the file has problems; quota-ops check lists them: {_BY_HAND}")
    return found


def _find_entries(source: Source, root: yaml.Node | None) -> dict[str, yaml.Node]:
    """Return the node of each entry that declares one entity alone, by that entity."""
    entries = () if root is None else read_entries(source, root)
    return {entities[0].text: item for item, entities in entries if len(entities) == 1}


def _find(node: yaml.Node | None, name: str) -> yaml.Node | None:
    field = find_field(node, name)
    return field and field.value


def _refuse_fields(entry: yaml.Node, *names: str) -> None:
    """Raise Unsafe for an entry whose limits do not stand alone: it has one of these fields."""
    for name in names:
        if find_field(entry, name):
            raise Unsafe(f"its entry has {name}: {_BY_HAND}")


def _find_limit(entries: Mapping[str, yaml.Node], key: Key) -> tuple[Key, yaml.Node]:
    """Return a key and the node of its value."""
    limits = _find(entries.get(key.entity), "limits")
    node = _find(limits, key.key)
    if node is None:
        raise Unsafe("the file does not declare it")
    return key, node


def _set(source: Source, key: Key, node: yaml.Node, value: float) -> Edit:
    spelled = _spell(key, value)
    start, end = node.start_mark.index, node.end_mark.index
    is_block = isinstance(node, yaml.ScalarNode) and node.style in {"|", ">"}
    if is_block or source.text[start] in "&!" or "\n" in source.text[start:end]:
        raise Unsafe(f"its value is not a plain number on one line: {_BY_HAND}")
    return Edit(start, end, spelled)


def _remove(source: Source, key: Key) -> list[Edit]:
    """Remove a limit; with it the entry if it has no other, and then write [] for no entries."""
    root = compose(source)
    entries = _find_entries(source, root)
    _find_limit(entries, key)
    entry: Any = entries[key.entity]
    _refuse_fields(entry, "profile")  # which may set it too
    limits: Any = _find(entry, "limits")
    if len(limits.value) > 1:
        at = [name.value for name, _ in limits.value].index(key.key)
        return [_remove_item(source, limits, limits.value, at)]
    _refuse_fields(entry, "cluster_limits", "overrides")
    items: Any = _find(root, "quotas")
    at = next(at for at, item in enumerate(items.value) if item is entry)
    edit = _remove_item(source, items, [(item, item) for item in items.value], at)
    if len(items.value) > 1 or _is_flow(items):
        return [edit]
    names: Any = root and root.value
    end = next(name.end_mark.index for name, _ in names if name.value == "quotas") + 1
    return [edit, Edit(end, end, " []")]


def _remove_item(
    source: Source, parent: yaml.Node, items: Sequence[tuple[yaml.Node, yaml.Node]], at: int
) -> Edit:
    """Remove an item, from the start of its first node to the end of its last one."""
    spans = [(first.start_mark.index, _end(last)) for first, last in items]
    start, end = spans[at]
    if _is_flow(parent):
        if at + 1 < len(spans):
            edit = Edit(start, spans[at + 1][0])
        else:
            edit = Edit(spans[at - 1][1] if at else start, end)
        if any(char in source.text[edit.start : edit.end] for char in "#\n"):
            raise Unsafe(f"it shares lines with others: {_BY_HAND}")
        return edit
    line = max(source.text.rfind(line_end, 0, start) for line_end in "\r\n") + 1
    rest = _REST.match(source.text, end)
    if not _MARGIN.fullmatch(source.text, line, start) or rest is None:
        raise Unsafe(f"it shares lines with others: {_BY_HAND}")
    return Edit(line, rest.end())


def _is_flow(node: Any) -> bool:
    return bool(node.flow_style)


def _end(node: yaml.Node) -> int:
    """Return where the text of a node ends; that of a block ends only before the next token."""
    if isinstance(node, yaml.ScalarNode) or _is_flow(node) or not node.value:
        return int(node.end_mark.index)
    last = node.value[-1]
    return _end(last[1] if isinstance(last, tuple) else last)
