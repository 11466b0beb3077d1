"""Brokers start from the archive of classes that set-up made, and the JVM reports nothing of it."""

import subprocess
from pathlib import Path

import pytest

from quota_ops.jvm.java import QUICK_START
from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.lab.kafka.node import SERVE, Jvm
from scripts.make_kafka_archives import make_archives


@pytest.fixture(name="options")
def _options(broker: RunningBroker) -> tuple[str, ...]:
    """Return the JVM options by which the shared broker uses its archive."""
    jvm = Jvm.of(broker.config, lambda _done, _all: None)
    if not (options := jvm.archive(SERVE).options()):
        pytest.skip("set-up could not make an archive of Kafka's classes")
    return options


def test_a_broker_uses_the_archive(broker: RunningBroker, options: tuple[str, ...]) -> None:
    """The archive is mapped into the broker's memory, and its log begins with Kafka's own line."""
    mapped = Path(f"/proc/{broker.pid}/maps")
    if not mapped.exists():
        pytest.skip("only Linux shows what a process has mapped")
    assert options[-1].partition("=")[2] in mapped.read_text()
    assert "[cds" not in broker.log.read_text()


@pytest.mark.usefixtures("options")
def test_archives_are_made_once(capsys: pytest.CaptureFixture[str]) -> None:
    """If the archives are intact, set-up makes none and prints nothing."""
    make_archives()
    assert capsys.readouterr() == ("", "")


def test_an_archive_of_other_jars_costs_nothing_but_time(
    broker: RunningBroker, options: tuple[str, ...], tmp_path: Path
) -> None:
    """The JVM starts without an archive that does not fit its class path, and reports nothing."""
    java = Jvm.of(broker.config, lambda _done, _all: None).java
    command = [java, *QUICK_START, "-cp", str(tmp_path), "-version"]
    plain = subprocess.run(command, capture_output=True, text=True, check=True)
    ended = subprocess.run(
        [java, *options, *command[1:]], capture_output=True, text=True, check=True
    )
    assert (ended.stdout, ended.stderr) == (plain.stdout, plain.stderr)
