"""One run from the command line: its folder, its connection, its stages, and what it came to."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from shlex import quote

import click

from quota_ops.cli import options
from quota_ops.cli.approval import person
from quota_ops.cli.console import TEXT, progress, warn_idle, warn_unnamed
from quota_ops.cli.interrupt import naming
from quota_ops.cli.run_end import keep_run, report_of, show_run
from quota_ops.cli.session import connection, find_cluster
from quota_ops.desired.files import cluster_name
from quota_ops.desired.remembered import Remembered
from quota_ops.model.approval import Author
from quota_ops.model.errors import GuardsRefused, InvalidInput, QuotaOpsError, Refused
from quota_ops.model.report import Report
from quota_ops.model.verification import BACK_OR_GONE
from quota_ops.report.summary import unseen_words
from quota_ops.runs.chain import CHAINS, OFFLINE, RESUMED, run_stages
from quota_ops.runs.run import Run
from quota_ops.stages.diff import EMBEDDED
from quota_ops.store.login import find_login
from quota_ops.store.retention import refuse_pruned
from quota_ops.store.run_folder import (
    ABOUT,
    APPLIED,
    DESCRIBED,
    PLAN,
    REPORT,
    RunFolder,
    batch_file,
)
from quota_ops.store.run_store import RunStore, find_run_store, store_of

DIFFERENCES_EXIST = 4


def run_command(
    name: str,
    *,
    cluster: str | None,
    desired_state: Path,
    connection_file: Path | None,
    run_store: str | None,
    run_folder: Path | None,
    output: str,
    commit: str | None = None,
    engine: str = EMBEDDED,
    allow: tuple[str, ...] = (),
    reason: str | None = None,
    by: str | None = None,
    approve: str | None = None,
    detailed_exitcode: bool = False,
    actual: Path | None = None,
    remembered: Remembered | None = None,
) -> None:
    """Run a command's stages in a new run folder, or the one it names on an earlier run's."""
    if (cluster is None) == (run_folder is None):
        raise InvalidInput(f"{name} takes a CLUSTER or --run", f"See quota-ops {name} --help.")
    if actual is not None and run_folder is not None:
        raise InvalidInput("--actual starts a run of its own", "Leave out --run.")
    allowed = options.allowed(allow, reason, approve)
    if run_folder is not None:
        cluster_folder = Path()
        folder, store = find_run(run_folder), store_of(run_folder, run_store)
        stages = _resumed(name, folder, approve, allowed)
    else:
        store = find_run_store(run_store)
        cluster_folder = find_cluster(str(cluster), desired_state)
        folder, stages = _start(store, cluster_folder, commit), _started(name, actual)
    folder, author = folder.keeping(), Author(by, find_login())
    error: QuotaOpsError | None = None
    keep_end = partial(_keep_end, stages, folder, reported=False)
    stoppable = naming(folder.path, keep_end)
    try:
        with (
            stoppable,
            connection(folder.policy, connection_file) as connect,
            progress(output) as told,
        ):
            run = Run(
                folder=folder,
                cluster_folder=cluster_folder,
                store=store,
                connect=connect,
                engine=engine,
                allow=allowed,
                author=author,
                approve=approve,
                must_know_commit="apply" in stages,
                remembered=remembered,
                ask=person(
                    folder,
                    output,
                    approve=approve,
                    reason=reason,
                    author=author,
                    judged_now=run_folder is None or bool(allowed),
                )
                if "apply" in stages
                else None,
                progress=told,
                actual=actual,
            )
            run_stages(run, stages)
    except QuotaOpsError as raised:
        error = raised
    try:
        shown = _show(name, folder, output, error)
    finally:
        _keep_end(stages, folder, reported="report" in stages)
    warn_idle(allowed, shown.plan.guards if shown.plan else None)
    if actual is not None:
        _show_offline(actual, folder, shown, output)
    if isinstance(error, GuardsRefused) and output == TEXT and approve is None:
        raise click.exceptions.Exit(error.exit_code)  # the screen has just said it
    if error is not None:
        raise error
    if name == "report" and run_folder is None:
        _refuse_unseen(shown)
    if detailed_exitcode and shown.plan is not None and shown.plan.differs:
        raise click.exceptions.Exit(DIFFERENCES_EXIST)


def _show(name: str, folder: RunFolder, output: str, error: QuotaOpsError | None) -> Report:
    """Show a run; `error`, which ended it, is raised rather than why it cannot be shown."""
    try:
        return show_run(name, folder, output)
    except QuotaOpsError as failed:
        raise error or failed from failed


def _show_offline(actual: Path, folder: RunFolder, shown: Report, output: str) -> None:
    """Say what a snapshot in the cluster's place cannot tell."""
    if folder.has(DESCRIBED):
        warn_unnamed(actual, folder.read_json(DESCRIBED)["cluster_id"], folder.policy())
    if shown.plan is not None and output == TEXT:
        click.echo(f"offline, against {actual}: no broker was asked whether it would accept this")


