"""The command that shows what a cluster holds."""

import json
from pathlib import Path

import click

from quota_ops.cli import options


@click.command(
    epilog="""\b
Examples:
  quota-ops describe demo
  quota-ops describe demo --format jsonl > snapshot.jsonl
  quota-ops describe demo --connection ./staging.properties"""
)
@options.cluster_argument
@options.desired_state
@options.connection
@click.option(
    "--format",
    "output",
    type=click.Choice(["text", "json", "jsonl"]),
    default="text",
    show_default=True,
    help="text for people; json one array; jsonl one row a line.",
)
def describe(
    cluster: str,
    desired_state: Path,
    connection_file: Path | None,
    output: str,
) -> None:
    """Show every quota that a cluster holds, unknown types and keys included. Read-only.

    Reads cluster.yaml for the connection and the cluster's id, and no other file.
    """
    from quota_ops.cli.layout import show
    from quota_ops.desired.read import read_policy
    from quota_ops.kafka.cluster import open_cluster
    from quota_ops.kafka.connection import find_connection
    from quota_ops.model.quota import format_limit
    from quota_ops.report.screen import Row, Span, Table, Tone, line
    from quota_ops.report.wording import counted
    from quota_ops.run_json import number

    policy = read_policy(options.find_cluster(cluster, desired_state))
    found = find_connection(policy.connection, file=connection_file)
    with open_cluster(found, cluster_id=policy.cluster_id) as opened:
        stored = sorted(opened.describe(), key=lambda row: (row.entity.text, row.key))
    if output == "text":
        rows = tuple(
            Row(tuple(map(Span, (one.entity.text, one.key, format_limit(one.key, one.value)))))
            for one in stored
        )
        if rows:
            show((Table(("entity", "key", "value"), rows),))
        total = f"{counted(len(stored), 'quota')} on {policy.cluster} ({policy.cluster_id})"
        show((line(total, Tone.CONTEXT),))
        return
    objects = [
        {"entity": one.entity.as_dict(), "key": one.key, "value": number(one.value)}
        for one in stored
    ]
    if output == "jsonl":
        for one in objects:
            click.echo(json.dumps(one, ensure_ascii=False))
    else:
        click.echo(json.dumps(objects, ensure_ascii=False, indent=1))
