"""Decisions about a plan that waits, made through Airflow's API or by its scheduler."""

import time
from collections.abc import Callable
from threading import get_ident
from typing import Any

Answer = Callable[[Any], None]
"""A function that is called with the waiting task instance."""
_SLEEP = time.sleep


def napping(answer: Answer | None) -> Callable[[float], None]:
    """Return a short time.sleep for dag.test, which sleeps a second while a task waits.

    Only the thread that made it answers: threads of others, such as py4j's, sleep as well.
    """
    answering, mine = False, get_ident()

    def nap(seconds: float) -> None:
        nonlocal answering
        if answer and get_ident() == mine and not answering and (waiting := _waiting()):
            answering = True  # what answers may sleep itself
            answer(waiting[0])
            answering = False
        _SLEEP(min(seconds, 0.02))

    return nap


def _waiting() -> list[Any]:
    from airflow.models import TaskInstance
    from airflow.utils.session import create_session
    from airflow.utils.state import TaskInstanceState
    from sqlalchemy import select

    waits = TaskInstance.state == TaskInstanceState.AWAITING_INPUT
    with create_session() as session:
        newest = select(TaskInstance).where(waits).order_by(TaskInstance.start_date.desc())
        return list(session.scalars(newest).all())


def approve(reason: object = "agreed in PLAT-12", by: str = "olga") -> Answer:
    """Approve as the API does; None as the reason omits the param."""
    return _respond("Approve", reason, by)


def reject(reason: object = "not on a Friday", by: str = "olga") -> Answer:
    """Reject as the API does."""
    return _respond("Reject", reason, by)


def _respond(option: str, reason: object, by: str) -> Answer:
    def answer(waiting: Any) -> None:
        from airflow.api_fastapi.app import create_auth_manager
        from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
        from airflow.api_fastapi.core_api.datamodels.hitl import UpdateHITLDetailPayload
        from airflow.api_fastapi.core_api.routes.public.hitl import update_hitl_detail
        from airflow.utils.session import create_session

        create_auth_manager()  # it decides who may respond
        given = {} if reason is None else {"why": reason}
        payload = UpdateHITLDetailPayload(chosen_options=[option], params_input=given)
        with create_session() as session:
            update_hitl_detail(
                dag_id=waiting.dag_id,
                dag_run_id=waiting.run_id,
                task_id=waiting.task_id,
                update_hitl_detail_payload=payload,
                user=SimpleAuthManagerUser(username=by, role="admin"),
                session=session,
            )

    return answer


def lost(answer: Answer) -> Answer:
    """Decide before the task's process has ended, so that the scheduler treats it as killed."""

    def overtake(waiting: Any) -> None:
        from airflow.models import TaskInstance
        from airflow.utils.session import create_session
        from airflow.utils.state import TaskInstanceState

        answer(waiting)
        with create_session() as session:
            instance = session.get_one(TaskInstance, waiting.id)
            instance.state = TaskInstanceState.QUEUED
            session.flush()
            instance.task = None
            instance.handle_failure(
                "finished with state success, but it is queued", session=session
            )

    return overtake


def nobody(_waiting: Any) -> None:
    """Let the scheduler check whether the request has timed out."""
    from airflow.jobs.job import Job
    from airflow.jobs.scheduler_job_runner import SchedulerJobRunner

    job: Any = Job
    SchedulerJobRunner(job=job()).check_awaiting_input_timeouts()


def question(waiting: Any) -> tuple[str, str]:
    """Return the title and the text of the form."""
    from airflow.models.hitl import HITLDetail
    from airflow.utils.session import create_session

    with create_session() as session:
        asked = session.get_one(HITLDetail, waiting.id)
        return asked.subject, str(asked.body)
