"""Findings of a plan on a real cluster, which the files alone cannot give."""

from quota_ops.findings.codes import CODES
from quota_ops.model.difference import Kind
from quota_ops.model.finding import Finding, Location
from tests.lab import Lab
from tests.writing import State

STATE: State = {
    "user=ANONYMOUS": {"request_percentage": 5.0},
    "user=alice": {"request_percentage": 1101.0},
    "user=bob": {"request_percentage": 1100.0},
    "client-id=app": {"request_percentage": 50.0},
}


def test_a_plan_asks_the_cluster_for_what_it_finds(lab: Lab) -> None:
    """Threads and quota-ops' own user come from the cluster; what covers a limit is overriding."""
    lab.put({"user=<default>": {"request_percentage": 50.0}})
    lab.desire(STATE, silence=[{"finding": "QO201", "reason": "as much as there is"}])

    folder = lab.run("plan")

    key = "request_percentage"
    wide, slow = sorted(folder.findings())
    assert wide == Finding(
        "QO201",
        "user=alice",
        key,
        "request_percentage of user=alice is 1,101 %, but the threads of this cluster's largest "
        "broker provide 1,100 %.",
        CODES["QO201"].remedy,
        Location("team.yaml", 7),
        "as much as there is",
    )
    assert slow == Finding(
        "QO203",
        "user=ANONYMOUS",
        key,
        "user=ANONYMOUS limits quota-ops itself to request_percentage 5 %: its user is ANONYMOUS, "
        "its client id is quota-ops.",
        CODES["QO203"].remedy,
        Location("team.yaml", 4),
    )
    (covering,) = (row for row in folder.differences() if row.entity == "user=<default>")
    assert covering.kind is Kind.OVERRIDING
