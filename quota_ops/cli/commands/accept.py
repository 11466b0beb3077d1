"""The command `accept`: write what a cluster stores into the YAML that declares otherwise."""

from typing import TYPE_CHECKING

import click

from quota_ops.cli import options
from quota_ops.cli.console import show_result
from quota_ops.model.errors import InvalidInput
from quota_ops.model.quotas.quota import QUOTA_KEYS
from quota_ops.model.text import command, counted

if TYPE_CHECKING:
    from quota_ops.cli.session import Session
    from quota_ops.model.quotas.filter import EntityFilter
    from quota_ops.model.quotas.rows import Key


@options.command("""
  quota-ops accept demo --names user=alice --dry-run      prints the patch
  quota-ops accept demo --names user=alice --key producer_byte_rate
  quota-ops accept demo --all --run 2026-11-21T10-15-00Z-7f3a
  quota-ops accept demo --names user=newjob --file payments.yaml      an alter of a new user

\b
Then:
  git commit -a, and open a pull request   the plan of it shows no change for these quotas""")
@options.entities
@click.option("--all", "everything", is_flag=True, help="Every quota that drifted.")
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="KEY",
    type=click.Choice([*QUOTA_KEYS]),
    help="Only this key; repeatable.",
)
@click.option(
    "--run",
    default="last",
    metavar="RUN",
    help="The run that found the drift, or that altered the quotas.  [default: last]",
)
@click.option(
    "--file",
    "receiver",
    metavar="FILE",
    help="The file below the cluster's folder for an entity that Git does not declare.  [default: "
    "that of its owner, else of the quota that it overrides, else the only one]",
)
@click.option("--dry-run", is_flag=True, help="Print the patch, and write nothing.")
@options.on_cluster()
@options.output_format
def accept(
    *,
    session: "Session",
    flags: options.EntityFlags,
    everything: bool,
    keys: tuple[str, ...],
    run: str,
    receiver: str | None,
    dry_run: bool,
    output: str,
) -> None:
    """Accept drift: write what the cluster stores into the YAML files.

    Takes the values that a run found or that `alter` wrote, sends nothing to the cluster, and
    changes only the characters of these limits; a quota that was deleted on the cluster is removed,
    and an unmanaged or overriding one is added if you select it. Lists what it cannot change
    safely, for example an entry that shares its line with others, or a limit that changed in Git
    since that run. --all leaves out limits that changed both in Git and on the cluster, and
    unmanaged ones. Nothing is committed.
    """
    from quota_ops.cli import records
    from quota_ops.cli.adoption import parse_wanted
    from quota_ops.desired.export.accept import NewLimit, accept_limits
    from quota_ops.model.quotas.difference import Difference, Kind
    from quota_ops.model.quotas.tables import DIFFERENCES
    from quota_ops.report.outline.layout import Tone, line
    from quota_ops.runs.alter import list_altered
    from quota_ops.store.run.files import ALTER

    if not (any(flags) or everything):
        raise InvalidInput(
            "no quota is specified",
            "Add --names user=alice, --defaults user for the default, or --all for every drift.",
        )
    who = parse_wanted(flags, everything=everything)
    folder = records.find_run(session, run)
    alter = folder.find(ALTER)
    if not (alter or folder.has(DIFFERENCES.file)):
        raise InvalidInput(
            f"run {folder.place.name} has not compared Git with the cluster",
            f"Compare again: {command('report', session.policy.cluster)}. Or pass an earlier "
            "run with --run.",
        )
    rows: list[Difference] = []
    if alter:
        drifted = [limit for limit in list_altered(folder) if _is_wanted(limit.id, who, keys)]
    else:
        rows = [row for row in folder.differences() if _is_wanted(row.id, who, keys)]
        overridden = {row.id: row.declared_entity for row in reversed(folder.overrides())}
        drifted = [
            NewLimit(
                row.id,
                row.before,
                row.after,
                is_conflict=everything and row.kind is Kind.CONFLICT,
                overridden=overridden.get(row.id, ""),
            )
            for row in rows
            if row.is_drift or (who is not None and row.kind in {Kind.UNMANAGED, Kind.OVERRIDING})
        ]
    if not drifted and alter:
        raise InvalidInput(
            f"run {folder.place.name} is an alter, which changed none of these quotas",
            "Pass the run that found the drift with --run, or compare again: "
            f"{command('report', session.policy.cluster)}",
        )
    if not drifted:
        others = f"; {counted(len(rows), 'difference')} of another kind" if rows else ""
        raise InvalidInput(
            f"run {folder.place.name} found no drift among these quotas{others}",
            f"What it found: {command('show', f'{session.policy.cluster}/{folder.place.name}')}",
        )
    reason = alter.reason if alter else None
    found = accept_limits(
        session.folder, drifted, dry_run=dry_run, receiver=receiver, reason=reason
    )
    did = "would be accepted" if dry_run else "accepted"
    of = f"{len(found.accepted):,} of {counted(len(drifted), 'quota')} {did}"
    if found.already:
        of += f", {len(found.already):,} already as on the cluster"
    show_result(
        output,
        text=lambda: (
            found.patch,
            *(
                line(f"left out: {key.entity} {key.key}: {why}", Tone.REFUSAL)
                for key, why in found.left_out
            ),
            line(f"{of}; the values come from run {folder.place.name}", Tone.OK),
        ),
        json=lambda: {
            "run": folder.place.name,
            "written": not dry_run,
            "accepted": [key._asdict() for key in found.accepted],
            "already": [key._asdict() for key in found.already],
            "left_out": [{**key._asdict(), "why": why} for key, why in found.left_out],
            "patch": found.patch,
        },
    )
    if not found.accepted and found.left_out:
        raise InvalidInput("nothing was accepted", "The reasons are above.")


def _is_wanted(row: "Key", who: "EntityFilter | None", keys: tuple[str, ...]) -> bool:
    from quota_ops.model.quotas.entity import Entity

    is_named = who is None or who.accepts(Entity.parse(row.entity))
    return is_named and (not keys or row.key in keys)
