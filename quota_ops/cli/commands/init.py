"""The command `init`: create a repository for quotas."""

from importlib.resources import files
from os.path import lexists
from pathlib import Path
from string import Template

import click

from quota_ops.cli import options
from quota_ops.model.errors import InvalidInput

STARTER = {
    "desired_state/$cluster/cluster.yaml": "cluster.yaml",
    "desired_state/$cluster/team.yaml": "team.yaml",
    "dags/quota_ops_dags.py": "quota_ops_dags.py.txt",
    ".airflowignore": "airflowignore",
    ".gitignore": "gitignore",
    "CODEOWNERS": "CODEOWNERS",
    "README.md": "README.md",
}
"""What `init` writes, and the template that it is made from."""
JOBS = {
    "github": {
        ".github/workflows/quotas.yml": "github.yml",
        ".github/workflows/reconcile.yml": "github_reconcile.yml",
    },
    "gitlab": {".gitlab-ci.yml": "gitlab.yml"},
    "none": {},
}
"""The jobs for pull requests and after a merge on each platform, and their templates."""


@options.command("""
  quota-ops init my-quotas
  quota-ops init my-quotas --cluster payments --cluster-id MkU3OEVBNTcwNTJENDM2Qg
  quota-ops init my-quotas --ci gitlab""")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--cluster", default="main", show_default=True, help="The cluster's name.")
@click.option(
    "--cluster-id", help="The id of the cluster, as `kafka-cluster.sh cluster-id` prints it."
)
@click.option(
    "--ci",
    type=click.Choice([*JOBS]),
    default="github",
    show_default=True,
    help="The platform of the jobs that review pull requests and reconcile after a merge.",
)
def init(folder: Path, cluster: str, cluster_id: str | None, ci: str) -> None:
    """Create a repository for your quotas.

    Desired state of one cluster with schemas for editors, jobs for pull requests and merges, a DAG
    file and first steps. Writes nothing if one of its files exists.
    """
    from importlib.metadata import version
    from shlex import quote

    from quota_ops.desired.cluster_file import PLACEHOLDER
    from quota_ops.desired.export.disk import write_files
    from quota_ops.desired.export.quotas_text import spell_text

    _refuse_what_check_would(cluster, cluster_id)
    values = {
        "cluster": cluster,
        "connection": spell_text(cluster),
        "cluster_id": spell_text(cluster_id or PLACEHOLDER),
        "folder": folder.resolve().name,
        "job": f"; the job in `{next(iter(JOBS[ci]))}` comments with it" if JOBS[ci] else "",
        "version": version("quota-ops"),
        **_columns(cluster),
    }
    texts = {
        folder / Template(path).substitute(values): Template(
            files("quota_ops.cli").joinpath("starter", template).read_text(encoding="utf-8")
        ).substitute(values)
        for path, template in {**STARTER, **JOBS[ci]}.items()
    } | _schemas(folder)
    if there := [path for path in texts if lexists(path)]:
        raise InvalidInput(f"{there[0]} already exists; nothing was written")
    for path, text in texts.items():
        write_files(path.parent, {path.name: text.encode()}, own=0)
        click.echo(f"  {path}")
    if jobs := [str(folder / path) for path in JOBS[ci]]:
        owner = {"github": "OWNER", "gitlab": "GROUP"}[ci]
        click.echo(
            f"\nIn {' and '.join(jobs)}, replace {owner} with where your company has a copy of "
            f"quota-ops, with the tag v{values['version']}."
        )
    first = "" if folder.resolve() == Path.cwd() else f"cd {quote(str(folder))}, "
    first += "" if cluster_id else "put your cluster's id into cluster.yaml, "
    click.echo(f"\nNext: {first and f'{first}then '}quota-ops check")
    click.echo("Keep it in Git (git init, git add, git commit), because a run records its commit.")
    click.echo(
        "In CODEOWNERS and cluster.yaml, replace @OWNER/my-team and @OWNER/platform with those who "
        "approve changes."
    )


def _schemas(folder: Path) -> dict[Path, str]:
    """Return the schemas for editors, which the first line of each YAML file names."""
    import json

    from quota_ops.desired.schema import cluster_schema, quotas_schema

    made = {"quotas": quotas_schema(), "cluster": cluster_schema()}
    return {
        folder / "desired_state" / "schema" / f"{name}.json": json.dumps(schema, indent=2) + "\n"
        for name, schema in made.items()
    }


def _columns(cluster: str) -> dict[str, str]:
    """Return the commands in the README, padded to one length."""
    commands = {
        "check": "quota-ops check",
        "plan": f"quota-ops plan {cluster}",
        "reconcile": f"quota-ops reconcile {cluster}",
    }
    return {name: text.ljust(len(commands["reconcile"])) for name, text in commands.items()}


def _refuse_what_check_would(cluster: str, cluster_id: str | None) -> None:
    from quota_ops.desired.yaml.values import is_cluster_id
    from quota_ops.model.plans.policy import CONNECTION_NAME, CONNECTION_RULE

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
