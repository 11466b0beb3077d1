"""A DAG that runs after a run has changed quotas of the cluster demo."""

import logging
from typing import Any

from airflow.sdk import DAG, task

from quota_ops.airflow import applied_asset

DEMO = applied_asset("demo")


@task
def announce(triggering_asset_events: Any = None) -> None:
    """Tell the teams here; the log shows what is known."""
    for event in triggering_asset_events[DEMO]:
        extra = event.extra
        text = f"{extra['counts']['changed']} quota changed on {extra['cluster']} by {extra['run']}"
        logging.getLogger(__name__).info(text)


with DAG("announce_changes", schedule=[DEMO]):
    announce()
