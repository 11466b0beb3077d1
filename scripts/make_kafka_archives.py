"""Makes the class archives of Kafka's programs, once per version of Java and Kafka."""

import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from quota_ops.lab.kafka.broker import start_broker
from quota_ops.lab.kafka.config import BrokerConfig
from quota_ops.lab.kafka.jars import DEFAULT_VERSION
from quota_ops.lab.kafka.node import FORMAT, SERVE, Jvm
from quota_ops.model.errors import ClusterTrouble, QuotaOpsError

_END_SECONDS = 120.0
_CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"


def make_archives(version: str = DEFAULT_VERSION) -> None:
    """Make the archives of a Kafka version, unless they exist and are undamaged.

    Formats and starts a broker to make them. Without the archives, brokers start more slowly.
    Raises MissingTool without Java or jars, ClusterTrouble if the broker does not start or end.
    """
    config = BrokerConfig(cluster_id=_CLUSTER_ID, version=version)
    jvm = Jvm.of(config, lambda _done, _all: None)
    archives = {program: jvm.archive(program) for program in (FORMAT, SERVE)}
    if all(archive.options() for archive in archives.values()):
        return
    sys.stderr.write(f"preparing Apache Kafka {version} for quick starts, once ...\n")
    with archives[SERVE].recording_folder() as scratch:
        _record(config, scratch)
        for program, archive in archives.items():
            archive.keep(scratch / program)


def _record(config: BrokerConfig, scratch: Path) -> None:
    """Run both programs to record their archives; the broker writes its archive on SIGTERM."""
    with start_broker(config, scratch / "broker", recording=scratch) as broker:
        (node,) = broker.nodes
        node.send(signal.SIGTERM)
        deadline = time.monotonic() + _END_SECONDS
        while node.alive:
            if time.monotonic() > deadline:
                raise ClusterTrouble("Kafka did not end, so there is no archive of its classes.")
            time.sleep(0.05)


def main(versions: Sequence[str]) -> int:
    """Make the archives of these versions, or the default one; a failure only prints a line."""
    for version in versions or (DEFAULT_VERSION,):
        try:
            make_archives(version)
        except (QuotaOpsError, OSError) as error:
            sys.stderr.write(f"brokers of {version} will start slower: {error}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
