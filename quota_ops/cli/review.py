"""The command `review`: what a branch changes on the clusters, for its pull request."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from quota_ops.cli import options
from quota_ops.cli.idle_options import refuse_idle
from quota_ops.model.errors import InvalidDesiredState, InvalidInput

if TYPE_CHECKING:
    from quota_ops.desired.file_cache import FileCache
    from quota_ops.desired.git.branch import Branch
    from quota_ops.model.code_host import Repository
    from quota_ops.model.finding import Problem
    from quota_ops.model.review import BaseFiles, ClusterReview
    from quota_ops.store.run_store import RunStore


CLUSTERS = "clusters"
"""The folder of the reports, one folder for each cluster."""


@dataclass(frozen=True)
class ReviewOptions:
    """What all clusters of a review share; `out` is the folder of its files."""

    store: "RunStore"
    out: Path
    files_only: bool
    file_cache: "FileCache | None"
    repository: "Repository | None"


@click.command(
    epilog="""\b
Examples:
  quota-ops review                       the branch, compared with its merge base
  quota-ops review --base origin/main
  quota-ops review --files-only          without the cluster, for example for a fork
  quota-ops review --out review          keep the comment, the reports and the annotations"""
)
@options.desired_state
@options.run_store
@click.option(
    "--base",
    metavar="COMMIT",
    help="The branch or commit that this branch is to be merged into.  [default: the target of the "
    "pull request, or else origin/HEAD, origin/main, origin/master, main or master]",
)
@click.option(
    "--files-only",
    is_flag=True,
    help="Compare the files with those of the merge base, without the cluster and the ledger.",
)
@click.option(
    "--out",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write comment.md, review.json, annotations and a report for each cluster to this new "
    "FOLDER.",
)
@click.option(
    "--fail-on-guards/--no-fail-on-guards",
    default=True,
    show_default=True,
    help="Exit with 1 if a guard blocks a change of this branch.",
)
@click.option(
    "--comment",
    is_flag=True,
    help="Create or update the comment on the pull request, with the token in GITHUB_TOKEN or "
    "GITLAB_TOKEN.",
)
@options.no_cache
@refuse_idle("--run-store", "Leave it out: no ledger is read.", beside=("--files-only",))
def review(
    desired_state: Path,
    run_store: str | None,
    base: str | None,
    out: Path | None,
    file_cache: "FileCache | None",
    *,
    files_only: bool,
    fail_on_guards: bool,
    comment: bool,
) -> None:
    """Review what a branch changes, for its pull request.

    Compares the checkout with its merge base, and the clusters whose files differ with what they
    store. Writes nothing to a cluster or the run store. In GitHub Actions and GitLab CI it finds
    the target of the pull request by itself.
    """
    from quota_ops.ci.comment import find_token
    from quota_ops.ci.platform import find_platform
    from quota_ops.cli.review_files import (
        post_review,
        publish_failure,
        publish_review,
        without_workflow_commands,
        write_review,
    )
    from quota_ops.desired.git.branch import USUAL_TARGETS, Branch
    from quota_ops.model.review import Links, Review
    from quota_ops.store.run_store import find_run_store

    platform = find_platform(os.environ)
    token = find_token(platform, os.environ) if comment else None
    with _open_folder(out) as folder:
        with publish_failure(platform, token, folder), without_workflow_commands(platform):
            targets = (base,) if base else platform.targets or USUAL_TARGETS
            branch = Branch.find(desired_state, targets)
            head, shown_at = platform.head or branch.head, platform.repository
            store = find_run_store(run_store)
            shared = ReviewOptions(store, folder, files_only, file_cache, shown_at)
            found = Review(
                clusters=tuple(_review_clusters(branch, shared)),
                base=branch.base,
                head=head,
                links=Links(shown_at, head, branch.base) if shown_at else None,
                problems=_find_stray_files(branch),
            )
            code = found.exit_code(fail_on_guards=fail_on_guards)
            text = write_review(found, platform, folder, code)
            click.echo(text.partition("\n")[2], nl=False)
            if token is not None and not post_review(platform, token, text):
                code = code or InvalidInput.exit_code  # its verdict would be believed
                write_review(found, platform, folder, code)
            if out is not None:
                click.echo(f"\nreview: {folder}")
        publish_review(found, platform, folder, code)
    raise click.exceptions.Exit(code)


@contextmanager
def _open_folder(out: Path | None) -> Iterator[Path]:
    if out is None:
        with TemporaryDirectory(prefix="quota-ops-review-") as folder:
            yield Path(folder).resolve()
        return
    if out.is_dir() and any(out.iterdir()):
        raise InvalidInput(f"--out {out} is not empty", "Name a new folder.")
    out.mkdir(parents=True, exist_ok=True)
    yield out


def _find_stray_files(branch: "Branch") -> "tuple[Problem, ...]":
    """Return the problems of changed YAML files that are in no cluster's folder."""
    from quota_ops.desired.clusters import refuse_stray_files

    try:
        refuse_stray_files(branch.desired_state)
    except InvalidDesiredState as invalid:
        changed = {f"{branch.prefix}{path}" for path in branch.list_changed()}
        found = _below_root(branch, invalid.problems)
        return tuple(one for one in found if one.file in changed)
    return ()


