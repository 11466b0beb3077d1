"""The command `alter`: change quotas once, without Git."""

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quota_ops.cli import options
from quota_ops.cli.console import show_result, warn_idle, warn_of_writes
from quota_ops.cli.idle_options import refuse_idle
from quota_ops.model.errors import GitFailed, InvalidInput, Refused
from quota_ops.model.plans.guard import OF_ALTER
from quota_ops.model.text import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from quota_ops.cli.session import Session
    from quota_ops.desired.export.one_off import OneOff
    from quota_ops.desired.read import Desired
    from quota_ops.model.commit import Provenance
    from quota_ops.model.plans.policy import Policy
    from quota_ops.model.quotas.alteration import Alteration
    from quota_ops.report.screens.alter import AlterReport
    from quota_ops.runs.alter import Altered, Undo
    from quota_ops.runs.ownership import Attribution


@click.command(
    epilog="""\b
Examples:
  quota-ops alter demo --names user=alice --add "consumer_byte_rate=20 MiB" --reason INC-31
  quota-ops alter demo --names user=alice --add request_percentage=50 --until 8h --reason INC-31
  quota-ops alter demo --names client-id=app --defaults user --delete producer_byte_rate
  quota-ops alter demo --names user=replicator --add producer_byte_rate=unlimited
  quota-ops alter demo --from changes.jsonl --validate-only
  quota-ops alter demo --undo last"""
)
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
@refuse_idle("--until", "Leave it out: nothing is written.", beside=("--validate-only",))
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
    from quota_ops.cli.run_end import record_command, record_command_if_stopped
    from quota_ops.desired.pauses import find_pause
    from quota_ops.model.plans.approval import find_login
    from quota_ops.report.screens.alter import AlterReport
    from quota_ops.runs.alter import Undo, alter_quotas, refuse_protected
    from quota_ops.runs.command_record import open_run_cluster, start_command_run
    from quota_ops.runs.ownership import Attribution
    from quota_ops.stages.plan.effects import read_effects
    from quota_ops.stages.report.end_record import find_audit_connection
    from quota_ops.store.run.attempt import report_sent
    from quota_ops.store.run.files import ALTER, APPLIED, EFFECTS
    from quota_ops.store.run.state import RunState

    undone = None if undo is None else Undo.read(session.find_alter(undo))
    wanted = _read_wanted(session.policy, undone, source, (names, defaults, add, delete))
    overridden = tuple(options.parse_allowed(allow, reason, "alter"))
    refuse_protected(wanted, session.policy, session.records)
    connection = session.find_connection()
    desired, provenance = _read_desired(session, commit, must_know=not validate_only)
    why = reason or (f"undoes {undone.run}" if undone else "")
    attribution = Attribution(by, why, find_login())
    hold = _prepare_hold(session, until, attribution, wanted, desired)
    run = start_command_run(session.store, session.policy, provenance)
    entities = {alteration.entity for alteration in wanted}
    writes = session.find_writes(entities.__contains__)
    stoppable = record_command_if_stopped(run, APPLIED, session.connection_file)
    opening = open_run_cluster(run, "validate", session.policy, connection)
    with stoppable, opening as opened:
        find_facts = opened.start_facts_query()
        done = alter_quotas(
            run,
            opened,
            wanted,
            attribution,
            records=session.records,
            policy=session.policy,
            allow=overridden,
            undo=undone,
            validate_only=validate_only,
            hold=hold,
            find_audit=partial(find_audit_connection, file=session.connection_file),
        )
        facts = find_facts()
    sent = done.refusal is None and not validate_only
    with report_sent(done.outcomes if sent else (), run.place):
        try:
            read_back = RunState(run).verification
            _show(
                AlterReport(
                    policy=session.policy,
                    run=str(run.place),
                    rows=done.rows,
                    outcomes=done.outcomes,
                    guards=done.guards,
                    changing=frozenset(run.read(ALTER).changing) if sent else frozenset(),
                    git=_compare_git(session, desired),
                    standstill=find_pause(session.policy, datetime.now(UTC)),
                    sent=sent,
                    effects=read_effects(run) if run.has(EFFECTS) else {},
                    facts=facts,
                    brokers=read_back.brokers if read_back else (),
                ),
                output,
            )
            _warn_left(undone, done)
            warn_idle(overridden, done.guards)
            warn_of_writes((*writes, *session.find_writes(entities.__contains__)) if sent else ())
        finally:
            if not validate_only:
                record_command(run, session.connection_file)
    _raise_unless_done(done)


