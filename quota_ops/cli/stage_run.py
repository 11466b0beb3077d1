"""A run from the command line: its folder, connection and stages, and its result."""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import click

from quota_ops.cli.approval import find_approver
from quota_ops.cli.console import TEXT, show_progress, show_screen, warn_idle, warn_unnamed
from quota_ops.cli.interrupt import report_run_if_stopped
from quota_ops.cli.run_end import next_command, record_run, show_run
from quota_ops.cli.stage_options import StageOptions
from quota_ops.desired.files import cluster_name
from quota_ops.kafka.connection import find_connection
from quota_ops.model.errors import (
    CannotJudge,
    Claimed,
    Denied,
    GuardsRefused,
    InvalidInput,
    QuotaOpsError,
    Refused,
)
from quota_ops.model.quotas.alteration import Typed
from quota_ops.model.runs.report import Report
from quota_ops.model.runs.verification import BACK_OR_GONE
from quota_ops.model.text import command
from quota_ops.report.outline.row_status import RowStatus, report_rows
from quota_ops.report.outline.summary import describe_unseen_brokers
from quota_ops.runs.chain import CHAINS, RESUMED, SNAPSHOT_STAGES, list_sent, run_stages
from quota_ops.runs.run import Run, connect_once
from quota_ops.stages.report.end_record import find_audit_connection
from quota_ops.stages.report.run_report import load_report
from quota_ops.stages.succession import refuse_if_replaced
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import (
    find_outer_store,
    find_run_store,
    named_store,
    open_place,
    store_of,
)
from quota_ops.store.retention import refuse_pruned
from quota_ops.store.run.attempt import state_sent
from quota_ops.store.run.files import ALTER, APPLIED, DESCRIBED, PLAN, REPORT
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.names import find_run
from quota_ops.store.run.state import RunState

DIFFERENCES_EXIST = 4
OVERRIDDEN = 7
"""Git is stored, but an unmanaged quota is in force for some clients in place of it."""
_NAME_ANOTHER = "Choose a folder elsewhere."
_HAVE_OUT = frozenset({"diff", "plan", "validate", "report"})
"""The commands of stages with the option --out."""


class Begun(NamedTuple):
    """A run folder, new or of an earlier command, the stages to run on it, and what was typed."""

    folder: RunFolder
    stages: Sequence[str]
    typed: StageOptions


def run_command(name: str, typed: StageOptions) -> None:
    """Run a command's stages in a new run folder, or its own stage in the folder of --run."""
    if (typed.session.cluster is None) == (typed.run_folder is None):
        raise InvalidInput(f"{name} needs a CLUSTER or --run", f"See quota-ops {name} --help.")
    finish(name, _begin(name, typed))


def finish(name: str, begun: Begun) -> None:
    """Run the stages of a command, show and record how the run ended, and raise its error."""
    folder, typed = begun.folder, begun.typed
    error = run_begun(begun, partial(_record_end, begun, stopped=True))
    with recording_end(begun, error, partial(_record_end, begun)):
        shown = show_run(name, folder, typed.output)
    warn_idle(typed.allow, shown.plan.guards if shown.plan else None)
    if typed.actual is not None:
        _show_offline(typed.actual, folder, shown, typed.output)
    if error is not None:
        has_guards = shown.plan is not None and bool(shown.plan.refused)
        is_on_screen = has_guards and (typed.output, typed.approve) == (TEXT, None)
        if isinstance(error, GuardsRefused) and is_on_screen:
            if name == "reconcile":
                show_screen(next_command(name, folder, shown))
            raise click.exceptions.Exit(error.exit_code)
        raise error
    if name == "report" and typed.run_folder is None and (missed := describe_unseen_brokers(shown)):
        raise Refused(missed, BACK_OR_GONE)
    if name != "rollback":
        _exit_if_differs(shown, is_detailed=typed.detailed_exitcode)


@contextmanager
def recording_end(
    begun: Begun, error: QuotaOpsError | None, record: Callable[[], object]
) -> Iterator[None]:
    """Show in the block how a run ended, and record it then.

    If either fails, raise the run's own error, if any.
    """
    try:
        try:
            yield
        finally:
            record()
    except InvalidInput as failed:
        sent = list_sent(begun.folder, begun.stages)
        raise error or state_sent(failed, sent, begun.folder.place) from None


