"""The command `init`: create a repository for quotas."""

from importlib.resources import files
from os.path import lexists
from pathlib import Path
from string import Template

import click

from quota_ops.model.errors import InvalidInput

STARTER = {
    "desired_state/$cluster/cluster.yaml": "cluster.yaml",
    "desired_state/$cluster/team.yaml": "team.yaml",
    "dags/quota_ops_dags.py": "quota_ops_dags.py.txt",
    ".airflowignore": "airflowignore",
    ".gitignore": "gitignore",
    "README.md": "README.md",
}
"""What `init` writes, and the template that it is made from."""


@click.command(
    epilog="""\b
Examples:
  quota-ops init my-quotas
  quota-ops init my-quotas --cluster payments --cluster-id MkU3OEVBNTcwNTJENDM2Qg"""
)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--cluster", default="main", show_default=True, help="The cluster's name.")
@click.option(
    "--cluster-id",
    help="The id of the cluster, as `kafka-cluster.sh cluster-id` prints it.",
)
def init(folder: Path, cluster: str, cluster_id: str | None) -> None:
    """Create a repository for your quotas.

    Desired state of one cluster, a DAG file and first steps. Writes nothing if one of its files
    exists.
    """
    from shlex import quote

    from quota_ops.desired.cluster_file import PLACEHOLDER
    from quota_ops.desired.export.disk import write_files
    from quota_ops.desired.export.spelling import spell_text

    _refuse_what_check_would(cluster, cluster_id)
    values = {
        "cluster": cluster,
        "connection": spell_text(cluster),
        "cluster_id": spell_text(cluster_id or PLACEHOLDER),
        "folder": folder.resolve().name,
        **_columns(cluster),
    }
    texts = {
        folder / Template(path).substitute(values): Template(
            files("quota_ops.cli").joinpath("starter", template).read_text(encoding="utf-8")
        ).substitute(values)
        for path, template in STARTER.items()
    }
    if there := [path for path in texts if lexists(path)]:
        raise InvalidInput(f"{there[0]} already exists; nothing was written")
    for path, text in texts.items():
        write_files(path.parent, {path.name: text}, own=0)
        click.echo(f"  {path}")
    first = "" if folder.resolve() == Path.cwd() else f"cd {quote(str(folder))}, "
    first += "" if cluster_id else "put your cluster's id into cluster.yaml, "
    click.echo(f"\nNext: {first and f'{first}then '}quota-ops check")
    click.echo("Keep it in Git (git init, git add, git commit), because a run records its commit.")


def _columns(cluster: str) -> dict[str, str]:
    """Return the commands in the README, padded to one length."""
    commands = {
        "check": "quota-ops check",
        "plan": f"quota-ops plan {cluster}",
        "reconcile": f"quota-ops reconcile {cluster}",
    }
    return {name: text.ljust(len(commands["reconcile"])) for name, text in commands.items()}


def _refuse_what_check_would(cluster: str, cluster_id: str | None) -> None:
    from quota_ops.desired.cluster_file import is_cluster_id
    from quota_ops.model.policy import CONNECTION_NAME, CONNECTION_RULE

    if not CONNECTION_NAME.fullmatch(cluster):
        raise InvalidInput(
            f"--cluster {cluster!r} is not a cluster name",
            f"It also names a folder and a connection. It {CONNECTION_RULE}.",
        )
    if cluster_id is not None and not is_cluster_id(cluster_id):
        raise InvalidInput(
            f"--cluster-id {cluster_id!r} is not a cluster id",
            "Get the id with kafka-cluster.sh cluster-id.",
        )