def _refuse_unseen(report: Report) -> None:
    """Raise Refused where a broker that counts could not be asked."""
    if missed := unseen_words(report):
        raise Refused(missed, BACK_OR_GONE)


def _keep_end(stages: Sequence[str], folder: RunFolder, *, reported: bool) -> None:
    """Keep the end of what writes, which the stage report does itself."""
    writes = "apply" in stages or ("verify" in stages and folder.has(APPLIED))
    if writes and not reported:
        keep_run(folder, report_of(folder))


def _start(store: RunStore, cluster_folder: Path, commit: str | None) -> RunFolder:
    name = cluster_name(cluster_folder)
    return RunFolder.start(store.new_run(name), cluster=name, commit=commit)


def _started(name: str, actual: Path | None) -> Sequence[str]:
    """The stages of a command on a cluster; those that need it are left out for a snapshot."""
    return [stage for stage in CHAINS[name] if actual is None or stage in OFFLINE]


def find_run(path: Path) -> RunFolder:
    """The run folder at a path; InvalidInput when it is none."""
    folder = RunFolder(path)
    if not folder.has(ABOUT):
        raise InvalidInput(f"{path} is not a run folder: it has no {ABOUT}")
    refuse_pruned(folder)
    return folder


def find_unwritten(path: Path, stage: str) -> RunFolder:
    """The run folder at a path, for a stage that begins the run anew.

    InvalidInput when it is none, or when the run wrote: its report and rollback need what it left.
    """
    folder = find_run(path)
    _refuse_written(folder, stage)
    return folder


def _refuse_written(folder: RunFolder, stage: str) -> None:
    if folder.has(APPLIED) or folder.has(batch_file(1)):
        raise InvalidInput(
            f"{folder.path} is a run that wrote: {stage} would replace what its report and "
            "rollback need",
            f"Plan anew: quota-ops plan {folder.about()['cluster']}",
        )


def _resumed(
    name: str, folder: RunFolder, approve: str | None, allowed: Mapping[str, str]
) -> Sequence[str]:
    """The stages of a command on an earlier run; guards that may pass now are judged anew."""
    if name in {"diff", "plan"}:
        _refuse_written(folder, name)
    stages: Sequence[str] = RESUMED if name == "reconcile" else (name,)
    if folder.has(REPORT) and name in {"apply", "verify"}:
        stages = (name, "report")  # `runs` reads it
    if "apply" not in stages:
        return stages
    if approve is None:
        raise InvalidInput(f"{name} --run needs --approve DIGEST", _digest_words(folder))
    return ("plan", *stages) if allowed else stages


def _digest_words(folder: RunFolder) -> str:
    """Where the digest of a run's plan comes from, and which it is."""
    show = f"quota-ops show {quote(str(folder.path))}"
    if not folder.has(PLAN):
        return f"This run has no plan to approve. What it came to: {show}"
    return f"If you reviewed this plan ({show}), it is --approve {folder.plan()[1]}"