def _exit_if_differs(report: Report, *, is_detailed: bool) -> None:
    """Exit with the code of an invalid file, a change if `is_detailed`, or an overriding quota."""
    if report.invalid:
        raise click.exceptions.Exit(CannotJudge.exit_code)
    if is_detailed and report.plan is not None and report.plan.differs:
        raise click.exceptions.Exit(DIFFERENCES_EXIST)
    if any(row.status is RowStatus.OVERRIDING for row in report_rows(report)):
        raise click.exceptions.Exit(OVERRIDDEN)


def run_to_plan(typed: StageOptions) -> RunFolder:
    """Run the stages of `effects` in a new run folder, or return the planned run of --run.

    Guards that block the plan raise nothing: the command only shows what it would do.
    """
    if (typed.session.cluster is None) == (typed.run_folder is None):
        raise InvalidInput("effects needs a CLUSTER or --run", "See quota-ops effects --help.")
    if typed.run_folder is not None:
        folder = open_run(typed.run_folder, typed.session.run_store).with_cache()
        _refuse_on_alter("effects", folder)
        if not folder.has(PLAN):
            raise InvalidInput(f"{typed.run_folder} has no plan", "Make one: quota-ops plan.")
        return folder
    begun = _begin("effects", typed)
    error = run_begun(begun, partial(_record_end, begun, stopped=True))
    if error is not None and not isinstance(error, GuardsRefused):
        raise error
    return begun.folder


def open_run(named: str, run_store: str | None) -> RunFolder:
    """Return the run that a person names, like `find_run`. Raises InvalidInput if it was pruned."""
    folder = find_run(find_run_store(run_store), named)
    refuse_pruned(folder)
    return folder


def refuse_written(folder: RunFolder, stage: str) -> None:
    """Raise InvalidInput if the run wrote: `stage` would start it over."""
    if RunState(folder).has_sent:
        raise InvalidInput(
            f"{folder.place} is a run that wrote: {stage} would replace files that its report and "
            "rollback need",
            f"Make a new plan: {command('plan', folder.about().cluster)}",
        )


def _choose_resumed(name: str, folder: RunFolder, typed: StageOptions) -> Sequence[str]:
    """Choose the stages of a command on an earlier run; overridden guards are judged again."""
    if name in {"diff", "plan"}:
        refuse_written(folder, name)
    _refuse_on_alter(name, folder)
    if name in {"apply", "verify", "reconcile"}:
        refuse_if_replaced(folder)
    stages: Sequence[str] = RESUMED if name == "reconcile" else (name,)
    if folder.has(REPORT) and name in {"apply", "verify"}:
        stages = (name, "report")  # `runs` reads it
    if "apply" not in stages:
        return stages
    if typed.approve is None:
        raise InvalidInput(f"{name} --run needs --approve DIGEST", _describe_digest(folder))
    return ("plan", *stages) if typed.allow else stages


def _refuse_on_alter(name: str, folder: RunFolder) -> None:
    """Raise InvalidInput for a command that an alter has no files for, or no change."""
    if not folder.has(ALTER):
        return
    ended = f"How it ended: {command('show', folder.place)}"
    if name not in {"validate", "verify", "report"}:
        raise InvalidInput(
            f"{folder.place} is an alter, and {name} is for a plan of what Git declares", ended
        )
    sent = RunState(folder).outcomes
    if name == "verify" and not any(row.was_written or row.may_be_written for row in sent):
        raise InvalidInput(
            f"{folder.place} wrote nothing that could be verified: no broker accepted its change",
            ended,
        )


def _describe_digest(folder: RunFolder) -> str:
    """Return the remedy for a missing digest: how to review the plan, and its digest."""
    show = command("show", folder.place)
    if not folder.has(PLAN):
        return f"This run has no plan to approve. How it ended: {show}"
    return f"If you reviewed this plan ({show}), add --approve {folder.read(PLAN).digest}"


