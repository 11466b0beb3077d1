"""The task group of one cluster: the eight stages and the approval, a task each."""

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import TaskGroup, TriggerRule
from airflow.sdk.execution_time.hitl import HITLUser

from quota_ops.airflow import tasks
from quota_ops.airflow.approve import PARAMS as FORM
from quota_ops.airflow.approve import Approve, list_assigned_users
from quota_ops.airflow.links import add_report_button
from quota_ops.airflow.notify import Notify, check_notify, make_failure_callback
from quota_ops.airflow.options import (
    DEFAULT_ARGS,
    DEFAULT_POOL,
    Options,
    TaskOptions,
    add_callback,
    check_task_options,
)
from quota_ops.airflow.runs import ClusterFolder, find_bundle_folder
from quota_ops.airflow.spark import SparkDiff
from quota_ops.desired.files import cluster_folders, is_cluster
from quota_ops.model.errors import InvalidInput

TASKS = ("check", "describe", "diff", "plan", "validate", "approve", "apply", "verify", "report")
"""The tasks of the group, in order."""
ENGINES = ("spark", "embedded")
"""What can run the diff of one cluster; the first is the default."""


class QuotaReconcile(TaskGroup):
    """The tasks that make one cluster match Git, as a task group for a DAG of your own.

    Its first task is check and its last one is report, which fails if any task of the group
    failed. If a task before the group is skipped, so is the group; if one failed, report fails.
    A DAG can contain several groups, one for each cluster.

    `cluster` is the name of a folder of `desired_state`. Its schedule has no effect here: the DAG
    has its own. `run_store`, `approval_timeout`, `approvers`, `notify` and `engine` are as in
    `build_dags`. `default_args` apply to the tasks of the group, and take precedence over those of
    the DAG.
    `task_options` has options of single tasks, by the name of the task: check, describe, diff,
    plan, validate, approve, apply, verify, report. `group_id` is reconcile_CLUSTER by default; all
    other arguments are those of Airflow's TaskGroup.

    Raises InvalidInput, which Airflow shows as an import error of the DAG file, for an unknown
    cluster, event, task or option, for invalid `approvers`, for a second group of the
    same cluster, and in a mapped group.
    """

    def __init__(
        self,
        cluster: str,
        desired_state: Path,
        *,
        run_store: str | None = None,
        approval_timeout: timedelta = timedelta(hours=4),
        approvers: Sequence[str | HITLUser] | None = None,
        notify: Notify | None = None,
        default_args: Mapping[str, Any] | None = None,
        task_options: Mapping[str, TaskOptions] | None = None,
        engine: str = "spark",
        group_id: str | None = None,
        **group: Any,
    ) -> None:
        folder = _find_folder(cluster, desired_state)
        options = check_task_options(task_options, TASKS)
        notifiers = check_notify(notify)
        users = list_assigned_users(approvers)
        if engine not in ENGINES:
            raise InvalidInput(
                f"there is no engine {engine!r}", f"The engines are {' and '.join(ENGINES)}."
            )
        approval = {"timeout": approval_timeout, "assigned_users": users, "notify": notifiers}
        super().__init__(
            group_id=group_id or "reconcile_" + re.sub(r"[^A-Za-z0-9_-]", "_", cluster),
            **{
                "default_args": dict(default_args or {}),
                "tooltip": f"Makes the client quotas of {cluster} match Git",
                **group,
            },
        )
        self.cluster = cluster
        self.engine = engine
        self._refuse_other_groups()
        # Airflow has merged in those of an outer group, but not those of the DAG.
        self.default_args = {**DEFAULT_ARGS, **self.dag.default_args, **self.default_args}
        with self:
            self._add_tasks(ClusterFolder(folder), run_store, notifiers, options, approval)

    def _refuse_other_groups(self) -> None:
        if any(self.iter_mapped_task_groups()):
            raise InvalidInput(
                f"the task group of {self.cluster} is inside a mapped task group",
                "Move it out of the mapped group, and add one QuotaReconcile for each cluster.",
            )
        groups = self.dag.task_group.get_task_group_dict().values()
        same = [
            group.group_id
            for group in groups
            if isinstance(group, QuotaReconcile) and group.cluster == self.cluster
        ]
        if len(same) > 1:
            raise InvalidInput(
                f"the DAG {self.dag.dag_id} has two task groups for the cluster {self.cluster}: "
                f"{' and '.join(map(str, same))}",
                "Remove one: a run of a DAG reconciles a cluster once.",
            )

    def _add_tasks(
        self,
        cluster: ClusterFolder,
        run_store: str | None,
        notify: Notify,
        options: Options,
        approval: Mapping[str, Any],
    ) -> None:
        """Add the stages in order, with the approval before the first that writes.

        validate runs even if a guard blocked the plan; approve needs both. verify runs if apply has
        begun, however it ended; report always runs. No rule comes from `default_args`.
        """

        def choose(name: str, rule: TriggerRule = TriggerRule.ALL_SUCCESS) -> dict[str, Any]:
            return {"task_id": name, "trigger_rule": rule, **options.get(name, {})}

        begun, always = TriggerRule.ONE_DONE, TriggerRule.ALL_DONE
        # check logs which pools the others wait for, so it must not wait itself.
        first = {"pool": DEFAULT_POOL, **choose("check")}
        check = tasks.check.override(**first)(cluster, run_store)
        describe = tasks.describe.override(**choose("describe"))(cluster, run_store)
        diff: Any
        if self.engine == "spark":
            diff = SparkDiff(clusters=[cluster], run_store=run_store, **choose("diff"))
        else:
            diff = tasks.diff.override(**choose("diff"))(cluster, run_store)
        plan: Any = tasks.plan.override(**choose("plan"))(cluster, run_store)
        validate = tasks.validate.override(**choose("validate", begun))(cluster, run_store)
        approve = Approve(
            cluster=cluster,
            run_store=run_store,
            planned=plan,
            params=FORM,
            **approval,
            **choose("approve"),
        )
        approved: Any = approve.output
        apply = tasks.apply.override(**choose("apply"))(cluster, run_store, approved=approved)
        verify = tasks.verify.override(**choose("verify", begun))(cluster, run_store)
        failed = make_failure_callback(cluster, run_store, notify)
        callbacks = add_callback(self.default_args, "on_failure_callback", failed)
        report = tasks.report.override(**choose("report", always), **callbacks)(cluster, run_store)
        add_report_button(report)
        check >> describe >> diff >> plan >> validate >> approve >> apply >> verify >> report


def _find_folder(cluster: str, desired_state: Path) -> Path:
    refuse_missing_folder(desired_state)
    top = find_bundle_folder(desired_state)
    if not is_cluster(desired_state, cluster, top):
        found = [path.name for path in cluster_folders(desired_state, top)]
        raise InvalidInput(
            f"{desired_state} has no cluster {cluster!r}",
            f"Its clusters are: {', '.join(found) or 'none'}.",
        )
    return desired_state.resolve() / cluster


def refuse_missing_folder(desired_state: Path) -> None:
    """Raise InvalidInput if the folder of the clusters does not exist."""
    if not desired_state.is_dir():
        raise InvalidInput(
            f"{desired_state} is not a folder",
            "Pass the folder that contains one subfolder per cluster.",
        )
