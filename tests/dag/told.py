"""A notifier that writes to a file, for the DAG file of the tests."""

from pathlib import Path
from typing import Any

from airflow.sdk import BaseNotifier

from quota_ops.airflow.notify import Notify


class FileNotifier(BaseNotifier):
    """Adds a line to a file, which is a template as Slack's or a mail's text is."""

    template_fields = ("text",)

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.text = "{{ news.event }} {{ news.cluster }}: {{ news.sentence }} {{ news.link }}"

    def notify(self, context: Any) -> None:
        """Write the line."""
        del context
        with self.path.open("a") as file:
            file.write(self.text + "\n")


def told(path: str) -> Notify:
    """Write down all that happens, but for what is late."""
    notifier = FileNotifier(Path(path))
    return {"drift": notifier, "waiting": [notifier], "refused": notifier, "failed": notifier}