def _begin(name: str, typed: StageOptions) -> Begun:
    if typed.run_folder is not None:
        folder = open_run(typed.run_folder, typed.session.run_store)
        store_of(folder.place, named_store(typed.session.run_store)).prepare()
        stages = _choose_resumed(name, folder, typed)
        return Begun(folder.with_cache(), stages, typed)
    store, cluster = typed.session.store, cluster_name(typed.session.folder)
    out = None if typed.out is None else _open_out(typed.out, typed.session.desired_state)
    try:
        folder = RunFolder.start(
            out or store.new_run(cluster),
            cluster=cluster,
            commit=typed.commit,
            only_read=store if out else None,
            author=typed.author,
            as_of=typed.as_of,
        )
    except Denied as error:
        if out or name not in _HAVE_OUT:
            raise
        remedy = f"{error.remedy} Or only read it, with --out FOLDER."
        raise InvalidInput(error.message, remedy) from error
    stages = [chain for chain in CHAINS[name] if typed.actual is None or chain in SNAPSHOT_STAGES]
    return Begun(folder.with_cache(), stages, typed)


def _open_out(out: str, desired_state: Path) -> Place:
    """Return the folder of --out, which must be new, and outside the run store and the YAML."""
    place, desired = open_place(out), open_place(desired_state).resolved()
    if place.list():
        raise InvalidInput(f"--out {place} is not empty", "Choose a new folder.")
    if outer := find_outer_store(place):
        raise InvalidInput(f"--out {place} is inside the run store {outer}", _NAME_ANOTHER)
    if f"{place.resolved()}/".startswith(f"{desired}/"):
        raise InvalidInput(f"--out {place} is inside the desired state {desired}", _NAME_ANOTHER)
    return place


def run_begun(
    begun: Begun, keep_end: Callable[[], object], alter: Typed | None = None
) -> QuotaOpsError | None:
    """Run the stages, and return their error; if a signal ends them, record how far they got.

    `keep_end` records that; `alter` has what a person typed in place of Git.
    """
    folder, typed, stages = begun.folder, begun.typed, begun.stages
    is_new_plan = typed.run_folder is None or bool(typed.allow)
    decides = "apply" in stages and alter is None
    if not gc.isenabled():  # in the process `quota-ops`, whose end would look through all modules
        gc.freeze()
    connection_file = typed.session.connection_file
    with (
        report_run_if_stopped(folder.place, keep_end),
        connect_once(folder.policy, partial(find_connection, file=connection_file)) as connect,
        show_progress(typed.output) as progress,
    ):
        run = Run(
            folder=folder,
            cluster_folder=typed.session.folder if typed.session.cluster else Path(),
            connect=connect,
            engine=typed.engine,
            find_audit=partial(find_audit_connection, file=connection_file),
            allow=typed.allowed,
            author=typed.author,
            approve=typed.approve,
            must_know_commit="apply" in stages,
            request_decision=find_approver(folder, typed, is_new_plan=is_new_plan)
            if decides
            else None,
            records_decision=None not in {typed.approve, typed.reason},
            progress=progress,
            typed=alter,
            actual=typed.actual,
        )
        try:
            run_stages(run, stages)
        except Claimed:  # nothing began
            raise
        except QuotaOpsError as error:
            return error
        return None


def _show_offline(actual: Path, folder: RunFolder, shown: Report, output: str) -> None:
    """Show what is unknown because a snapshot was used instead of the cluster."""
    if folder.has(DESCRIBED):
        warn_unnamed(actual, folder.read(DESCRIBED).cluster_id, folder.policy())
    if shown.plan is not None and output == TEXT:
        click.echo(f"offline, against {actual}: not validated by a broker")


def _record_end(begun: Begun, *, stopped: bool = False) -> None:
    """Record the end of a run, unless the stage report has already recorded it.

    A run on a snapshot or for another time, and a run that only reads and was stopped by a signal,
    found nothing.
    """
    folder, stages, typed = begun.folder, begun.stages, begun.typed
    if "report" in stages and not stopped:
        return
    writes = "apply" in stages or ("verify" in stages and folder.has(APPLIED))
    if writes or not (stopped or typed.actual or typed.as_of):
        record_run(folder, load_report(folder), typed.session.connection_file, writes=writes)
