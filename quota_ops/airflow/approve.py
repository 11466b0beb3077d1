"""The task approve: a plan that needs approval waits under Airflow's Required Actions."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Param
from airflow.sdk.exceptions import TaskAwaitingInput
from msgspec.structs import replace

from quota_ops.airflow.errors import log_errors
from quota_ops.airflow.links import find_page_link
from quota_ops.airflow.notify import News, Notify, send_notification
from quota_ops.airflow.runs import ClusterFolder, open_run
from quota_ops.model.errors import Claimed, InvalidInput, QuotaOpsError, Refused

if TYPE_CHECKING:
    from airflow.sdk import Context
    from airflow.sdk.execution_time.hitl import HITLUser

    from quota_ops.model.plans.approval import Decision
    from quota_ops.runs.run import Run

PARAMS = {
    "why": Param(
        "",
        type="string",
        title="Reason",
        description="Why you approve or reject the plan. It is recorded with your name.",
    )
}
"""The fields of the approval form; Airflow requires a text in each.

Their names differ from the DAG's params, because Airflow would fill in those values.
"""


def list_assigned_users(approvers: "Sequence[str | HITLUser] | None") -> "list[HITLUser] | None":
    """Return the users who may decide; None if everyone who may edit runs may decide.

    Raises InvalidInput for an empty list, which Airflow would treat as everyone, and for anything
    that is not a list of users.
    """
    if approvers is None:
        return None
    if not approvers or isinstance(approvers, str):
        raise InvalidInput(
            f"approvers is {approvers!r}, which is not a list of users",
            "Pass the ids of the users who may approve a plan, for example ['olga'], or leave "
            "approvers out: then everyone who may edit runs of the DAG may approve.",
        )
    return [_read_user(approver) for approver in approvers]


def _read_user(user: "str | HITLUser") -> "HITLUser":
    if isinstance(user, str) and user:
        return {"id": user, "name": user}
    if isinstance(user, dict) and {name: type(value) for name, value in user.items()} == {
        "id": str,
        "name": str,
    }:
        return user
    raise InvalidInput(
        f"approvers has {user!r}, which is not a user",
        "Pass the id of a user as text, or {'id': ..., 'name': ...} with two texts.",
    )


_RETRIES = 10
"""Airflow 3.3 treats a task as killed if a decision arrives before its process has ended.

