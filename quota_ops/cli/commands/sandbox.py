"""The sandbox: a real Kafka on this machine."""

from collections.abc import Iterator
from typing import Any

import click

from quota_ops.cli.console import show_result
from quota_ops.cli.options import output_format
from quota_ops.lab.kafka.jars import DEFAULT_VERSION, pinned_versions
from quota_ops.model.errors import ClusterTrouble


@click.group(
    epilog="""\b
Examples:
  quota-ops sandbox start
  quota-ops sandbox start --version 3.9.2
  quota-ops sandbox start --brokers 3 --auth scram-tls
  quota-ops sandbox status
  quota-ops plan demo
  quota-ops sandbox stop"""
)
def sandbox() -> None:
    """Run a real Kafka broker on this machine to try things out.

    It listens on loopback only. While it runs, the connection name `demo` resolves to it. Needs
    Java 17.
    """


@sandbox.command()
@click.option(
    "--version",
    type=click.Choice(pinned_versions()),
    help=f"The version of Apache Kafka.  [default: the running one, or {DEFAULT_VERSION}]",
)
@click.option(
    "--brokers",
    type=click.IntRange(1, 5),
    help="How many brokers.  [default: those that run, or 1]",
)
@click.option(
    "--auth",
    type=click.Choice(["scram", "scram-tls"]),
    help="Require SCRAM-SHA-512 (with TLS: scram-tls) and permissions. The connection demo is of "
    "the user svc-quota, who may describe and alter quotas; the user alice may use topics. The "
    "brokers' own listener, on another port, requires neither.",
)
@output_format
def start(version: str | None, brokers: int | None, auth: str | None, output: str) -> None:
    """Start the brokers in the background, and wait until they respond.

    The first start of a version downloads its jars (45 MB) from Maven Central into your cache.
    Each version, number of brokers and authentication is a cluster of its own, with its own data,
    id and ledger. The demo's files in a checkout are for the one without options.
    """
    from quota_ops.lab.kafka.jars import build_progress
    from quota_ops.lab.kafka.sandbox import find_sandbox, start_sandbox

    if output == "text" and not find_sandbox().running:
        click.echo("starting Kafka on this machine ...", err=True)
    progress = build_progress(version or DEFAULT_VERSION)
    started = start_sandbox(version=version, brokers=brokers, auth=auth, progress=progress)
    _show(started, output)


@sandbox.command()
@output_format
def status(output: str) -> None:
    """Show whether the broker runs, and where.

    The exit code is 3 when it does not, or when one of several has ended.
    """
    from quota_ops.lab.kafka.sandbox import RESTART, describe_dead, find_sandbox

    found = find_sandbox()
    _show(found, output)
    if found.dead:
        raise ClusterTrouble(describe_dead(found), RESTART)
    if not found.running:
        raise click.exceptions.Exit(ClusterTrouble.exit_code)


@sandbox.command()
def stop() -> None:
    """Stop the sandbox; its data stays for the next start."""
    from quota_ops.lab.kafka.sandbox import stop_sandbox

    click.echo("stopped" if stop_sandbox() else "it was not running")


def _show(found: Any, output: str) -> None:
    node = found.node
    values = {
        "running": found.running,
        "version": node.version if node else None,
        "brokers": len(found.nodes) if found.running else None,
        "bootstrap": found.bootstrap if found.running else None,
        "cluster_id": node.cluster_id if node else None,
        "pid": node.pid if found.running else None,
        "connection": str(found.connection) if found.connection.exists() else None,
        "client": str(found.client) if found.client else None,
        "log": str(node.log) if node else None,
    }

    def as_text() -> Iterator[str]:
        shown = values | {"running": "yes" if found.running else "no"}
        for name, value in shown.items():
            if value is not None:
                yield f"{name.replace('_', ' '):11} {value}\n"

    show_result(output, text=as_text, json=lambda: values)
