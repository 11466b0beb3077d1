"""The DAGs of this repository, with mail for each event, and another when a run is late."""

from datetime import timedelta
from pathlib import Path

from airflow.providers.smtp.notifications.smtp import SmtpNotifier
from airflow.sdk import AsyncCallback, DeadlineAlert, DeadlineReference

from quota_ops.airflow import build_dags

ON_CALL = "kafka-on-call@example.com"
mail = SmtpNotifier(
    to=ON_CALL,
    subject="quota-ops: {{ news.cluster }} {{ news.event }}",
    html_content="{{ news.sentence | e }} {{ news.link | e }}",
)
late = DeadlineAlert(
    reference=DeadlineReference.DAGRUN_QUEUED_AT,
    interval=timedelta(hours=6),
    callback=AsyncCallback(
        SmtpNotifier,
        kwargs={"to": ON_CALL, "subject": "quota-ops: a run is late", "html_content": "Look at it"},
    ),
)
globals().update(
    build_dags(
        desired_state=Path(__file__).parents[1] / "desired_state",
        notify={"drift": mail, "waiting": mail, "refused": mail, "failed": mail, "late": late},
    )
)
