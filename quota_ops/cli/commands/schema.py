"""The command that prints schemas for an editor."""

import json

import click

from quota_ops.cli import options


@options.command("""
  quota-ops schema quotas > quotas.schema.json
  quota-ops schema cluster
  quota-ops schema audit""")
@click.argument("kind", type=click.Choice(["quotas", "cluster", "audit"]), default="quotas")
def schema(kind: str) -> None:
    """Print the JSON Schema of the YAML files or of the audit log.

    The schemas `quotas` and `cluster` are for editors, `audit` is for readers of the audit
    topic.
    """
    from quota_ops.desired.schema import cluster_schema, quotas_schema
    from quota_ops.stages.report.audit import audit_schema

    made = {"quotas": quotas_schema, "cluster": cluster_schema, "audit": audit_schema}[kind]
    click.echo(json.dumps(made(), indent=2))
