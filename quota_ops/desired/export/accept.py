"""Accept drift: change the files of a cluster so that they declare what the cluster stores."""

from collections.abc import Iterable, Mapping
from difflib import unified_diff
from pathlib import Path
from typing import NamedTuple

from quota_ops.desired.export.disk import write_files
from quota_ops.desired.export.limit_edits import accept_values
from quota_ops.desired.git.commit import find_path
from quota_ops.desired.read import read_cluster
from quota_ops.desired.yaml.problems import Problems
from quota_ops.desired.yaml.source import Source
from quota_ops.model.difference import Difference, Kind
from quota_ops.model.errors import InvalidInput
from quota_ops.model.quota import same
from quota_ops.model.rows import DesiredRow, Key

_BOM = b"\xef\xbb\xbf"


class Accepted(NamedTuple):
    """What was accepted, what Git declares already, what was left out and why, and the patch."""

    accepted: tuple[Key, ...]
    already: tuple[Key, ...]
    left_out: tuple[tuple[Key, str], ...]
    patch: str


def accept_rows(
    folder: Path, rows: Iterable[Difference], *, conflicts: bool, dry_run: bool
) -> Accepted:
    """Change the files of a cluster's folder, unless `dry_run`, and return what changed.

    `conflicts` are accepted too: limits that changed in Git as well, where the change is lost.
    Raises InvalidDesiredState if the files have problems now, and InvalidInput if they change
    while they are written, or cannot be written.
    """
    desired = read_cluster(folder)
    declared = {row.id: row for row in desired.rows}
    already: set[Key] = set()
    left_out: dict[Key, str] = {}
    wanted: dict[str, dict[Key, float | None]] = {}
    for row in rows:
        known = declared.get(row.id)
        if same(known and known.value, row.before):
            already.add(row.id)
        elif known is None or (why := _explain_change(row, known, conflicts=conflicts)):
            left_out[row.id] = why if known else "Git does not declare it"
        else:
            wanted.setdefault(known.file, {})[row.id] = row.before
    contents: dict[str, bytes] = {}
    patch: list[str] = []
    for name, values in sorted(wanted.items()):
        content = desired.contents[name]
        source = Source(str(folder / name), name, content.decode("utf-8-sig"), Problems(), content)
        text, missed = accept_values(source, values)
        left_out |= missed
        if text != source.text:
            contents[name] = (_BOM if content.startswith(_BOM) else b"") + text.encode()
            patch += _diff(folder / name, content.decode(), contents[name].decode())
    if not dry_run:
        _write(folder, contents, desired.contents)
    accepted = [key for values in wanted.values() for key in values if key not in left_out]
    return Accepted(
        tuple(sorted(accepted)),
        tuple(sorted(already)),
        tuple(sorted(left_out.items())),
        "".join(patch),
    )


def _explain_change(row: Difference, known: DesiredRow, *, conflicts: bool) -> str:
    """Return why the limit in Git is not replaced; empty if it is."""
    if row.after is None:
        return "it was added to Git after that run"
    if not same(known.value, row.after):
        return "it changed in Git after that run"
    if known.derivation is not None:
        return f"{known.file}:{known.line} declares it with others ({known.derivation})"
    if row.kind is Kind.CONFLICT and not conflicts:
        return "it changed in Git too, which would be lost: name it with --names to accept it"
    return ""


def _diff(path: Path, before: str, after: str) -> list[str]:
    """Return the patch of a file for `git apply` in its checkout; outside any, from the root."""
    lines = (before.splitlines(keepends=True), after.splitlines(keepends=True))
    below = find_path(path.parent, None)
    name = str(path).lstrip("/") if below is None else f"{below}/{path.name}".lstrip("/")
    found = unified_diff(*lines, f"a/{name}", f"b/{name}")
    return [
        one if one.endswith("\n") else f"{one}\n\\ No newline at end of file\n" for one in found
    ]


def _write(folder: Path, contents: Mapping[str, bytes], before: Mapping[str, bytes]) -> None:
    """Write the files if nothing changed them since they were read."""
    now = read_cluster(folder).contents
    for name in contents:
        if now.get(name) != before[name]:
            raise InvalidInput(f"{folder / name} was changed just now", "Try again.")
    write_files(folder, contents, replaced=contents)
