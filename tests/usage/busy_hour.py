"""A Prometheus whose answers are computed: one broker, and a user with a busy hour each day."""

import json
import re
from collections.abc import Mapping
from math import ceil
from typing import Any

from tests.usage.recording import Answer, Question

DAY = 24 * 60 * 60


class BusyHour:
    """What a Prometheus answers that scraped one broker each minute.

    The user etl produces 900 kB/s for an hour of each day, which begins at the time of day of
    `busy_from`, and 100 kB/s at all other times. Samples before `since` are gone. At each time that
    somebody looks, the broker throttles etl. In the past it did so at `throttled_at` alone.
    """

    def __init__(self, busy_from: float, since: float = 0.0, throttled_at: float = 0.0) -> None:
        self._busy_from = busy_from
        self._since = since
        self._throttled_at = throttled_at

    def respond(self, asked: Question, _headers: Mapping[str, str]) -> Answer:
        """Respond to the queries of quota-ops."""
        at = float(asked.time)
        if at <= self._since or 'user=""' in asked.query:  # all series have names
            return self._answer([])
        if asked.query.startswith(("count(", "count by")):
            labels = {"user": "etl", "instance": "kafka-1:9404"}
            is_known = "(user" not in asked.query or 'resource="Produce"' in asked.query
            return self._answer([{"metric": labels, "value": [at, "1"]}] * is_known)
        if "[" not in asked.query:
            is_counted = asked.query.startswith("up") or 'resource="Produce"' in asked.query
            labels = {"user": "etl", "instance": "kafka-1:9404"}
            value = "1" if asked.query.startswith("up") else "689.6"
            return self._answer([{"metric": labels, "value": [at, value]}] if is_counted else [])
        millis = re.findall(r"\[(\d+)ms\]", asked.query.replace("[1h]", "[3600000ms]"))
        seconds = int(millis[-1]) / 1000
        times = [second for second in range(int(at - seconds), int(at) + 1) if second % 60 == 0]
        if "throttle" in asked.query:
            times = [second for second in [int(self._throttled_at)] if at - seconds < second <= at]
        is_up = "up{" in asked.query
        if not times or (not is_up and 'resource="Produce"' not in asked.query):
            return self._answer([])
        numbers = [1 if is_up else self.find_rate(second) for second in times]
        labels = {"instance": "kafka-1:9404", **({} if is_up else {"user": "etl"})}
        function = re.match(
            r"(?:min by \(instance\) \()?(\w+)_over_time\((?:(.+?), )?", asked.query
        )
        if function is None:
            values = [[second, str(number)] for second, number in zip(times, numbers, strict=True)]
            return self._answer([{"metric": labels, "values": values}])
        found = sorted(numbers)[ceil(float(function[2] or 1) * len(numbers)) - 1]
        if function[1] in {"count", "sum"}:
            found = len(numbers)
        return self._answer([{"metric": labels, "value": [at, str(found)]}])

    def find_rate(self, second: float) -> int:
        """Return how many bytes per second are produced at a time."""
        return 900_000 if (second - self._busy_from) % DAY < 60 * 60 else 100_000

    def _answer(self, result: list[Any]) -> Answer:
        return Answer(200, json.dumps({"status": "success", "data": {"result": result}}))
