"""resolve --ip on the command line: spellings of one address, and host names."""

import json
from pathlib import Path

from click.testing import CliRunner

from quota_ops.cli import main


def resolve(*arguments: str) -> str:
    """Return standard output of a resolve that succeeds."""
    done = CliRunner().invoke(main, ["resolve", *arguments])
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout


def test_an_address_in_other_spellings_and_by_name(tmp_path: Path) -> None:
    """An address is found in each spelling; several matches, and possible host names, are shown."""
    stored = {"0:0::1": 5.0, "::1": 6.0, "localhost": 7.0}
    lines = [
        json.dumps({"entity": {"ip": name}, "key": "connection_creation_rate", "value": value})
        for name, value in stored.items()
    ]
    snapshot = tmp_path / "spelled.jsonl"
    snapshot.write_text("\n".join(lines), "utf-8")
    asked = ("--actual", str(snapshot), "--ip", "0::0001")

    assert resolve(*asked, "--explain") == (
        f"connection_creation_rate for address ::1 on {snapshot}\n"
        "\n"
        "    address      ip=localhost  7 connections/s  by name: see below\n"
        "    address      ip=0:0::1     5 connections/s  one of these applies\n"
        "    address      ip=::1        6 connections/s  one of these applies\n"
        "    any address  ip=<default>  -\n"
        "\n"
        "5 connections/s or 6 connections/s on each node, brokers and controllers alike, from "
        "::1.\n"
        "Those are spellings of one address: each broker applies the one that was changed last, "
        "which cannot be read back. Clear all of them, then set one: after only one is cleared, "
        "brokers apply none.\n"
        "7 connections/s of {ip=localhost} (ip) is stored by a host name, which each broker "
        "resolves itself; if it finds ::1, that is another spelling of the address.\n"
    )
    assert resolve(*asked).splitlines()[1:3] == [
        "  connection_creation_rate=5.0  5 connections/s of {ip=0:0::1} (ip)",
        "    or 6 connections/s of {ip=::1} (ip)",
    ]
    (said,) = json.loads(resolve(*asked, "--format", "json")).values()
    by_name = {"value": 7.0, "level": "ip", "rank": None, "entity": {"ip": "localhost"}}
    assert said["by_name"] == [by_name]
