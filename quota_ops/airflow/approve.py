"""The task approve: a plan that needs a person waits for one, among Airflow's required actions."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Param
from airflow.sdk.exceptions import TaskAwaitingInput

from quota_ops.airflow.endings import plainly
from quota_ops.airflow.notify import News, Notify, tell
from quota_ops.airflow.runs import this_run
from quota_ops.model.errors import Refused

if TYPE_CHECKING:
    from airflow.sdk import Context

    from quota_ops.model.approval import Decision
    from quota_ops.runs.run import Run

PARAMS = {
    "why": Param(
        "",
        type="string",
        title="Reason",
        description="Why you approve or reject it; it is recorded with your name.",
    )
}
"""The form beside the question, which is not complete while a text is empty.

Its field is not named as one of the DAG's params: Airflow would fill it with theirs.
"""


RETRIES = 10
"""Airflow 3.3 takes a task for killed whose answer overtakes the end of the process that asked.

Then it is tried again, and asks again: an eager robot may bring that about some times.
"""


class Approve(ApprovalOperator):
    """Gives the digest that may be applied; asks for it when the cluster's policy says so.

    `planned` is the digest that the task plan gave. While it waits it holds no worker. Rejected,
    unanswered or approved without a reason, it fails.
    """

    template_fields = (*ApprovalOperator.template_fields, "planned")

    def __init__(
        self,
        *,
        cluster_folder: str,
        run_store: str | None,
        planned: str,
        timeout: timedelta,
        notify: Notify,
        **options: Any,
    ) -> None:
        super().__init__(
            subject="",
            defaults=self.REJECT,
            response_timeout=timeout,
            retries=RETRIES,
            **options,
        )
        self.cluster_folder = cluster_folder
        self.run_store = run_store
        self.planned = planned
        self.timeout = timeout
        self.notify = notify

    def execute(self, context: "Context") -> str:
        """Give the digest of a plan that nobody has to see; wait with any other."""
        from quota_ops.model.approval import Author, Said, find_login, needs_person
        from quota_ops.runs.approvals import (
            find_approval,
            make_decision,
            read_plan,
            record_decision,
        )
        from quota_ops.stages.apply.permission import refuse_unless_approves

        with plainly(), this_run(self.cluster_folder, self.run_store) as run:
            plan = read_plan(run.folder)
            refuse_unless_approves(self.planned, run.folder, plan)
            if not needs_person(plan):
                return plan.digest
            if decision := find_approval(run.folder, run.approvals, plan):
                self.log.info("%s approved it at %s", decision.by, decision.at)
                record_decision(run.folder, run.approvals, decision)
                return plan.digest
            self._write_question(run)
            asked = make_decision(run.folder, plan, Said.NOTHING, Author(None, find_login()), "")
        try:
            super().execute(context)
        except TaskAwaitingInput as waiting:
            cluster = Path(self.cluster_folder).name
            tell(self.notify, News("waiting", cluster, self.subject, self._link(context)), context)
            # What was asked comes back from Airflow's own database, with the answer.
            raise TaskAwaitingInput(
                method_name=waiting.method_name,
                kwargs={"asked": asked.as_json()},
                timeout=waiting.timeout,
            ) from None
        raise AssertionError("Airflow did not wait for an answer")

    def execute_complete(
        self, context: "Context", event: dict[str, Any], asked: Mapping[str, Any] | None = None
    ) -> str:
        """Keep the answer; give the approved digest, or fail."""
        from quota_ops.runs.approvals import record_decision

        del context
        decision = _decision(event, asked or {})
        with plainly(), this_run(self.cluster_folder, self.run_store) as run:
            try:
                record_decision(run.folder, run.approvals, decision)
            except Refused:
                with run.folder.stage("apply"):  # which this keeps from being done
                    raise
        return decision.digest

    def _link(self, context: "Context") -> str:
        """The page of the question; empty where Airflow does not know its own address."""
        with suppress(ValueError):
            return str(self.generate_link_to_ui_from_context(context=context))
        return ""

    def _write_question(self, run: "Run") -> None:
        from quota_ops.report import question
        from quota_ops.runs.approvals import read_plan
        from quota_ops.stages.report.run_report import read_report

        plan, report = read_plan(run.folder), read_report(run.folder)
        self.subject = question.subject(report, plan)
        self.body = question.body(report, plan, datetime.now(UTC) + self.timeout)


def _decision(event: Mapping[str, Any], asked: Mapping[str, Any]) -> "Decision":
    """What was asked, with the answer; a reason is whatever text the API was given as one."""
    from quota_ops.model.approval import Decision, Said
    from quota_ops.model.moment import iso_utc
    from quota_ops.model.text import recorded

    said = Said.APPROVED if event["chosen_options"] == [Approve.APPROVE] else Said.REJECTED
    by, reason = event["responded_by_user"], event["params_input"].get("why")
    return replace(
        Decision.from_json(asked),
        said=Said.NOTHING if event.get("timedout") else said,
        by=None if by is None else recorded(str(by["name"])),
        at=iso_utc(event["responded_at"]),
        reason=recorded(reason) if isinstance(reason, str) else "",
    )
