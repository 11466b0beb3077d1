"""Fails a task: logs the error without a traceback, and retries only if that may help."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from airflow.sdk import ExceptionRetryPolicy, RetryAction, RetryRule

from quota_ops.model.errors import (
    ClusterTrouble,
    NoResponse,
    QuotaOpsError,
    Unreachable,
    find_limit,
)


class SparkFailed(ClusterTrouble):
    """The Spark job failed; the Spark cluster may be available again at the next try."""


class NotBegun(QuotaOpsError):
    """A task of the user's DAG failed before the task group, so no cluster has news to send."""


RETRYABLE = (Unreachable, NoResponse, SparkFailed)
"""Errors that may not occur at the next try; every other QuotaOpsError needs a person."""


class TaskFailed(SystemExit):
    """An error that is already in the log: Airflow prints no traceback of a task that exits."""

    def __init__(self, error: QuotaOpsError) -> None:
        super().__init__(error.exit_code)
        self.error = error

    def __str__(self) -> str:
        return str(self.error)


class TaskFailedForNow(TaskFailed):
    """One of RETRYABLE, or a limit of this machine."""


RETRIES: dict[str, Any] = {
    "retries": 3,
    "retry_delay": timedelta(seconds=20),
    "retry_exponential_backoff": 2.0,
    "max_retry_delay": timedelta(minutes=5),
    "retry_policy": ExceptionRetryPolicy(
        [
            RetryRule(TaskFailedForNow, RetryAction.RETRY, reason="the next try may succeed"),
            RetryRule(TaskFailed, RetryAction.FAIL, reason="another try would fail too"),
        ]
    ),
}
"""The arguments of every task: its error decides whether it is retried; each wait is longer."""


def is_retryable(error: QuotaOpsError) -> bool:
    """Return whether an error may not occur at the next try."""
    return isinstance(error, RETRYABLE) or find_limit(error) is not None


@contextmanager
def log_errors() -> Iterator[None]:
    """Log a QuotaOpsError line by line and end the task; also a decorator of a task's function."""
    try:
        yield
    except QuotaOpsError as error:
        for line in str(error).splitlines():
            logging.getLogger(__name__).error("%s", line)  # noqa: TRY400 - for people
        raise (TaskFailedForNow if is_retryable(error) else TaskFailed)(error) from None
