"""Findings of a plan on a real cluster, which the files alone cannot give."""

from quota_ops.findings.codes import CODES
from quota_ops.model.finding import Finding, Location
from quota_ops.model.quotas.difference import Kind
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


PROMISED = """\
owner: team
quotas:
  - {user: etl, cluster_limits: {producer_byte_rate: 3000}}
  - {user: shop, limits: {producer_byte_rate: 1000, request_percentage: 550}}
"""


def test_a_report_compares_promises_with_capacity(lab: Lab) -> None:
    """Each broker's share of a limit of the whole cluster counts, and the threads it reports."""
    lab.desire({}, capacity={"producer_byte_rate": 2000})
    (lab.folder / "team.yaml").write_text(PROMISED, "utf-8")

    run = lab.run("report")

    text = (run.place / "report.txt").read().decode()
    report = text.split("Capacity of a broker\n")[1].split("\n\n")[0].splitlines()
    assert [line.split("  ")[0] for line in report[1:]] == [
        "producer_byte_rate",
        "",
        "request_percentage",
        "",
    ]
    assert [line.split() for line in report[1:]] == [
        ["producer_byte_rate", "all,", "of", "2", "kB/s", "4", "kB/s", "200", "%", "#" * 30],
        ["team", "4", "kB/s", "200", "%", "#" * 30],
        ["request_percentage", "all,", "of", "1,100", "%", "550", "%", "50", "%", "#" * 15],
        ["team", "550", "%", "50", "%", "#" * 15],
    ]
    assert run.read_json("report.json")["capacity"][0] == {
        "key": "producer_byte_rate",
        "capacity": 2000.0,
        "factor": 1.0,
        "promised": 4000.0,
        "owners": [{"owner": "team", "promised": 4000.0}],
    }
    assert [finding.code for finding in run.findings()] == ["QO107", "QO107", "QO118"]
    beyond = run.findings()[-1]
    assert beyond.message == (
        "4 kB/s of producer_byte_rate are promised on each broker, 2 times the capacity of 2 kB/s; "
        "most by team 4 kB/s."
    )
    assert (
        '<tr class="total"><td>producer_byte_rate</td>'
        in (run.place / "report.html").read().decode()
    )
