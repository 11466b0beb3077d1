"""The command `import`: write YAML files from the quotas that a cluster stores."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from quota_ops.cli import options
from quota_ops.cli.console import show_screen, warn_unnamed
from quota_ops.model.errors import InvalidInput
from quota_ops.model.text import counted, plural
from quota_ops.model.tool import Tool

if TYPE_CHECKING:
    from quota_ops.model.plans.policy import Policy
    from quota_ops.model.quotas.rows import StoredQuota


@options.command("""
  quota-ops import demo
  quota-ops import demo --group-by prefix --into ./imported/demo
  quota-ops import demo --actual snapshot.jsonl --owner platform
  quota-ops import demo --from strimzi users.yaml --from terraform terraform.tfstate
  quota-ops import demo --unmanaged

\b
Then:
  quota-ops plan demo        shows that nothing would be written
  quota-ops reconcile demo   verifies the quotas; from then on they are managed""")
@options.cluster_argument
@options.refuse_idle(
    "--connection", "Leave it out: quota-ops reads the files, not the cluster.", beside=("--from",)
)
@options.refuse_idle("--actual", "Leave out one of them.", beside=("--from",))
@options.refuse_idle(
    "--into", "Leave it out: the files go beside the others.", beside=("--unmanaged",)
)
@click.option(
    "--from",
    "foreign",
    nargs=2,
    type=(click.Choice([tool.value for tool in Tool]), click.Path(path_type=Path)),
    metavar="TOOL FILE",
    multiple=True,
    help="Read the quotas from a file of another tool instead of the cluster: strimzi (KafkaUser), "
    "jikkou (KafkaClientQuota), terraform (the state of the provider Mongey/kafka) or "
    "kafka-configs (the output of --describe). Can be repeated; needs a cluster.yaml.",
)
@click.option(
    "--unmanaged",
    is_flag=True,
    help="Only the quotas that no file of the cluster declares, into new files beside those.",
)
@click.option(
    "--group-by",
    type=click.Choice(["type", "user", "prefix", "one"]),
    default="type",
    show_default=True,
    help="One file per entity type, per user, per first word of a name, or one for all.",
)
@click.option(
    "--profiles",
    is_flag=True,
    help="Propose profiles: limits that three entities or more have in common.",
)
@click.option(
    "--groups",
    is_flag=True,
    help="Propose groups: three names or more in a file with equal limits share the sum of them.",
)
@click.option(
    "--owner", help="The owner in every file.  [default: the user or word, else unassigned]"
)
@click.option(
    "--into",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder to write.  [default: the cluster's own, under --desired-state]",
)
@options.actual
@options.desired_state
@options.connection
def import_(
    *,
    cluster: str,
    group_by: str,
    owner: str | None,
    into: Path | None,
    actual: Path | None,
    desired_state: Path,
    connection_file: Path | None,
    profiles: bool,
    groups: bool,
    foreign: tuple[tuple[str, Path], ...],
    unmanaged: bool,
) -> None:
    """Write YAML files from the quotas of a cluster or another tool.

    Needs no cluster.yaml: without one, it writes one, and CLUSTER is the name of the
    connection. What YAML cannot declare (a stored NaN, a host name as an address) is listed
    under `protect` with the reason. Writes nothing to the cluster, and overwrites no file.
    """
    from quota_ops.desired.cluster_file import CLUSTER_YAML
    from quota_ops.desired.export.disk import read_text, write_files
    from quota_ops.desired.export.imported import GroupBy, import_quotas, new_cluster_file
    from quota_ops.desired.files import is_folder_or_link
    from quota_ops.desired.read import read_cluster, read_policy
    from quota_ops.model.plans.policy import Policy
    from quota_ops.report.outline.layout import Tone, line

    places = (desired_state / cluster, Path(cluster))
    folder = next(filter(is_folder_or_link, places), None)
    into = into or folder or desired_state / cluster
    text = None if folder is None else read_text(folder, CLUSTER_YAML)
    policy = None if folder is None or text is None else read_policy(folder)
    known, name = into == folder, Path(cluster).name
    replaced = (CLUSTER_YAML,) if known and text is not None else ()
    if policy is None and (foreign or unmanaged):
        raise InvalidInput(
            f"{cluster} has no {CLUSTER_YAML}",
            "Write it first, with cluster_id and connection; quota-ops init creates an example.",
        )
    if not unmanaged:
        _refuse_full(into, known=known)
    if foreign and policy is not None:
        from quota_ops.desired.foreign import read_foreign_files

        files_of_tools = [(Tool(tool), file) for tool, file in foreign]
        stored, cluster_id = read_foreign_files(files_of_tools), policy.cluster_id
    elif actual is not None:
        stored, cluster_id = _read_snapshot(actual, policy)
    else:
        stored, cluster_id = _read_cluster(name, policy, connection_file)
    if unmanaged:
        stored = _list_unmanaged(stored, into)
    if text is None or policy is None:
        text = new_cluster_file(cluster_id, name)
        policy = Policy(name, cluster_id, name)
    imported = import_quotas(
        stored,
        cluster_file=text,
        policy=policy,
        by=GroupBy(group_by),
        owner=owner,
        with_profiles=profiles,
        with_groups=groups,
    )
    prefix = "unmanaged-" if unmanaged else ""
    files = {
        name if name == CLUSTER_YAML else prefix + name: text.encode()
        for name, text in imported.files.items()
    }
    if unmanaged and imported.files == {CLUSTER_YAML: text}:
        click.echo(f"{into}: no quota that a file can declare is unmanaged")
        return
    write_files(into, files, replaced=replaced)
    desired = read_cluster(into)
    for quota in imported.left_out:
        words = "protected" if quota.protect else "left alone"
        show_screen((line(f"{words}: {quota.entity.text}  {quota.reason}", Tone.CHANGE),))
    if imported.elsewhere:
        click.echo(
            f"{imported.elsewhere:,} more {plural(imported.elsewhere, 'is', 'are')} already "
            f"protected or out of scope in {CLUSTER_YAML}"
        )
    written = [row for row in desired.rows if row.file in files]
    found = f"{len(stored):,} found" if foreign else counted(len(stored), "stored one")
    total = f"{counted(len(written), 'quota')} of {found}"
    number = counted(len(files.keys() - {CLUSTER_YAML}), "file")
    show_screen((line(f"{into}: {total} in {number}", Tone.OK),))


def _list_unmanaged(stored: "tuple[StoredQuota, ...]", folder: Path) -> "tuple[StoredQuota, ...]":
    """Return the stored quotas that no file declares; list those whose entity a file has."""
    from quota_ops.desired.read import read_cluster
    from quota_ops.report.outline.layout import Tone, line

    places: dict[str, str] = {}
    declared = set()
    for row in read_cluster(folder).rows:
        places.setdefault(row.entity, f"{row.file}:{row.line}")
        declared.add((row.entity, row.key))
    found = [quota for quota in stored if (quota.entity.text, quota.key) not in declared]
    for quota in found:
        if place := places.get(quota.entity.text):
            words = f"not written: {quota.entity.text} {quota.key}: add it to {place}"
            show_screen((line(words, Tone.CHANGE),))
    return tuple(quota for quota in found if quota.entity.text not in places)


def _read_cluster(
    name: str, policy: "Policy | None", connection_file: Path | None
) -> "tuple[tuple[StoredQuota, ...], str]":
    from quota_ops.kafka.cluster import open_cluster
    from quota_ops.kafka.connection import find_connection
    from quota_ops.model.plans.policy import VerifyPolicy
    from quota_ops.model.quotas.rows import Key
    from quota_ops.stages.describe.disagreement import refuse_disagreement

    found = find_connection(policy.connection if policy else name, file=connection_file)
    expected = policy.cluster_id if policy else None
    verify = policy.verify if policy else VerifyPolicy.EVERY_BROKER
    with open_cluster(found, cluster_id=expected, verify=verify) as cluster:
        stored = cluster.describe()
        refuse_disagreement(cluster, {Key(row.entity.text, row.key): row.value for row in stored})
        return stored, cluster.cluster_id


def _read_snapshot(actual: Path, policy: "Policy | None") -> "tuple[tuple[StoredQuota, ...], str]":
    from quota_ops.desired.cluster_file import CLUSTER_YAML
    from quota_ops.report.outline.layout import Tone, line
    from quota_ops.store.places.snapshot import Snapshot

    snapshot = Snapshot.read(actual)
    if snapshot.header.filter is not None:
        left_out = f"{actual} has only the quotas that match {snapshot.header.filter}."
        show_screen((line(left_out, Tone.CHANGE),))
    if policy is not None:
        warn_unnamed(actual, snapshot.cluster_id, policy)
        return snapshot.require_cluster(policy.cluster_id).rows, policy.cluster_id
    if snapshot.cluster_id is None:
        raise InvalidInput(
            f"{actual} contains no cluster id",
            f"Write {CLUSTER_YAML} first, with cluster_id and connection; "
            "quota-ops init creates an example.",
        )
    return snapshot.rows, snapshot.cluster_id


def _refuse_full(into: Path, *, known: bool) -> None:
    from quota_ops.desired.cluster_file import CLUSTER_YAML
    from quota_ops.desired.export.disk import list_names

    there = list_names(into)
    files = [name for name in there if name != CLUSTER_YAML and not name.endswith(".md")]
    if files:
        raise InvalidInput(
            f"{into} already has desired state: {', '.join(files[:5])}",
            "Choose a folder without quotas with --into.",
        )
    if CLUSTER_YAML in there and not known:
        raise InvalidInput(
            f"{into / CLUSTER_YAML} already exists", "Choose another folder with --into."
        )
