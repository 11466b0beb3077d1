"""The lines of an error about rows that did not end as planned."""

from quota_ops.model.runs.outcome import Outcome, Status, format_outcomes

KEYS = ("producer_byte_rate",)


def test_many_entities_with_one_result_share_a_line() -> None:
    """The line names the first entity and counts the others; few entities keep their lines."""
    lost = "the connection to broker 1 was lost"
    outcomes = [
        Outcome(1, "user=a", KEYS, Status.UNKNOWN, message=lost),
        *(Outcome(2, f"user=b{at}", KEYS, Status.NOT_SENT, message=lost) for at in range(20)),
        Outcome(3, "user=c", KEYS, Status.REFUSED, 44, "POLICY_VIOLATION", "no"),
        Outcome(3, "user=d", KEYS, Status.REFUSED, 44, "POLICY_VIOLATION", "no"),
    ]
    assert format_outcomes(outcomes, "outcomes.parquet").splitlines() == [
        f"  user=a  unknown: {lost}",
        f"  user=b0 and 19 more  not_sent: {lost}",
        "  user=c  refused: POLICY_VIOLATION: no",
        "  user=d  refused: POLICY_VIOLATION: no",
    ]
