"""What the tasks do: one stage each, on the run folder of their DAG run."""

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, get_current_context, task
from airflow.sdk.exceptions import AirflowSkipException

from quota_ops.airflow.endings import RETRIES, plainly
from quota_ops.airflow.runs import this_run
from quota_ops.model.errors import GuardsRefused, InvalidInput, QuotaOpsError, Refused
from quota_ops.model.guard import idle_words
from quota_ops.model.policy import ApprovalPolicy
from quota_ops.model.text import recorded
from quota_ops.store.place import Place

if TYPE_CHECKING:
    from quota_ops.runs.run import Run


@task
@plainly()
def check(cluster_folder: str, run_store: str | None) -> str:
    """Read the cluster's YAML, and say every problem at once; gives the run's folder."""
    with this_run(cluster_folder, run_store, anew=True, must_know_commit=True) as run:
        run_stage("check", run)
        return str(run.folder.place)


@task
@plainly()
def describe(cluster_folder: str, run_store: str | None) -> None:
    """Read everything that the cluster holds, and what the ledger knows of it."""
    with this_run(cluster_folder, run_store) as run:
        run_stage("describe", run)


@task
@plainly()
def plan(cluster_folder: str, run_store: str | None, params: dict[str, Any] | None = None) -> str:
    """Judge the differences; gives the digest, also when a guard asks and a person may answer."""
    from quota_ops.runs.approvals import read_plan
    from quota_ops.runs.run import STAGES

    allow, reason = (params or {})["allow"] or [], recorded((params or {})["reason"] or "")
    allowed = dict.fromkeys(allow, reason)
    with this_run(cluster_folder, run_store, allow=allowed) as run, run.folder.stage("plan"):
        if allow and not reason:
            raise InvalidInput(
                f"the param allow names {', '.join(allow)}, and reason is empty",
                "Trigger the DAG again and say why: it is recorded. Nothing was written.",
            )
        try:
            STAGES["plan"](run)
        except GuardsRefused as refused:
            if run.folder.policy().approval is ApprovalPolicy.NEVER:
                raise Refused(
                    refused.message,
                    "Nothing was written. To let the plan pass, trigger the DAG with the guards in "
                    "the param allow, and why in reason.",
                ) from None
            logging.getLogger(__name__).warning("%s", refused.message)
        made = read_plan(run.folder)
        if idle := idle_words(allow, made.guards, "the param allow names"):
            logging.getLogger(__name__).warning("%s", idle)
        return made.digest


@task
@plainly()
def validate(cluster_folder: str, run_store: str | None) -> None:
    """Ask the broker whether it would accept every change (validate-only)."""
    with this_run(cluster_folder, run_store) as run:
        run_stage("validate", run)


@task
@plainly()
def apply(cluster_folder: str, run_store: str | None, approved: str) -> None:
    """Write what the approved plan says; a try after a crash resumes where it stopped."""
    if not approved:
        raise Refused("no plan was approved: the task approve gave no digest", "Run it again.")
    with this_run(cluster_folder, run_store, approve=approved) as run:
        run_stage("apply", run)


@task
@plainly()
def verify(cluster_folder: str, run_store: str | None) -> None:
    """Read back from every broker what was asked for, and write it to the ledger."""
    from quota_ops.store.run_folder import APPLIED

    with this_run(cluster_folder, run_store) as run:
        if not run.folder.has(APPLIED):
            raise AirflowSkipException("apply ended before its first write")
        run_stage("verify", run)


@task
@plainly()
def report(cluster_folder: str, run_store: str | None) -> str:
    """Write the report whatever the run came to, then fail if a task before it did."""
    from quota_ops.store.run_folder import PAGE

    with this_run(cluster_folder, run_store) as run:
        run_stage("report", run)
        page = run.folder.place / PAGE
    refuse_unless_done(page)
    return str(page)


def refuse_unless_done(page: Place) -> None:
    """Raise QuotaOpsError when another task of this DAG run did not succeed; it says which."""
    context = get_current_context()
    ti, run_id = context["ti"], context["run_id"]
    states = ti.get_task_states(dag_id=ti.dag_id, run_ids=[run_id])[run_id]
    others = {name: state for name, state in states.items() if name != ti.task_id}
    unsuccessful = [f"{name} {state}" for name, state in others.items() if state != "success"]
    if unsuccessful:
        failed = [one for one in unsuccessful if one.endswith(" failed")]
        raise QuotaOpsError(
            f"the run did not succeed: {', '.join(failed or unsuccessful)}",
            f"This task did: the report is {page}",
        )


def run_stage(name: str, run: "Run") -> None:
    """Run a stage, and keep how it ended."""
    from quota_ops.runs import run as one_run

    one_run.run_stage(run, name)


TASK_ARGUMENTS = {"owner": "quota-ops", "execution_timeout": timedelta(minutes=30), **RETRIES}


LONGEST = timedelta(hours=2)
"""How long a run may take that waits for nobody."""


def one_at_a_time(
    dag_id: str, *, schedule: str | None, longest: timedelta = LONGEST, **more: Any
) -> DAG:
    """A DAG whose runs follow one another, none of them late, and none without an end."""
    return DAG(
        dag_id,
        schedule=schedule,
        catchup=False,
        max_active_runs=1,
        dagrun_timeout=longest,
        default_args=TASK_ARGUMENTS,
        **more,
    )
