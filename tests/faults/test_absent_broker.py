"""The screens of an operator while one of three brokers is stopped."""

import re
from collections.abc import Sequence

import pytest

from tests.faults.scene import AFTER, Scene
from tests.faults.table import Ground
from tests.lab import Lab

NOT_QUERIED = "Broker 3 at HOST:PORT is fenced: no client is sent to it, and it was not queried."
REMEDY = (
    "Verify again when it is back. If it will not come back, remove it with kafka-cluster.sh "
    "unregister (Apache Kafka 3.3 and later), or list it in cluster.yaml under retired_brokers."
)
CEILING = (
    "3 B/s on each broker, shared by all of u6's clients without a quota of their client id that "
    "comes first; at most 9 B/s over the cluster."
)
SHOWN = {
    "ping demo": (
        3,
        [
            "ID, as in cluster.yaml; KRaft) 2 of 3 brokers respond",
            "3 HOST:PORT unknown is fenced",
            f"Broker 3 could not be queried. {REMEDY}",
        ],
    ),
    "verify demo": (
        1,
        [
            "broker 3 at HOST:PORT is fenced (not queried)",
            NOT_QUERIED,
            "9 of 9 quotas verified on each of the 2 that responded: stored and in force.",
            "not every broker could be queried: broker 3 at HOST:PORT is fenced",
            f"The others store every row. {REMEDY}",
        ],
    ),
    "report demo": (
        1,
        [NOT_QUERIED, "not every broker could be queried: broker 3 at HOST:PORT is fenced"],
    ),
    "resolve demo --user u6 --key producer_byte_rate": (0, [CEILING, NOT_QUERIED]),
    "resolve demo --user u6 --key producer_byte_rate --explain": (
        0,
        ["producer_byte_rate for user u6, no client id on demo (3 brokers)", CEILING, NOT_QUERIED],
    ),
}
"""The exit code of each command, and the lines that speak of brokers."""
NEEDLESS = "Broker 3 is alive: remove it from retired_brokers in cluster.yaml."
ALIVE = {
    "ping demo": (0, ["ID, as in cluster.yaml; KRaft) 3 of 3 brokers respond", NEEDLESS]),
    "verify demo": (0, ["broker 3 agrees", NEEDLESS]),
}
"""The same while the broker runs, and cluster.yaml calls it retired."""
OF_BROKERS = re.compile(r"roker 3|[23] brokers|fenced|that responded|others store|over the cluster")


@pytest.mark.parametrize("scene", [Ground("three", 30.0)], indirect=True)
def test_every_command_counts_the_stopped_broker(scene: Scene) -> None:
    """Each command names the stopped broker; none treats the other two as the whole cluster.

    While the broker runs, its entry in `retired_brokers` is reported as having no effect.
    """
    scene.lab.run("reconcile")
    scene.lab.desire(AFTER, retired_brokers=[{"id": 3, "reason": "scaled down"}])
    assert {command: shown(scene.lab, command.split()) for command in ALIVE} == ALIVE
    scene.lab.desire(AFTER)
    scene.machine.nodes[3].stop()

    assert {command: shown(scene.lab, command.split()) for command in SHOWN} == SHOWN


def shown(lab: Lab, command: Sequence[str]) -> tuple[int, list[str]]:
    """Return the exit code of a command, and its lines of brokers, with times masked."""
    ended = lab.cli(*command)
    lines = re.sub(r"127\.0\.0\.1:\d+", "HOST:PORT", ended.stdout + ended.stderr).split("\n")
    found = [" ".join(line.split()) for line in lines if OF_BROKERS.search(line)]
    return ended.returncode, [one.replace(f"demo ({lab.cluster.cluster_id}", "ID") for one in found]
