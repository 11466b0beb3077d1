"""What `alter` does: look, ask the broker, send, and say what became of each entity."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import click

from quota_ops.cli.ending import keep_verb, stoppable, warn_of_writes
from quota_ops.cli.layout import TEXT, show
from quota_ops.cli.show import warn_idle
from quota_ops.desired.export.one_off import OneOff
from quota_ops.desired.git.commit import read_with_commit
from quota_ops.desired.read import Desired, read_policy
from quota_ops.desired.standstill import standstill
from quota_ops.findings.entity_rules import STARVING_BELOW, name_findings, starving_finding
from quota_ops.kafka.cluster import open_policy
from quota_ops.kafka.connection import find_connection
from quota_ops.model.alteration import Alteration, altered_keys, count_altered
from quota_ops.model.commit import Provenance
from quota_ops.model.entity import Entity
from quota_ops.model.errors import GitFailed, InvalidInput, Refused
from quota_ops.model.finding import Finding
from quota_ops.model.outcome import Outcome, Status
from quota_ops.model.policy import Policy
from quota_ops.model.quota import format_limit, json_number, same
from quota_ops.model.rows import BatchRow
from quota_ops.model.text import counted
from quota_ops.report.audit_verb import Verb
from quota_ops.report.cells import outcome_words
from quota_ops.report.findings import FEW, finding_lines, findings_json
from quota_ops.report.remarks import altered_at_standstill
from quota_ops.report.screen import Row, Span, Table, Tone, line
from quota_ops.report.screens import guard_line
from quota_ops.runs import alter, command_record
from quota_ops.runs.alter import Altered
from quota_ops.runs.concurrent_writes import find_concurrent_writes
from quota_ops.runs.ownership import Word
from quota_ops.store.holds import holds_now
from quota_ops.store.login import find_login
from quota_ops.store.run_folder import ALTER, APPLIED, RunFolder
from quota_ops.store.run_store import find_run_store


def alter_cluster(
    folder: Path,
    asked: Sequence[Alteration],
    *,
    commit: str | None,
    by: str,
    reason: str,
    allow: Sequence[str],
    connection_file: Path | None,
    run_store: str | None,
    output: str,
    validate_only: bool,
) -> None:
    """Alter, show what became of it, and raise Refused when an entity did not end as asked."""
    policy, store = read_policy(folder), find_run_store(run_store)
    alter.refuse_protected(asked, policy.protect)
    found = find_connection(policy.connection, file=connection_file)
    desired, provenance = _read(folder, commit, must_know=not validate_only)
    run = command_record.start(store, policy, provenance)
    word = Word(by, reason, find_login())
    entities = {one.entity for one in asked}
    look = partial(find_concurrent_writes, store.runs_of(policy.cluster), entities.__contains__)
    writes = look()
    with stoppable(run, Verb.ALTER, APPLIED), open_policy(policy, found) as cluster:
        done = alter.run(
            run,
            cluster,
            asked,
            word,
            ledger_folder=store.ledger(policy.cluster_id),
            policy=policy,
            allow=allow,
            validate_only=validate_only,
        )
    sent = done.refusal is None and not validate_only
    show_it = _show_text if output == TEXT else _show_json
    try:
        git = _git(desired, store.holds(policy.cluster_id))
        show_it(policy, run, done, git, sent=sent)
        warn_idle(allow, done)
        if sent:
            warn_of_writes((*writes, *look()))
    finally:
        if not validate_only:
            keep_verb(run, Verb.ALTER)
    if done.refusal is not None:
        raise done.refusal
    if left := [one for one in done.outcomes if one.status is not Status.ACCEPTED]:
        raise Refused(
            f"{len(left):,} of {counted(len(done.outcomes), 'entity')} did not end as asked",
            "What was accepted is written.",
        )


def _show_json(
    policy: Policy,
    run: RunFolder,
    done: Altered,
    git: OneOff | None,
    *,
    sent: bool,
) -> None:
    rows, outcomes = done.rows, {one.entity: one for one in done.outcomes}
    stopped = standstill(policy, datetime.now(UTC))
    changes = [
        {
            "entity": row.entity,
            "key": row.key,
            "before": json_number(row.before),
            "after": json_number(row.after),
            "status": str(outcomes[row.entity].status),
            "code": outcomes[row.entity].code,
            "error": outcomes[row.entity].error,
            "message": outcomes[row.entity].message,
            "git": git.remark(row) if git else None,
        }
        for row in rows
    ]
    written = count_altered(run.read_as(ALTER, altered_keys), done.outcomes) if sent else 0
    said = {"run": str(run.path), "sent": sent, "changed": written, "standstill": stopped}
    said["changes"] = changes
    said["guards"] = [asdict(one) for one in done.guards]
    said["findings"] = findings_json(_findings(rows))
    click.echo(json.dumps(said, ensure_ascii=False, indent=1))


def _show_text(
    policy: Policy,
    run: RunFolder,
    done: Altered,
    git: OneOff | None,
    *,
    sent: bool,
) -> None:
    rows, outcomes = done.rows, {one.entity: one for one in done.outcomes}
    verb = _came_to(run, done) if sent else "asked, nothing written"
    heading = line(f"{policy.cluster} ({policy.cluster_id}): {verb}", Tone.STRONG)
    table = Table(
        ("entity", "key", "before", "after", "the broker says"),
        tuple(_row(row, outcomes[row.entity], git, sent=sent) for row in rows),
    )
    show((heading, line(), table, line()))
    if done.guards:
        show((*map(guard_line, done.guards), line()))
    if found := _findings(rows):
        show((*finding_lines(found, most=FEW), line()))
    if (stopped := standstill(policy, datetime.now(UTC))) is not None:
        show((line(altered_at_standstill(policy.cluster, stopped), Tone.CHANGE), line()))
    show((line(f"run: {run.path}", Tone.CONTEXT),))
    if git is None:
        problems = "The desired state or a hold has problems"
        click.echo(f"{problems}, so nobody knows what Git says; see check.")
        return
    written = [row for row in rows if sent and outcomes[row.entity].status is Status.ACCEPTED]
    if keep := "".join(git.to_keep(written)):
        click.echo(f"\nTo keep it, say so in Git:\n\nquotas:\n{keep}", nl=False)


def _came_to(run: RunFolder, done: Altered) -> str:
    """Return what an alter that was sent did, for its heading."""
    changing = run.read_as(ALTER, altered_keys)
    if not changing:
        return "nothing changed, the cluster stored all of it before"
    if count_altered(changing, done.outcomes):
        return "altered"
    is_unknown = any(one.may_be_written for one in done.outcomes)
    return "unknown whether altered" if is_unknown else "not altered"


def _findings(rows: Sequence[BatchRow]) -> list[Finding]:
    """What `check` would find of the names and values that are set."""
    names = dict.fromkeys(row.entity for row in rows if row.after is not None)
    return [
        *(finding for name in names for finding in name_findings(Entity.parse(name))),
        *(
            starving_finding(Entity.parse(row.entity), row.key, row.after)
            for row in rows
            if row.after is not None and row.after < STARVING_BELOW.get(row.key, 0)
        ),
    ]


def _row(row: BatchRow, outcome: Outcome, git: OneOff | None, *, sent: bool) -> Row:
    accepted = outcome.status is Status.ACCEPTED
    words = "would be accepted" if accepted and not sent else outcome_words(outcome)
    if accepted and same(row.before, row.after):
        words += ", no change"
    if outcome.code:
        words += f" [code {outcome.code}]"
    cells = (
        row.entity,
        row.key,
        format_limit(row.key, row.before),
        format_limit(row.key, row.after),
    )
    remark = git.remark(row) if git and accepted else ""
    if remark and not sent:
        remark = f"once written: {remark}"
    below = (line(f"  {remark}", Tone.CONTEXT),) if remark else ()
    tone = Tone.OK if accepted else Tone.REFUSAL
    return Row((*map(Span, cells), Span(words, tone)), below)


def _read(
    folder: Path, commit: str | None, *, must_know: bool
) -> tuple[Desired | None, Provenance]:
    """The desired state and its commit; no problem of its files stops an operator at night."""
    try:
        return read_with_commit(folder, given=commit, must_know=must_know)
    except GitFailed:
        raise
    except InvalidInput:
        return None, Provenance.given(commit)


def _git(desired: Desired | None, holds: Path) -> OneOff | None:
    """What becomes of the change by Git and holds; None when one of them has problems."""
    try:
        stopped = None if desired is None else standstill(desired.policy, datetime.now(UTC))
        return None if desired is None else OneOff(desired, holds_now(holds), stopped)
    except InvalidInput:
        return None
