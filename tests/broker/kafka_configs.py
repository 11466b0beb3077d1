"""Kafka's own kafka-configs.sh, on its own jars: a process for one call, or one for many."""

import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from quota_ops.jvm.java import QUICK_START
from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.lab.kafka.config import BrokerConfig
from quota_ops.lab.kafka.node import SERVE, Jvm


def kafka_configs(broker: RunningBroker, *arguments: str) -> str:
    """Run Kafka's command; return its output."""
    ran = run_command(broker.bootstrap(), arguments)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@contextmanager
def started_kafka_configs(broker: RunningBroker) -> Iterator[Callable[..., str]]:
    """Yield a function that runs Kafka's command, each time in the same JVM; its output returns.

    A failure of the command ends the JVM. To start one for each call takes a second of CPU.
    """
    jvm = Jvm.of(BrokerConfig(cluster_id=""), lambda _done, _all: None)
    port, process = launch_gateway(
        classpath=os.pathsep.join(map(str, jvm.jars)),
        javaopts=[*QUICK_START],
        java_path=jvm.java,
        die_on_exit=True,
        return_proc=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    java = gateway.jvm.java
    output = java.io.ByteArrayOutputStream()
    java.lang.System.setOut(java.io.PrintStream(output, True, "UTF-8"))

    def run(*arguments: str) -> str:
        words = ("--bootstrap-server", broker.bootstrap(), *arguments)
        array = gateway.new_array(java.lang.String, len(words))
        for number, word in enumerate(words):
            array[number] = word
        output.reset()
        gateway.jvm.kafka.admin.ConfigCommand.main(array)
        return str(output.toString("UTF-8"))

    try:
        yield run
    finally:
        gateway.shutdown()
        with process.stdin, process.stdout:
            process.kill()
            process.wait()


def run_command(
    bootstrap: str, arguments: Sequence[str], folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run Kafka's command in a folder, with the class archive of the broker.

    The archive has most of the classes that the command loads too, which halves its CPU time.
    """
    jvm = Jvm.of(BrokerConfig(cluster_id=""), lambda _done, _all: None)
    encodings = ("file.encoding", "stdout.encoding", "sun.jnu.encoding")
    options = (*QUICK_START, *jvm.archive(SERVE).options())
    program = ("kafka.admin.ConfigCommand", "--bootstrap-server", bootstrap)
    return subprocess.run(
        [jvm.java, *options, *(f"-D{name}=UTF-8" for name in encodings), *program, *arguments],
        # The class path starts as the archive's does.
        env={**os.environ, "LC_ALL": "C.UTF-8", "CLASSPATH": os.pathsep.join(map(str, jvm.jars))},
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
