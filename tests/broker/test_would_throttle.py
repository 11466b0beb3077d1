"""A plan beside the use that a Prometheus recorded: what people read, and what a guard blocks."""

import json
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.lab import Lab
from tests.usage.recording import Answer, Question, serve

KEY = "producer_byte_rate"
DAY = 24 * 60 * 60
USAGE = {"prometheus": "monitoring", "match": {"cluster": "demo"}}
GUARDS = {"would_throttle": 60}


class Recorded:
    """What a Prometheus answers that scraped one broker each minute.

    The user etl produces 900 kB/s from six hours before `now` on for an hour, each day, and
    100 kB/s at all other times.
    """

    def __init__(self, now: float) -> None:
        self._busy_from = now - 6 * 60 * 60

    def respond(self, asked: Question, _headers: Mapping[str, str]) -> Answer:
        """Respond to the queries of quota-ops."""
        at = float(asked.time)
        if asked.query.startswith("count"):
            return self._answer([{"metric": {"instance": "kafka-1:9404"}, "value": [at, "1"]}])
        seconds = int(re.findall(r"\[(\d+)ms\]", asked.query)[-1]) / 1000
        times = [second for second in range(int(at - seconds), int(at) + 1) if second % 60 == 0]
        if asked.query.startswith("up"):
            values = [[second, "1"] for second in times]
            return self._answer([{"metric": {"instance": "kafka-1:9404"}, "values": values}])
        if 'resource="Produce"' not in asked.query:
            return self._answer([])
        values = [[second, "900000" if self._is_busy(second) else "100000"] for second in times]
        names = {"user": "etl", "instance": "kafka-1:9404"}
        return self._answer([{"metric": names, "values": values}])

    def _is_busy(self, second: float) -> bool:
        return (second - self._busy_from) % DAY < 60 * 60

    def _answer(self, result: list[Any]) -> Answer:
        return Answer(200, json.dumps({"status": "success", "data": {"result": result}}))


def test_whom_a_cut_would_have_throttled(lab: Lab, tmp_path: Path) -> None:
    """A plan shows it as a range, a guard blocks it, and blocks what is unknown; no rollback."""
    connection = tmp_path / "monitoring.properties"
    environment = {"QUOTA_OPS_CONNECTION_MONITORING": str(connection)}
    settings = {"usage": USAGE, "guards": GUARDS}
    lab.desire({"user=etl": {KEY: 500_000}}, **settings)
    lab.run("reconcile")
    lab.desire({"user=etl": {KEY: 1_000_000}}, **settings)
    raised = lab.call("reconcile", "demo", environment=environment)
    lab.desire({"user=etl": {KEY: 500_000}}, **settings)

    with serve(Recorded(time.time()).respond) as url:
        connection.write_text(f"url={url}\n")
        blocked = lab.call("plan", "demo", environment=environment)
    unknown = lab.call("plan", "demo", environment=environment)
    back = lab.call("rollback", "demo/last", environment=environment)

    assert (raised.returncode, blocked.returncode, unknown.returncode) == (0, 1, 1)
    assert back.returncode == 0, back.stdout
    told = (
        "user=etl producer_byte_rate would have throttled user=etl for 7 to 13.9 hours in the last"
    )
    found = re.search(f"^{told} 7 days, with delays up to (.+)$", blocked.stdout, re.MULTILINE)
    assert found, blocked.stdout
    assert re.fullmatch(
        r"4[89] minutes \(seen (99|100) % of that time, broker kafka-1:9404\)\.", found[1]
    )
    guard = "would_throttle: user=etl producer_byte_rate would have throttled clients for up to "
    assert f"{guard}833 minutes in the last 7 days, more than 60 minutes" in blocked.stdout
    why = f"the Prometheus monitoring ({url}) cannot be reached"
    assert f"Whom the cuts would have throttled cannot be told: {why}" in unknown.stdout
    cut = "would_throttle: whom user=etl producer_byte_rate would have throttled is not known"
    assert f"{cut}: {why}" in unknown.stdout
    assert f"Whom the cuts would have throttled cannot be told: {why}" in back.stdout
