"""A plan beside the use that a Prometheus recorded: what people read, and what a guard blocks."""

import re
import time
from pathlib import Path

from tests.lab import Lab
from tests.usage.busy_hour import BusyHour
from tests.usage.recording import serve

KEY = "producer_byte_rate"
USAGE = {"prometheus": "monitoring", "match": {"cluster": "demo"}}
SIX_HOURS = 6 * 60 * 60
GUARDS = {"would_throttle": 60}


def test_whom_a_cut_would_have_throttled(lab: Lab, tmp_path: Path) -> None:  # noqa: PLR0915 - one story
    """A plan shows it as a range, a guard blocks that or the unknown, and a page has a bar."""
    connection = tmp_path / "monitoring.properties"
    environment = {"QUOTA_OPS_CONNECTION_MONITORING": str(connection)}
    settings = {"usage": USAGE, "guards": GUARDS}
    default = {"user=<default>": {KEY: 2_000_000}}
    lab.desire({"user=etl": {KEY: 500_000}} | default, **settings)
    lab.run("reconcile")
    lab.desire({"user=etl": {KEY: 1_000_000}} | default, **settings)

    with serve(BusyHour(time.time() - SIX_HOURS).respond) as url:
        connection.write_text(f"url={url}\n")
        raised = lab.call("reconcile", "demo", environment=environment)
        found_now = (lab.runs[-1].place / "report.html").read().decode()
        lab.desire({"user=etl": {KEY: 500_000}} | default, **settings)
        blocked = lab.call("plan", "demo", environment=environment)
        recorded = lab.call("record", "demo", "--days", "7", environment=environment)
        lab.desire({"user=<default>": {KEY: 500_000}}, **settings)
        of_default = lab.call("plan", "demo", environment=environment)
    lab.desire({"user=etl": {KEY: 500_000}} | default, **settings)
    unknown = lab.call("plan", "demo", environment=environment)
    back = lab.call("rollback", "demo/last", environment=environment)
    lab.call("reconcile", "demo", environment=environment)

    assert (raised.returncode, blocked.returncode, unknown.returncode) == (0, 1, 1)
    assert back.returncode == 0, back.stdout
    told = (
        "user=etl producer_byte_rate would have throttled user=etl for (at least )?6.8 to 13.9 h "
        "in the last 7 days"
    )
    found = re.search(f"^{told}, with delays up to (.+)$", blocked.stdout, re.MULTILINE)
    assert found, blocked.stdout
    assert re.fullmatch(
        r"4[89] min \(seen (99|100) % of that time, broker kafka-1:9404\)\.", found[2]
    )
    assert (found[1] is None) is ("seen 100 %" in found[2])
    assert "Stored the use of demo on 7 days." in recorded.stdout, recorded.stderr
    rest = "0 clients stayed below it (100 % of 7 days are recorded)."
    nobody = f"user=<default> producer_byte_rate is above all recorded use. {rest}"
    assert nobody in of_default.stdout, of_default.stdout
    assert re.search(told, of_default.stdout)
    page = (lab.runs[-1].place / "report.html").read().decode()
    assert "Whether a client is throttled is unknown: the Prometheus monitoring" in page
    assert "1 client was throttled in the minute before" in found_now
    cells = "user=etl", KEY, "500 kB/s", "user=etl", "team", "690 ms", "kafka-1:9404"
    assert "".join(f"<td>{cell}</td>" for cell in cells) in found_now
    assert re.search(r"<small>[^<]*p95 [█▉] (9|10) % of 1 MB/s", page), "the row of user=etl"
    guard = "would_throttle: user=etl producer_byte_rate would have throttled clients for up to "
    assert f"{guard}833 minutes in the last 7 days, more than 60 minutes" in blocked.stdout
    why = f"the Prometheus monitoring ({url}) cannot be reached"
    assert f"Whom the cuts would have throttled cannot be determined: {why}" in unknown.stdout
    cut = "would_throttle: whom user=etl producer_byte_rate would have throttled is not known"
    assert f"{cut}: {why}" in unknown.stdout
    assert f"Whom the cuts would have throttled cannot be determined: {why}" in back.stdout

    override = ("--allow", "would_throttle", "--reason", "agreed", "--by", "carol")
    overridden = lab.call("reconcile", "demo", *override, environment=environment)
    assert overridden.returncode == 0, overridden.stdout
    changes = lab.call("history", "demo", "--changes").stdout.splitlines()
    cut = next(row for row in changes if "1 MB/s -> 500 kB/s" in row)
    assert re.split(r" {2,}", cut)[5:8] == ["team", "carol: agreed", "carol"], "who approved it"
