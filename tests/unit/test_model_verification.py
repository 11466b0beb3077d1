"""The description of the brokers that verify queried."""

from quota_ops.model.clusters.cluster_facts import Absent
from quota_ops.model.runs.verification import BOOTSTRAP, BrokerResult
from tests.unit.report_sample import FAILED, TROUBLED


def test_who_was_asked() -> None:
    """A broker has its id and address; the broker of a bootstrap address may be unknown."""
    assert BrokerResult(3, "kafka-3:9094", 1, 0).named == "broker 3 at kafka-3:9094"
    answer = BrokerResult(3, "link:9094", 1, 0, bootstrap=True)
    assert answer.named == "the bootstrap address link:9094 (broker 3)"
    answer = BrokerResult(BOOTSTRAP, "link:9094", 1, 0, bootstrap=True)
    assert answer.named == "the bootstrap address link:9094"
    answer = BrokerResult.of_absent(Absent(3, None, "is missing"))
    assert (answer.named, answer.agrees, answer.error) == ("broker 3", False, "is missing")


def test_what_verify_compared() -> None:
    """The rows that differ are compared too, and a run without a broker's response skips none."""
    assert [
        (read.compared, read.skipped) for read in (TROUBLED.verification, FAILED.verification)
    ] == [(412, 0), (0, 0)]
