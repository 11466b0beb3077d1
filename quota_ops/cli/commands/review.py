"""The command `review`: what a branch changes on the clusters, for its pull request."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from quota_ops.cli import options
from quota_ops.cli.idle_options import refuse_idle
from quota_ops.model.errors import CannotJudge, InvalidDesiredState, InvalidInput

if TYPE_CHECKING:
    from quota_ops.desired.git.branch import Branch
    from quota_ops.model.code_host import Repository
    from quota_ops.model.finding import Problem
    from quota_ops.model.runs.review import BaseFiles, ClusterReview, Unjudged
    from quota_ops.store.places.run_store import RunStore


_FEW = 3
CLUSTERS = "clusters"
"""The folder of the reports, one folder for each cluster."""


@dataclass(frozen=True)
class ReviewOptions:
    """The options that all clusters of a review share; `out` is the folder of its files."""

    store: "RunStore"
    out: Path
    files_only: bool
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
    help="Exit with 1 if a guard blocks a change of this branch, or it removes a cluster.",
)
@click.option(
    "--comment",
    is_flag=True,
    help="Create or update the comment on the pull request, with the token in GITHUB_TOKEN or "
    "GITLAB_TOKEN.",
)
@refuse_idle("--run-store", "Leave it out: no ledger is read.", beside=("--files-only",))
def review(
    desired_state: Path,
    run_store: str | None,
    base: str | None,
    out: Path | None,
    *,
    files_only: bool,
    fail_on_guards: bool,
    comment: bool,
) -> None:
    """Review what a branch changes, for its pull request.

    Compares the checkout with its merge base and, for each cluster whose files differ, with what
    the cluster stores. Writes nothing to a cluster or the run store. In GitHub Actions and GitLab
    CI it finds the target of the pull request by itself.
    """
    from quota_ops.ci.comment import find_token
    from quota_ops.ci.platform import find_platform
    from quota_ops.cli.review_files import (
        format_comment,
        post_review,
        publish_failure,
        publish_review,
        without_workflow_commands,
        write_review,
    )
    from quota_ops.desired.git.branch import USUAL_TARGETS, Branch
    from quota_ops.model.runs.review import Links, Review
    from quota_ops.stages.use.recorded import read_group_use
    from quota_ops.store.places.run_store import find_run_store

    platform = find_platform(os.environ)
    token = find_token(platform, os.environ) if comment else None
    with _open_folder(out) as folder:
        with publish_failure(platform, token, folder), without_workflow_commands(platform):
            targets = (base,) if base else platform.targets or USUAL_TARGETS
            branch = Branch.find(desired_state, targets)
            head, shown_at = platform.head or branch.head, platform.repository
            store = find_run_store(run_store)
            branch = replace(branch, find_use=partial(read_group_use, store))
            shared = ReviewOptions(store, folder, files_only, shown_at)
            found = Review(
                clusters=tuple(_review_clusters(branch, shared)),
                base=branch.base,
                head=head,
                links=Links(shown_at, head, branch.base) if shown_at else None,
                problems=(*_find_stray_files(branch), *branch.find_code_owner_problems()),
                is_merged=branch.head == branch.base,
            )
            code = found.exit_code(fail_on_guards=fail_on_guards)
            text = format_comment(found, platform)
            click.echo(text.partition("\n")[2], nl=False)
            if token is not None:
                code = max(code, post_review(platform, token, text))
            write_review(found, text, folder, code)
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
        raise InvalidInput(f"--out {out} is not empty", "Choose a new folder.")
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
        return tuple(problem for problem in found if problem.file in changed)
    return ()


def _below_root(branch: "Branch", problems: "Sequence[Problem]") -> "tuple[Problem, ...]":
    """Return problems by place, at changed lines, with paths that code hosts need."""
    top = f"{branch.desired_state}/"
    placed = (
        replace(problem, file=f"{branch.prefix}{problem.file.removeprefix(top)}")
        for problem in branch.place_problems(problems)
    )
    return tuple(sorted(placed, key=attrgetter("file", "line", "column")))


def _review_clusters(branch: "Branch", shared: ReviewOptions) -> "Iterator[ClusterReview]":
    """Yield the review of each cluster with changed files, own or shared ones, by name."""
    from quota_ops.desired.files import cluster_folders
    from quota_ops.desired.read import find_policy
    from quota_ops.model.runs.review import ClusterReview
    from quota_ops.report.markdown.parts import code

    earlier = branch.find_earlier_folder(branch.base)
    folders = {path.name for path in cluster_folders(branch.desired_state)}
    names = _list_clusters(branch, folders, branch.list_changed())
    is_behind = bool(branch.count_missing())
    merge = branch.read_merge(names) if is_behind else None
    notes = (_refuse_crossed(branch),) if is_behind and merge is None else ()
    if earlier is not None:
        was = f"{earlier}/" if earlier else "the root of the repository"
        notes = (*notes, f"The folder of the desired state was {code(was)} in the merge base.")
    names |= _list_clusters(branch, folders, merge.changed) if merge else set()
    there = folders & names
    bases = branch.read_commit(branch.base, names)
    targets = branch.read_commit(branch.target, names) if is_behind else {}
    heads = branch.read_commit(branch.head, names) if merge else {}
    by_id = {
        base_files.policy.cluster_id: base_files
        for base_files in bases.values()
        if base_files.policy
    }
    followed: set[str] = set()
    for name in sorted(there):
        policy = find_policy(branch.desired_state / name)
        base = (by_id.get(policy.cluster_id) if policy else None) or bases.get(name)
        followed |= {base.folder} if base else set()
        target = targets.get(base.folder if base else name)
        doubt = merge.find_doubt(name, base, heads.get(name), target) if merge else None
        found = ClusterReview(
            name,
            f"{branch.prefix}{name}",
            policy=policy,
            base=base,
            target=target,
            has_target_changed=is_behind and target != base,
            unjudged=_list_doubts(base, doubt),
            notes=notes,
            repository=shared.repository,
        )
        found = _review_one(branch, shared, found)
        found = replace(found, notes=(*found.notes, *_ask_for_folder(branch, found)))
        yield replace(found, problems=_below_root(branch, found.problems))
    for name in sorted(bases.keys() - there - followed):
        yield ClusterReview(name, f"{branch.prefix}{name}", base=bases[name], is_removed=True)


def _list_clusters(branch: "Branch", folders: set[str], paths: Iterable[str]) -> set[str]:
    """Return the clusters of changed files, and those that use a changed shared file."""
    from quota_ops.desired.files import SHARED
    from quota_ops.desired.read import find_clusters_that_use

    changed = [path.partition("/") for path in paths]
    tops = {top for top, below, _ in changed if below or top in folders}
    if SHARED in tops:
        files = {path for top, _, path in changed if top == SHARED}
        tops |= find_clusters_that_use(branch.desired_state, folders, files)
    return tops - {SHARED}


def _ask_for_folder(branch: "Branch", found: "ClusterReview") -> "Iterator[str]":
    """Yield a note on new users that another cluster's files have, unless this cluster knows them.

    Somebody may have edited the wrong folder.
    """
    from quota_ops.desired.git.branch import list_users
    from quota_ops.findings.cluster_rules import list_known_users
    from quota_ops.report.markdown.parts import code

    facts = found.report.facts if found.report else None
    known = list_known_users(facts) if facts else frozenset()
    new = list_users(found.declared) - list_users(found.base.rows if found.base else ()) - known
    if not new or found.base is None or found.base.invalid:
        return
    for user, clusters in sorted(branch.find_users(new, found.cluster).items()):
        where = ", ".join(map(code, clusters[:_FEW]))
        yield (
            f"{code(f'user={user}')} has quotas on {where} and had none on {code(found.cluster)}. "
            "Is this the right folder?"
        )


def _list_doubts(base: "BaseFiles | None", doubt: "Unjudged | None") -> "tuple[Unjudged, ...]":
    """Return why the changes of a cluster cannot be judged, as far as Git shows it."""
    from quota_ops.model.runs.review import Unjudged

    if base is None or not base.invalid:
        return (doubt,) if doubt else ()
    what = "the files of the merge base are invalid"
    remedy = "Compare with an earlier commit whose files are valid: --base COMMIT."
    return (Unjudged(what, base.invalid, remedy), *([doubt] if doubt else []))


def _refuse_crossed(branch: "Branch") -> str:
    """Return a note that no merge was made; CannotJudge if the merge base depends on it."""
    why = "Git is older than 2.38, so the result of the merge was not read"
    if branch.is_crossed:
        raise CannotJudge(
            f"{branch.target_name} and HEAD have several merge bases, and {why}",
            f"Merge {branch.target_name} into this branch, and run the review again.",
        )
    return f"{why}."


def _review_one(branch: "Branch", shared: ReviewOptions, found: "ClusterReview") -> "ClusterReview":
    from quota_ops.kafka.connection import find_connection
    from quota_ops.runs.review import review_cluster
    from quota_ops.runs.run import Run, connect_once
    from quota_ops.store.places.run_store import open_place
    from quota_ops.store.run.folder import RunFolder

    place = open_place(shared.out / CLUSTERS / found.cluster)
    folder = RunFolder.start(place, cluster=found.cluster, commit=None, only_read=shared.store)
    folder = folder.with_cache()
    with connect_once(folder.policy, find_connection) as connect:
        run = Run(
            folder=folder,
            cluster_folder=branch.desired_state / found.cluster,
            store=shared.store,
            connect=connect,
            skip_invalid=False,
        )
        return review_cluster(run, found, files_only=shared.files_only)