def _below_root(branch: "Branch", problems: "Sequence[Problem]") -> "tuple[Problem, ...]":
    """Return problems by place, at changed lines, with paths that code hosts need."""
    top = f"{branch.desired_state}/"
    placed = (
        replace(one, file=f"{branch.prefix}{one.file.removeprefix(top)}")
        for one in branch.place_problems(problems)
    )
    return tuple(sorted(placed, key=attrgetter("file", "line", "column")))


def _review_clusters(branch: "Branch", shared: ReviewOptions) -> "Iterator[ClusterReview]":
    """Yield the review of each cluster with changed files, own or shared ones, by name."""
    from quota_ops.desired.files import SHARED, cluster_folders
    from quota_ops.desired.read import find_clusters_that_use
    from quota_ops.model.review import ClusterReview

    folders = {one.name for one in cluster_folders(branch.desired_state)}
    changed = [path.partition("/") for path in branch.list_changed()]
    tops = {top for top, below, _ in changed if below or top in folders}
    if SHARED in tops:
        files = {path for top, _, path in changed if top == SHARED}
        tops |= find_clusters_that_use(branch.desired_state, folders, files)
    names = sorted(tops - {SHARED})
    there = folders & {*names}
    bases, invalid = branch.read_commit(branch.base, names, shared.file_cache)
    targets: Mapping[str, BaseFiles] = {}
    if is_behind := bool(branch.count_missing()):
        targets, _ = branch.read_commit(branch.target, names, shared.file_cache)
    by_id = {one.policy.cluster_id: one for one in bases.values()}
    followed: set[str] = set()
    for name in sorted(there):
        base = _find_renamed(branch.desired_state / name, by_id) or bases.get(name)
        followed |= {base.folder} if base else set()
        target = targets.get(base.folder if base else name)
        found = ClusterReview(
            name,
            f"{branch.prefix}{name}",
            base=base,
            target=target,
            has_target_changed=is_behind and target != base,
            invalid_base=invalid.get(name),
            repository=shared.repository,
        )
        found = _review_one(branch, shared, found)
        yield replace(found, problems=_below_root(branch, found.problems))
    for name in sorted(bases.keys() - there - followed):
        yield ClusterReview(name, f"{branch.prefix}{name}", base=bases[name], is_removed=True)


def _find_renamed(folder: Path, by_id: "Mapping[str, BaseFiles]") -> "BaseFiles | None":
    """Return the merge base's files of the same cluster, whatever its folder was called."""
    from quota_ops.desired.read import read_policy

    try:
        return by_id.get(read_policy(folder).cluster_id)
    except InvalidDesiredState:
        return None


def _review_one(branch: "Branch", shared: ReviewOptions, found: "ClusterReview") -> "ClusterReview":
    from quota_ops.kafka.connection import find_connection
    from quota_ops.runs.review import review_cluster
    from quota_ops.runs.run import Run, connect_once
    from quota_ops.store.run_folder import RunFolder
    from quota_ops.store.run_store import open_place

    place = open_place(shared.out / CLUSTERS / found.cluster)
    folder = RunFolder.start(place, cluster=found.cluster, commit=None, only_read=shared.store)
    folder = folder.with_cache()
    with connect_once(folder.policy, find_connection) as connect:
        run = Run(
            folder=folder,
            cluster_folder=branch.desired_state / found.cluster,
            store=shared.store,
            connect=connect,
            file_cache=shared.file_cache,
        )
        return review_cluster(run, found, files_only=shared.files_only)
