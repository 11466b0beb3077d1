"""The command `check`: check the YAML files."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quota_ops.cli import options
from quota_ops.cli.console import TEXT, show_screen
from quota_ops.model.errors import InvalidDesiredState, InvalidInput
from quota_ops.model.text import counted

if TYPE_CHECKING:
    from quota_ops.desired.read import Desired
    from quota_ops.model.plans.placement import Placement


@options.command("""
  quota-ops check                        every cluster
  quota-ops check demo                   one cluster
  quota-ops check ./desired_state/demo   the same, by its path
  quota-ops check --strict               findings are problems too""")
@click.argument("clusters", nargs=-1, metavar="[CLUSTER]...")
@options.refuse_idle(
    "CLUSTERS", "Leave it out: the run already names its cluster.", beside=("--run",)
)
@options.desired_state
@options.run
@click.option("--strict", is_flag=True, help="Also exit with 2 if a finding is not silenced.")
@options.as_of
@options.refuse_idle(
    "--as-of", "Leave it out: the run of --run already has a time.", beside=("--run",)
)
@options.brokers
@options.refuse_idle("--brokers", "Leave it out: the run queries the brokers.", beside=("--run",))
@options.output_format
def check(
    clusters: tuple[str, ...],
    desired_state: Path,
    run_folder: str | None,
    output: str,
    as_of: str | None,
    *,
    strict: bool,
    brokers: "Placement | None",
) -> None:
    """Check the YAML files and list every problem.

    Needs no broker and no Java. Lists problems with file, line and column, and findings: quotas
    that are valid but probably unintended.
    """
    if run_folder is None:
        check_clusters(clusters, desired_state, output, strict=strict, at=as_of, brokers=brokers)
    else:
        check_run(run_folder, desired_state, output, strict=strict)


def check_clusters(
    clusters: Sequence[str],
    desired_state: Path,
    output: str,
    *,
    strict: bool,
    at: str | None = None,
    brokers: "Placement | None" = None,
) -> None:
    """Check the named clusters; if none is named, all of them and the YAML files outside them.

    With `strict`, findings that are not silenced count as problems. `at` (ISO 8601, UTC) decides on
    temporary limits, by default now. `brokers` share the limits of the whole cluster; without it,
    they are not divided.
    """
    from quota_ops.desired.clusters import (
        find_astray_files,
        find_clusters,
        refuse_duplicate_clusters,
        refuse_stray_files,
    )
    from quota_ops.desired.git.commit import read_whole_checkout
    from quota_ops.desired.read import find_cluster, find_unused_files

    def read(folder: Path) -> "Desired":
        return read_whole_checkout(folder, at=at).divide(brokers, folder)

    folders = [find_cluster(name, desired_state) for name in clusters]
    for path in {folder.parent: folder for folder in folders}.values():
        refuse_duplicate_clusters(path)
    folders = folders or list(find_clusters(desired_state))
    checked = [_check_cluster(folder, partial(read, folder), output) for folder in folders]
    unused = [] if clusters else find_unused_files(desired_state, folders)
    outside = [] if clusters else find_astray_files(desired_state, folders)
    astray = [(os.path.relpath(path), folder) for path, folder in outside]
    try:
        _show_all(checked, output, strict=strict, unused=unused, astray=astray)
    finally:  # even after an error: all problems are listed in one pass
        if not clusters:
            refuse_stray_files(desired_state)
    if not folders:
        raise InvalidInput(
            f"there is no cluster in {desired_state}",
            "Create one with quota-ops init: a cluster is a folder with a cluster.yaml.",
        )


def check_run(run_folder: str, desired_state: Path, output: str, *, strict: bool) -> None:
    """Check the cluster of an earlier run again, and write the result to the run's folder."""
    from quota_ops.cli.stage_run import open_run, refuse_written
    from quota_ops.desired.read import find_cluster
    from quota_ops.runs.run import leave_changes
    from quota_ops.stages.check import check_desired_state
    from quota_ops.store.ledger import ledger

    run = open_run(run_folder, None)
    refuse_written(run, "check")
    folder = find_cluster(run.about().cluster, desired_state)

    def read() -> "Desired":
        desired = check_desired_state(run, folder)
        leave_changes(run, folder, ledger.read(run.records).table)
        return desired

    _show_all([_check_cluster(folder, read, output)], output, strict=strict)


def _show_all(
    checked: Sequence[dict[str, Any]],
    output: str,
    *,
    strict: bool,
    unused: Sequence[str] = (),
    astray: Sequence[tuple[str, Path]] = (),
) -> None:
    from quota_ops.desired.files import SHARED

    if output == TEXT:
        for file in unused:
            remedy = "List it under use in a cluster.yaml, or delete it."
            click.echo(f"{SHARED}/{file}: no cluster uses this file. {remedy}")
        for path, folder in astray:
            click.echo(
                f"{path}: quotas outside {folder}, so no run reads them. Move the file there."
            )
    else:
        values = {"clusters": checked, "unused_shared_files": unused}
        click.echo(json.dumps(values | {"files_outside": [file for file, _ in astray]}, indent=1))
    has_unsilenced = any(
        finding["silenced"] is None for cluster in checked for finding in cluster["findings"]
    )
    if any(cluster["problems"] for cluster in checked) or (
        strict and (has_unsilenced or unused or astray)
    ):
        raise click.exceptions.Exit(InvalidDesiredState.exit_code)


def _check_cluster(folder: Path, read: "Callable[[], Desired]", output: str) -> dict[str, Any]:
    from quota_ops.desired.files import cluster_name
    from quota_ops.findings.silences import list_unsilenced
    from quota_ops.report.outline.findings import finding_lines, findings_json
    from quota_ops.report.outline.layout import Tone, line
    from quota_ops.report.screens.expanded import undivided_lines
    from quota_ops.report.screens.plan import problems_screen

    name = cluster_name(folder)
    try:
        desired = read()
    except InvalidDesiredState as invalid:
        if output == TEXT:
            show_screen(problems_screen(invalid, str(folder)))
        return {
            "cluster": name,
            "quotas": invalid.quotas,
            "problems": [asdict(problem) for problem in invalid.problems],
            "unlisted_problems": invalid.unlisted,
            "findings": findings_json(invalid.findings, str(folder)),
        }
    if desired.policy.inventory_in_git:
        from quota_ops.stages.check import read_clients

        read_clients(desired.policy, folder)
    if output == TEXT:
        unsilenced = list_unsilenced(desired.findings)
        read_in = f"{counted(len(desired.rows), 'quota')} in {counted(desired.files, 'file')}"
        found = f", {counted(len(unsilenced), 'finding')}" if unsilenced else ""
        last = line(f"{name}: {read_in}, no problems{found}", Tone.CHANGE if found else Tone.OK)
        undivided = undivided_lines(desired.rows, name)
        show_screen((*finding_lines(unsilenced, str(folder)), *undivided, last))
    return {
        "cluster": name,
        "quotas": len(desired.rows),
        "problems": [],
        "unlisted_problems": 0,
        "findings": findings_json(desired.findings, str(folder)),
    }
