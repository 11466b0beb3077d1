"""The source of a limit that `resolve` shows, and what a value does that blocks an address."""

from math import nan

import pytest

from quota_ops.model.plans import ledger_edits
from tests.lab import Lab


@pytest.mark.local_store
def test_a_source_that_is_not_known_for_certain(lab: Lab) -> None:
    """A source names a write that was not read back, and a ledger that was lost.

    A history that cannot be read says nothing about the files in Git.
    """
    rate, connections = "producer_byte_rate", "connection_creation_rate"
    stored = {"user=alice": {rate: 5.0}, "ip=10.0.0.1": {connections: 5.0}}
    lab.desire(stored)
    lab.put(stored)
    lab.note({"user=alice": {rate: 5.0}}, ledger_edits.INTENDED)
    (lab.root / "store" / "history").write_text("not a folder")

    def find_source(*who: str) -> str:
        shown = lab.call("resolve", "demo", *who)
        (source,) = [line for line in shown.stdout.splitlines() if "Source:" in line]
        return source.strip()

    assert find_source("--user", "alice") == (
        "Source: as team.yaml:4 (team) declares; managed, written, and not read back, by run "
        "earlier."
    )
    assert find_source("--ip", "10.0.0.1") == (
        "Source: as team.yaml:8 (team) declares; not managed: who set it, and when, is unknown."
    )
    for file in lab.records.ledger.list():
        (lab.records.ledger / file).delete()
    assert find_source("--user", "alice").endswith(
        "; not managed: who set it, and when, is unknown; but the run store has no ledger: its "
        "newest file, 00000001.parquet, is lost."
    )


def test_a_value_that_blocks_an_address(lab: Lab) -> None:
    """A broker reads NaN as no connection at all, so clearing it lifts a limit: a guard asks."""
    lab.put({"ip=10.0.0.2": {"connection_creation_rate": nan}})
    lab.desire({"user=alice": {"producer_byte_rate": 5.0}})

    found = lab.call("resolve", "demo", "--ip", "10.0.0.2").stdout
    clear = ("--names", "ip=10.0.0.2", "--delete", "connection_creation_rate")
    refused = lab.call("alter", "demo", *clear, "--reason", "INC-7")

    assert "nan is 0 to brokers: no node accepts a connection from this address." in found
    assert "no longer limited" in refused.stdout, refused.stdout + refused.stderr
    assert "unlimited: " in refused.stdout
    assert refused.returncode == 1
