"""The command `alter`: change quotas once, without Git."""

from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quota_ops.cli import options
from quota_ops.cli.console import show_result, warn_idle, warn_of_writes
from quota_ops.model.errors import GitFailed, InvalidInput
from quota_ops.model.plans.guard import OF_ALTER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quota_ops.cli.session import Session
    from quota_ops.desired.export.one_off import OneOff
    from quota_ops.desired.read import Desired
    from quota_ops.model.commit import Provenance
    from quota_ops.model.plans.hold import Hold
    from quota_ops.model.plans.policy import Policy
    from quota_ops.model.quotas.alteration import Alteration
    from quota_ops.runs.alter import Undo
    from quota_ops.store.run.folder import RunFolder


@options.command("""
  quota-ops alter demo --names user=alice --add "consumer_byte_rate=20 MiB" --reason INC-31
  quota-ops alter demo --names user=alice --add request_percentage=50 --until 8h --reason INC-31
  quota-ops alter demo --names client-id=app --defaults user --delete producer_byte_rate
  quota-ops alter demo --names user=replicator --add producer_byte_rate=unlimited
  quota-ops alter demo --from changes.jsonl --validate-only
  quota-ops alter demo --undo last""")
@options.names
@options.defaults
@click.option(
    "--add", multiple=True, metavar="KEY=VALUE[,…]", help="Set a key: a number, 10 MiB, unlimited."
)
@click.option("--delete", multiple=True, metavar="KEY[,…]", help="Clear a key.")
@click.option(
    "--from",
    "source",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Read many changes: a line for each key, as in a snapshot; null clears a key.",
)
@click.option(
    "--undo",
    metavar="RUN",
    help="Restore the values before an earlier alter, or the `last` one, where nobody has changed "
    "them since.",
)
@click.option("--validate-only", is_flag=True, help="Only validate; write nothing.")
@click.option(
    "--allow",
    multiple=True,
    metavar="GUARD",
    type=click.Choice(OF_ALTER),
    help=f"Override a guard: {', '.join(OF_ALTER)}; may be repeated. Needs --reason.",
)
@click.option(
    "--until",
    metavar="TIME",
    help="Hold the change until then: a duration (2h), or a time with its zone. The first run from "
    "then on reverts it. Needs --reason.",
)
@options.refuse_idle("--until", "Leave it out: nothing is written.", beside=("--validate-only",))
@options.reason("Why; it is recorded.")
@options.by
@options.commit
@options.on_cluster(options.connection)
@options.output_format
def alter(
    *,
    session: "Session",
    names: tuple[str, ...],
    defaults: tuple[str, ...],
    add: tuple[str, ...],
    delete: tuple[str, ...],
    source: Path | None,
    undo: str | None,
    validate_only: bool,
    allow: tuple[str, ...],
    until: str | None,
    reason: str | None,
    by: str,
    commit: str | None,
    output: str,
) -> None:
    """Change quotas once, without Git.

    Shows when the next run reverts the change. The broker validates all changes before any of
    them is sent. Entities under `protect` are refused. A run folder keeps the changes and the
    outcome of each entity.
    """
    from quota_ops.cli import records
    from quota_ops.cli.run_end import record_command
    from quota_ops.cli.stage_options import StageOptions
    from quota_ops.cli.stage_run import Begun, recording_end, run_begun
    from quota_ops.model.plans.approval import find_login
    from quota_ops.model.runs.run import Alter
    from quota_ops.runs.alter import Undo, refuse_protected
    from quota_ops.runs.chain import CHAINS, READ_ONLY
    from quota_ops.runs.run import start_command_run
    from quota_ops.store.run.files import ALTER, APPLIED, VALIDATED

    undone = None if undo is None else Undo.read(records.find_alter(session, undo))
    wanted = _read_wanted(session.policy, undone, source, (names, defaults, add, delete))
    typed = StageOptions(session, None, output, allow=allow, reason=reason if allow else None)
    refuse_protected(wanted, session.policy, session.records)
    session.find_connection()  # before a run is started
    desired, provenance = _read_desired(session, commit, must_know=not validate_only)
    until_time = _parse_until(session, until, reason, wanted, desired)
    why = reason or (f"undoes {undone.run}" if undone else "")
    select = undone.select if undone else lambda _stored: wanted
    folder = start_command_run(session.store, session.policy, provenance).with_cache()
    folder.write(ALTER, Alter(by, find_login(), why, until_time))
    entities = {alteration.entity for alteration in wanted}
    writes = records.find_writes(session, entities.__contains__)
    stages = [stage for stage in CHAINS["alter"] if not validate_only or stage in READ_ONLY]
    begun = Begun(folder, stages, typed)

    def record(artifact: str = VALIDATED) -> None:
        if folder.has(artifact) and not validate_only:
            record_command(folder, session.connection_file)

    error = run_begun(begun, partial(record, APPLIED), select)
    with recording_end(begun, error, record):
        if folder.has(VALIDATED):
            _show_end(session, folder, desired, undone, output)
            warn_idle(allow, folder.plan().guards)
            written = (*writes, *records.find_writes(session, entities.__contains__))
            warn_of_writes(written if folder.has(APPLIED) else ())
    if error is not None:
        raise error