def _raise_unless_done(done: "Altered") -> None:
    """Raise why the change was not sent, not accepted or not stored by every broker."""
    from quota_ops.model.runs.outcome import Status

    if done.refusal is not None:
        raise done.refusal
    if left := [outcome for outcome in done.outcomes if outcome.status is not Status.ACCEPTED]:
        raise Refused(
            f"{len(left):,} of {counted(len(done.outcomes), 'entity')} did not succeed",
            "Run the command again for these: sending a value twice does no harm.",
        )
    if done.unverified is not None:
        raise done.unverified


def _prepare_hold(
    session: "Session",
    until: str | None,
    attribution: "Attribution",
    wanted: "Sequence[Alteration]",
    desired: "Desired | None",
) -> "Callable[[], None]":
    """Return a function that holds the changed entities; it does nothing without --until."""
    from quota_ops.model.moment import parse_until
    from quota_ops.runs.alter import hold_entities, refuse_unless_returns
    from quota_ops.store.ledger import ledger

    if until is None:
        return lambda: None
    if not attribution.reason:
        raise InvalidInput("--until needs a reason", "Add --reason TEXT: every report shows it.")
    try:
        ends = parse_until(until, datetime.now(UTC).replace(microsecond=0))
    except ValueError as error:
        raise InvalidInput(f"--until {error}") from None
    refuse_unless_returns(wanted, desired, ledger.read(session.records).rows)
    entities = [alteration.entity for alteration in wanted]
    return partial(hold_entities, session.records.holds, entities, ends, attribution)


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


def _warn_left(undone: "Undo | None", done: "Altered") -> None:
    """List the rows that were not restored, because their values have changed since."""
    restored = {row.id for row in done.rows}
    for row in undone.changes if undone else ():
        if row.id not in restored:
            click.echo(f"{row.entity} {row.key} was changed since, and stays as it is", err=True)


def _read_changes(source: Path, policy: "Policy") -> "tuple[Alteration, ...]":
    """Read the changes in a file. Raises InvalidInput if it names another cluster."""
    from quota_ops.model.quotas.alteration import read_changes
    from quota_ops.model.quotas.snapshot import read_header
    from quota_ops.store.places.snapshot import read_lines

    lines = read_lines(source)
    changes = read_changes(lines, str(source))
    read_header(lines, str(source)).require_cluster(policy.cluster_id, str(source))
    return changes


def _show(report: "AlterReport", output: str) -> None:
    from quota_ops.report.screens.alter import alter_json, alter_screen, kept_text

    show_result(
        output,
        text=lambda: (*alter_screen(report), kept_text(report)),
        json=lambda: alter_json(report),
    )


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


def _compare_git(session: "Session", desired: "Desired | None") -> "OneOff | None":
    """Compare the change with Git, the ledger and the holds; None if one of them is invalid."""
    from quota_ops.desired.export.one_off import OneOff
    from quota_ops.desired.pauses import find_pause
    from quota_ops.store.ledger import ledger
    from quota_ops.store.ledger.holds import holds_now

    if desired is None:
        return None
    try:
        stopped = find_pause(desired.policy, datetime.now(UTC))
        known = ledger.read(session.records).rows
        return OneOff(desired, known, holds_now(session.records.holds), stopped)
    except InvalidInput:
        return None
