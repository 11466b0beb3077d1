"""What `check` does with what the reader says."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from quota_ops.cli.layout import TEXT, show
from quota_ops.cli.options import find_cluster
from quota_ops.desired.read import find_clusters, read_cluster
from quota_ops.model.errors import InvalidDesiredState, InvalidInput
from quota_ops.report.screen import Tone, line
from quota_ops.report.screens import problems_screen
from quota_ops.report.wording import counted


def check_clusters(clusters: Sequence[str], desired_state: Path, output: str) -> None:
    """Read the clusters, all of them when none is named, and say what is wrong with each."""
    if clusters:
        folders = [find_cluster(name, desired_state) for name in clusters]
    elif not (folders := list(find_clusters(desired_state))):
        raise InvalidInput(
            f"there is no cluster in {desired_state}",
            "A cluster is a folder with a cluster.yaml; quota-ops init writes one.",
        )
    checked = [_check(folder, output) for folder in folders]
    if output != TEXT:
        click.echo(json.dumps({"clusters": checked}, ensure_ascii=False, indent=1))
    if any(one["problems"] for one in checked):
        raise click.exceptions.Exit(InvalidDesiredState.exit_code)


def _check(folder: Path, output: str) -> dict[str, Any]:
    name = folder.resolve().name
    try:
        desired = read_cluster(folder)
    except InvalidDesiredState as invalid:
        if output == TEXT:
            show(problems_screen(invalid))
        problems = [asdict(problem) for problem in invalid.problems]
        return {"cluster": name, "quotas": invalid.quotas, "problems": problems}
    if output == TEXT:
        read = f"{counted(len(desired.rows), 'quota')} in {counted(desired.files, 'file')}"
        show((line(f"{name}: {read}, no problems", Tone.OK),))
    return {"cluster": name, "quotas": len(desired.rows), "problems": []}
