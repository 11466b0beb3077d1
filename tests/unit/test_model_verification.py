"""The description of the brokers that verify queried."""

import json
from math import inf
from typing import Any

import pytest

from quota_ops.model.registration import Absent
from quota_ops.model.rows import Key
from quota_ops.model.verification import BOOTSTRAP, BrokerResult, Settlement


def test_who_was_asked() -> None:
    """A broker has its id and address; the broker of a bootstrap address may be unknown."""
    assert BrokerResult(3, "kafka-3:9094", 1, 0).named == "broker 3 at kafka-3:9094"
    answer = BrokerResult(3, "link:9094", 1, 0, bootstrap=True)
    assert answer.named == "the bootstrap address link:9094 (broker 3)"
    answer = BrokerResult(BOOTSTRAP, "link:9094", 1, 0, bootstrap=True)
    assert answer.named == "the bootstrap address link:9094"
    answer = BrokerResult.of_absent(Absent(3, None, "is missing"))
    assert (answer.named, answer.agrees, answer.error) == ("broker 3", False, "is missing")


def test_what_a_later_run_found_is_kept_as_json() -> None:
    """A stored value, an infinite one and none are the same after a round trip."""
    found = Settlement("run-2", {Key("user=a", "k"): 1.0, Key("b", "k"): inf, Key("c", "k"): None})

    assert Settlement.from_json(json.loads(json.dumps(found.as_json()))) == found


@pytest.mark.parametrize("values", [{"by": 2, "found": []}, {"by": "x", "found": [["a", "k", []]]}])
def test_a_damaged_settlement_is_refused(values: dict[str, Any]) -> None:
    """Another type than a text or a number is an error."""
    with pytest.raises(TypeError):
        Settlement.from_json(values)
