"""The commands that tell of earlier runs."""

import click

from quota_ops.cli import options


@click.command(
    epilog="""\b
Examples:
  quota-ops runs                        the last 20 runs of every cluster
  quota-ops runs demo --last 100
  quota-ops runs demo --format json | jq '.[0].sentence'"""
)
@click.argument("cluster", required=False)
@click.option(
    "--last",
    "most",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    metavar="N",
    help="How many runs, the last ones.",
)
@options.run_store
@options.output_format
def runs(cluster: str | None, most: int, run_store: str | None, output: str) -> None:
    """List the last runs: what they came to, and who approved.

    Reads the run store and asks no cluster. `came to` is the first word of the run's report: Yes,
    Not yet, No or Unknown; of a run without a report it says how far that came.
    """
    import json

    from quota_ops.cli.layout import TEXT, show
    from quota_ops.report.history import runs_screen
    from quota_ops.store.history import past_runs
    from quota_ops.store.run_store import find_run_store

    found, more = past_runs(find_run_store(run_store), cluster, most)
    if output == TEXT:
        show(runs_screen(found, more))
    else:
        click.echo(json.dumps([one.as_json() for one in found], ensure_ascii=False, indent=1))


@click.command(
    epilog="""\b
Examples:
  quota-ops show last                       the last run of all
  quota-ops show demo/last                  of one cluster
  quota-ops show 2026-11-21T10-15-00Z-7f3a
  quota-ops show 7f3a                       a part of its name that no other has
  quota-ops show demo/last --format markdown"""
)
@click.argument("run")
@options.run_store
@click.option(
    "--format",
    "output",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    show_default=True,
    help="text for people, json for machines, markdown for a ticket.",
)
def show(run: str, run_store: str | None, output: str) -> None:
    """Show the report of an earlier run, as far as it came.

    RUN is a run's name, a part of it that no other has, its folder, or `last`; CLUSTER/ before it
    looks among that cluster's runs alone. It is read from what the run left; no cluster is asked.
    """
    from quota_ops.cli.past import show_past
    from quota_ops.store.run_names import find_run
    from quota_ops.store.run_store import find_run_store

    show_past(find_run(find_run_store(run_store), run), output)
