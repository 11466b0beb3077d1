"""What is recorded of a day with faults, by cases: tests/cases/usage/faults.yaml."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from quota_ops.model.usage.usage import UsagePolicy
from quota_ops.runs.digests import digest_days
from quota_ops.store.places.run_store import RunStore, open_place
from quota_ops.usage.source import UsageSource
from tests.usage.conftest import connect
from tests.usage.recorded import read_use
from tests.usage.recording import Answer, Question, serve
from tests.yaml_cases import load_yaml

DAY = "2026-11-25"
START = int(datetime.fromisoformat(DAY).replace(tzinfo=UTC).timestamp())
HOURS = 3
POLICY = UsagePolicy("monitoring", match=(("cluster", "demo"),))
CASES = load_yaml(
    (Path(__file__).parents[1] / "cases/usage/faults.yaml").read_text(encoding="utf-8")
)


class Faulty:
    """A Prometheus that scraped the brokers of a case each minute."""

    def __init__(self, brokers: Mapping[str, Any]) -> None:
        self._brokers = brokers

    def respond(self, asked: Question, _headers: Mapping[str, str]) -> Answer:
        """Respond to the queries of quota-ops."""
        at, found = float(asked.time), re.search(r'instance="(\w+)"', asked.query)
        result: list[dict[str, Any]] = []
        if asked.query.startswith("count by (user"):
            result = [{"metric": {"user": "etl"}, "value": [at, "1"]}]
        elif asked.query.startswith("count by"):
            scraped = [name for name, own in self._brokers.items() if own["up"].strip("-")]
            result = [{"metric": {"instance": name}, "value": [at, "1"]} for name in scraped]
        elif found and (asked.query.startswith("up{") or 'byte_rate{resource="Pro' in asked.query):
            broker = self._brokers[found[1]]
            texts = broker["up"] if asked.query.startswith("up{") else broker["rates"]
            seconds = int(re.findall(r"\[(\d+)ms\]", asked.query)[-1]) / 1000
            values = [
                [START + minute * 60, texts[(minute - 1) // (60 * HOURS)]]
                for minute in range(1, 24 * 60 + 1)
                if texts[(minute - 1) // (60 * HOURS)] not in {None, "-"}
                and at - seconds <= START + minute * 60 <= at
            ]
            names = {"user": "etl", "instance": found[1]}
            result = [{"metric": names, "values": values}] if values else []
        compact = {"status": "success", "data": {"result": result}}
        return Answer(200, json.dumps(compact, separators=(",", ":")))


@pytest.mark.parametrize("case", [pytest.param(case, id=case["case"]) for case in CASES])
def test_faults_lower_the_coverage_and_claim_nothing(case: dict[str, Any], tmp_path: Path) -> None:
    """Time that was not seen is neither use nor idle time, and a day without any is missing."""
    store = RunStore(open_place(tmp_path))
    with serve(Faulty(case["brokers"]).respond) as url:
        (day,) = digest_days(store, "id", UsageSource.of(POLICY, connect(url)), [DAY])
    assert day.why == case.get("why")
    if day.why is None:
        uses = read_use(store, "id", [DAY])
        assert int(100 * day.share) == case["seen"]
        assert {use.broker: round(use.counted / 3600, 1) for use in uses} == case["hours"]
        assert max(use.highest for use in uses) == case["highest"]