def _show_end(
    session: "Session",
    folder: "RunFolder",
    desired: "Desired | None",
    undone: "Undo | None",
    output: str,
) -> None:
    """Show what the broker accepted, or would accept, and what Git declares."""
    from quota_ops.desired.pauses import find_pause
    from quota_ops.model.plans.hold import find_hold
    from quota_ops.model.quotas.entity import Entity
    from quota_ops.model.quotas.specification import format_flags
    from quota_ops.model.text import command
    from quota_ops.report.screens.alter import AlterReport, alter_json, alter_screen, kept_text
    from quota_ops.stages.report.run_report import load_report
    from quota_ops.store.ledger.holds import holds_now
    from quota_ops.store.run.files import APPLIED

    shown = AlterReport(
        load_report(folder),
        str(folder.place),
        folder.plan().guards,
        *_compare_git(session, desired),
        find_pause(session.policy, datetime.now(UTC)),
    )
    show_result(
        output,
        text=lambda: (*alter_screen(shown), kept_text(shown)),
        json=lambda: alter_json(shown),
    )
    restored = {row.id for row in shown.changes}
    for row in undone.changes if undone else ():
        if row.id not in restored:
            click.echo(f"{row.entity} {row.key} was changed since, and stays as it is", err=True)
    holds: tuple[Hold, ...] = ()
    with suppress(InvalidInput):  # shown above
        is_written = all(outcome.was_written for outcome in shown.outcomes.values())
        if folder.has(APPLIED) and (undone or shown.git is None or not is_written):
            holds = holds_now(session.records.holds)
    for entity in dict.fromkeys(Entity.parse(row.entity) for row in shown.changes):
        if hold := find_hold(holds, entity):
            release = f"{command('release', session.policy.cluster)} {format_flags(entity)}"
            words = f"{entity.text} is still {hold.text}. To end the hold: {release} --reason TEXT"
            click.echo(words, err=True)


def _parse_until(
    session: "Session",
    until: str | None,
    reason: str | None,
    wanted: "Sequence[Alteration]",
    desired: "Desired | None",
) -> datetime | None:
    """Return until when the changed entities are held; None without --until."""
    from quota_ops.model.moment import parse_until
    from quota_ops.runs.alter import refuse_unless_returns

    if until is None:
        return None
    if not reason:
        raise InvalidInput("--until needs a reason", "Add --reason TEXT: every report shows it.")
    try:
        ends = parse_until(until, datetime.now(UTC).replace(microsecond=0))
    except ValueError as error:
        raise InvalidInput(f"--until {error}") from None
    refuse_unless_returns(wanted, desired, session.records)
    return ends


def _read_wanted(
    policy: "Policy", undone: "Undo | None", source: Path | None, typed: tuple[tuple[str, ...], ...]
) -> "tuple[Alteration, ...]":
    """Return the changes of an earlier alter, of a file, or `typed` as options; of one of these."""
    from quota_ops.model.quotas.alteration import Alteration, parse_changes
    from quota_ops.model.quotas.specification import parse_entity

    if undone is not None:
        _refuse_beside("--undo", *typed, source)
        return undone.alterations
    if source is not None:
        _refuse_beside("--from", *typed)
        return _read_changes(source, policy)
    names, defaults, add, delete = typed
    return (Alteration(parse_entity(names, defaults), parse_changes(add, delete)),)


def _refuse_beside(option: str, *others: object) -> None:
    if any(others):
        also = ", --from" if option == "--undo" else ""
        raise InvalidInput(
            f"{option} already contains the entities and their changes",
            f"Leave out --names, --defaults, --add{also} and --delete.",
        )


def _read_changes(source: Path, policy: "Policy") -> "tuple[Alteration, ...]":
    """Read the changes in a file. Raises InvalidInput if it names another cluster."""
    from quota_ops.model.quotas.alteration import read_changes
    from quota_ops.model.quotas.snapshot import read_header
    from quota_ops.store.places.snapshot import read_lines

    lines = read_lines(source)
    changes = read_changes(lines, str(source))
    read_header(lines, str(source)).require_cluster(policy.cluster_id, str(source))
    return changes


def _read_desired(
    session: "Session", commit: str | None, *, must_know: bool
) -> "tuple[Desired | None, Provenance]":
    """Read the desired state and its commit; None, not an error, if its files are invalid."""
    from quota_ops.desired.git.commit import read_with_commit
    from quota_ops.model.commit import Provenance
    from quota_ops.stages.use.recorded import read_group_use

    try:
        return read_with_commit(
            session.folder,
            given=commit,
            must_know=must_know,
            find_use=partial(read_group_use, session.store),
        )
    except GitFailed:
        raise
    except InvalidInput:
        return None, Provenance.given(commit)


def _compare_git(session: "Session", desired: "Desired | None") -> "tuple[OneOff | None, str]":
    """Compare the change with Git, the ledger and the holds; None, and why, if one is invalid."""
    from quota_ops.cli import records
    from quota_ops.model.text import command

    if desired is None:
        why = f"the files of Git are invalid. They are listed by: {command('check')}"
        return None, why
    try:
        return records.compare_git(session, desired), ""
    except InvalidInput as error:
        remedy = (error.remedy or "").removeprefix("Nothing was changed. ")  # the alter may have
        return None, "\n".join(filter(None, (error.message, remedy)))
