"""How a task ends whose stage did not succeed: said in its log, tried again where that helps."""

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
    """The Spark job failed; a Spark cluster may be back at the next try."""


MAY_PASS = (Unreachable, NoResponse, SparkFailed)
"""What another try may mend; every other error of ours needs a person."""


class Ended(SystemExit):
    """A stage's error, said already: of a task that exits Airflow prints no traceback."""

    def __init__(self, error: QuotaOpsError) -> None:
        super().__init__(error.exit_code)
        self.error = error

    def __str__(self) -> str:
        return str(self.error)


class EndedForNow(Ended):
    """One of MAY_PASS, or a limit of this machine."""


RETRIES: dict[str, Any] = {
    "retries": 3,
    "retry_delay": timedelta(seconds=20),
    "retry_exponential_backoff": 2.0,
    "max_retry_delay": timedelta(minutes=5),
    "retry_policy": ExceptionRetryPolicy(
        [
            RetryRule(EndedForNow, RetryAction.RETRY, reason="it may pass"),
            RetryRule(Ended, RetryAction.FAIL, reason="another try would end the same"),
        ]
    ),
}
"""Arguments of every task: by an error's class whether it is tried again, later each time."""


@contextmanager
def plainly() -> Iterator[None]:
    """Around or as a decorator of what a task does: errors meant for people are told as such."""
    try:
        yield
    except QuotaOpsError as error:
        for line in str(error).splitlines():
            logging.getLogger(__name__).error("%s", line)  # noqa: TRY400 - for people
        may_pass = isinstance(error, MAY_PASS) or find_limit(error) is not None
        raise (EndedForNow if may_pass else Ended)(error) from None
