"""Work on many clusters in one task: several at the same time, and an error costs its cluster."""

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from quota_ops.airflow.runs import ClusterFolder
from quota_ops.model.errors import QuotaOpsError, Unexpected

Result = TypeVar("Result")
AT_ONCE = 8
"""How many clusters a task works on at the same time: it mostly waits for brokers or the store."""
_log = logging.getLogger(__name__)


def work_on_each(
    clusters: Sequence[ClusterFolder], work: Callable[[ClusterFolder], Result]
) -> tuple[Mapping[str, Result], Mapping[str, QuotaOpsError]]:
    """Return the results of `work`, and the errors of the other clusters, by the cluster's name.

    Each error is logged with the name of its cluster.
    """

    def work_on(cluster: ClusterFolder) -> Result | QuotaOpsError:
        try:
            return work(cluster)
        except QuotaOpsError as error:
            for line in str(error).splitlines():
                _log.error("%s: %s", cluster.name, line)
            return error
        except Exception as error:  # noqa: BLE001 - a defect costs one cluster too
            _log.exception("%s: %s", cluster.name, type(error).__name__)
            return Unexpected(error)

    results: dict[str, Result] = {}
    errors: dict[str, QuotaOpsError] = {}
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for cluster, result in zip(clusters, threads.map(work_on, clusters), strict=True):
            if isinstance(result, QuotaOpsError):
                errors[cluster.name] = result
            else:
                results[cluster.name] = result
    return results, errors
