"""The command `explain`: show what a line of a file, an entity or a cluster becomes."""

from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quota_ops.cli import options
from quota_ops.cli.console import show_result
from quota_ops.model.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from quota_ops.desired.read import Desired
    from quota_ops.model.plans.placement import Placement
    from quota_ops.model.quotas.rows import DesiredRow, Key
    from quota_ops.report.screens.expanded import Changes

MOST_CHANGES = 20
"""How many times in the future are looked at."""
_ALIKE = 0.8
"""How much of an entity must be as typed, from 0 to 1, so that it is suggested."""


@options.command("""
  quota-ops explain demo payments.yaml:12    the entry on this line
  quota-ops explain demo user=alice          an entity
  quota-ops explain demo --format jsonl      every limit, one a line""")
@click.argument("cluster")
@click.argument("what", metavar="[FILE:LINE|ENTITY]", required=False)
@options.desired_state
@options.as_of
@options.brokers
@options.table_format
def explain(
    *,
    cluster: str,
    what: str | None,
    desired_state: Path,
    as_of: str | None,
    brokers: "Placement | None",
    output: str,
) -> None:
    """Show what a line of a file, an entity or a cluster becomes.

    Lists each limit with the line that declares it, the list, profile or override that it comes
    from, and when it changes. Needs no broker.
    """
    from quota_ops.desired.read import find_cluster, read_cluster
    from quota_ops.model.moment import iso_utc
    from quota_ops.report.screens.expanded import (
        expanded_objects,
        explanation_screen,
        undivided_lines,
    )

    folder, at = find_cluster(cluster, desired_state), as_of or iso_utc()

    def read(time: str) -> "Desired":
        return read_cluster(folder, at=time).divide(brokers, folder)

    desired = read(at)
    changes = _find_changes(desired, read)
    entities = None if what is None else _find_entities(desired, folder, what)
    every = (*desired.rows, *desired.coming)
    order = {name: at for at, name in enumerate(dict.fromkeys(row.entity for row in every))}
    rows = [row for row in every if entities is None or row.entity in entities]
    rows.sort(key=lambda row: order[row.entity])
    objects = expanded_objects(rows, desired.policy.cluster)
    coming = {row.id for row in desired.coming}
    for row, found in zip(rows, objects, strict=True):
        if row.id in coming:
            found["value"] = None
        found["changes"] = [
            {"at": time, "value": later and later.value} for time, later in changes.get(row.id, ())
        ]
    show_result(
        output,
        text=lambda: [
            *explanation_screen(rows, coming, changes),
            *undivided_lines(rows, desired.policy.cluster),
        ],
        json=lambda: {"limits": objects},
        rows=lambda: objects,
    )


def _find_entities(desired: "Desired", folder: Path, what: str) -> frozenset[str]:
    """Return the entities that a person means. Raises InvalidInput if there are none."""
    from quota_ops.desired.files import SHARED
    from quota_ops.desired.read import find_entities
    from quota_ops.desired.shared import shared_folder, shared_name
    from quota_ops.model.quotas.entity import Entity

    file, _, number = what.rpartition(":")
    if file and number.isdecimal():
        name = file.removeprefix(f"{folder}/")
        beside = f"{shared_folder(folder)}/"
        if name.startswith((beside, f"{SHARED}/")):
            name = shared_name(name.removeprefix(beside).removeprefix(f"{SHARED}/"))
        found = find_entities(desired, name, int(number))
        if not found:
            files = ", ".join(sorted(desired.contents))
            raise InvalidInput(
                f"no quota of {desired.policy.cluster} comes from {what} at this time",
                f"Pass the line of an entry. The files are {files}.",
            )
        return found
    entities = {row.entity for row in desired.rows}
    if what not in entities:
        named = [text for text in entities if what in Entity.parse(text).as_dict().values()]
        near = min(named, key=len, default=None) or next(
            iter(get_close_matches(what, entities, n=1, cutoff=_ALIKE)), None
        )
        raise InvalidInput(
            f"{desired.policy.cluster} declares no quota of {what} at this time",
            f"Did you mean {near}?"
            if near
            else "Write an entity as plans show it, for example user=alice, or FILE:LINE.",
        )
    return frozenset({what})


def _find_changes(desired: "Desired", read: "Callable[[str], Desired]") -> "Changes":
    """Return how rows change at a known time, those that begin later included."""
    changes: dict[Key, list[tuple[str, DesiredRow | None]]] = {}
    for _ in range(MOST_CHANGES):
        rows = (*desired.rows, *desired.coming)
        at = min((row.until for row in rows if row.until is not None), default=None)
        if at is None:
            break
        desired = read(at)
        later = {row.id: row for row in desired.rows}
        for row in rows:
            if row.until == at:
                changes.setdefault(row.id, []).append((at, later.get(row.id)))
    return changes