The task is then retried and waits again; a script that approves immediately may cause several
retries.
"""


class Approve(ApprovalOperator):
    """Return the digest of the plan to apply; wait for approval where the policy requires it.

    `planned` is the digest that the task plan returned. A waiting task occupies no worker. It
    fails if the plan is rejected, approved without a reason, or not decided in time. Before it
    waits, it writes what a blocked plan writes nevertheless: `Plan.repairs`.
    """

    template_fields = (*ApprovalOperator.template_fields, "planned")

    def __init__(
        self,
        *,
        cluster: ClusterFolder,
        run_store: str | None,
        planned: str,
        timeout: timedelta,
        notify: Notify,
        **options: Any,
    ) -> None:
        options = {"retries": _RETRIES, **options}
        super().__init__(subject="", defaults=self.REJECT, response_timeout=timeout, **options)
        self.cluster = cluster
        self.run_store = run_store
        self.planned = planned
        self.timeout = timeout
        self.notify = notify

    def execute(self, context: "Context") -> str:
        """Return the digest of a plan that needs no approval; otherwise wait for a decision."""
        from quota_ops.model.plans.approval import (
            Author,
            Decision,
            DecisionKind,
            find_login,
            needs_approval,
        )
        from quota_ops.model.stored import to_json
        from quota_ops.runs.approvals import find_approval, follow_decision
        from quota_ops.stages.apply.approved_plan import refuse_unless_approves
        from quota_ops.store.ledger.decisions import new_decision

        with log_errors(), open_run(self.cluster, self.run_store) as run:
            plan = run.folder.plan()
            refuse_unless_approves(self.planned, run.folder, plan)
            if not needs_approval(plan):
                return plan.digest
            if decision := find_approval(run.folder, plan):
                self.log.info("%s approved this plan at %s", decision.by, decision.at)
                follow_decision(run.folder, decision, run.find_use)
                return plan.digest
            self._write_repairs(run)
            self._write_form(run)
            pending = new_decision(
                run.folder, plan, DecisionKind.NOTHING, Author(None, find_login()), ""
            )
        try:
            super().execute(context)
        except TaskAwaitingInput as waiting:
            news = News("waiting", self.cluster.name, self.subject, self._find_link(context))
            send_notification(self.notify, news, context)
            # Airflow keeps it in its database and passes it to execute_complete.
            raise TaskAwaitingInput(
                method_name=waiting.method_name,
                kwargs={"pending": to_json(Decision, pending)},
                timeout=waiting.timeout,
            ) from None
        raise AssertionError("Airflow did not wait for a decision")

    def execute_complete(
        self, context: "Context", event: dict[str, Any], pending: Mapping[str, Any] | None = None
    ) -> str:
        """Record the decision; return the approved digest, or fail."""
        from quota_ops.runs.approvals import follow_decision

        del context
        decision = _read_decision(event, pending or {})
        with log_errors(), open_run(self.cluster, self.run_store) as run:
            try:
                follow_decision(run.folder, decision, run.find_use)
            except Refused:
                with run.folder.stage("apply"):  # the run ends here: its report shows why
                    raise
        return decision.digest

    def _write_repairs(self, run: "Run") -> None:
        """Write and verify the repairs of a blocked plan; the form shows it if that failed.

        Raises Claimed while another process writes: its artifacts are not complete yet.
        """
        from quota_ops.runs.chain import run_stages
        from quota_ops.runs.run import is_waiting

        try:
            if is_waiting(run):
                run_stages(run, ("apply", "verify"))
        except Claimed:
            raise
        except QuotaOpsError as error:
            self.log.warning("%s", error)

    def _find_link(self, context: "Context") -> str:
        """Return the address of the form; empty if Airflow does not know its own address."""
        with suppress(ValueError):
            return str(self.generate_link_to_ui_from_context(context=context))
        return ""

    def _write_form(self, run: "Run") -> None:
        """Write the form, and the report that it links to; the task report replaces it later."""
        from quota_ops.report.markdown import approval_form
        from quota_ops.report.page.report import as_html
        from quota_ops.stages.report.past import add_past
        from quota_ops.stages.report.run_report import read_report
        from quota_ops.store.run.files import PAGE

        plan, report = run.folder.plan(), add_past(run.folder, read_report(run.folder))
        until, page = datetime.now(UTC) + self.timeout, run.folder.place / PAGE
        run.folder.write_text(PAGE, as_html(report, waits_until=until))
        link = find_page_link(page, run.folder.store)
        self.subject = approval_form.format_subject(report, plan)
        self.body = approval_form.format_body(report, plan, until, link)


def _read_decision(event: Mapping[str, Any], pending: Mapping[str, Any]) -> "Decision":
    """Return the pending decision, completed by Airflow's event; the API may give any reason."""
    from quota_ops.model.moment import iso_utc
    from quota_ops.model.plans.approval import Decision, DecisionKind
    from quota_ops.model.stored import from_json
    from quota_ops.model.text import clean_text

    said = (
        DecisionKind.APPROVED
        if event["chosen_options"] == [Approve.APPROVE]
        else DecisionKind.REJECTED
    )
    by, reason = event["responded_by_user"], event["params_input"].get("why")
    return replace(
        from_json(Decision, dict(pending)),
        said=DecisionKind.NOTHING if event.get("timedout") else said,
        by=None if by is None else clean_text(str(by["name"])),
        at=iso_utc(event["responded_at"]),
        reason=clean_text(reason) if isinstance(reason, str) else "",
    )
