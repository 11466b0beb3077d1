"""The review of a branch: its clusters whose files differ, each compared with the merge base."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from quota_ops.desired.clusters import find_astray_files, refuse_stray_files
from quota_ops.desired.files import SHARED, cluster_folders
from quota_ops.desired.git.branch import Branch, list_users
from quota_ops.desired.read import find_clusters_that_use, find_policy
from quota_ops.findings.cluster_rules import list_known_users
from quota_ops.kafka.connection import find_connection
from quota_ops.model.code_host import Repository
from quota_ops.model.errors import CannotJudge, InvalidDesiredState
from quota_ops.model.finding import Problem
from quota_ops.model.runs.review import BaseFiles, ClusterReview, Unjudged
from quota_ops.report.markdown.parts import code
from quota_ops.runs.review import review_cluster
from quota_ops.runs.run import Run, connect_once
from quota_ops.store.places.run_store import RunStore, open_place
from quota_ops.store.run.folder import RunFolder

_FEW = 3
CLUSTERS = "clusters"
"""The folder of the reports, one folder for each cluster."""


class ReviewOptions(Struct, frozen=True):
    """The options that all clusters of a review share; `out` is the folder of its files."""

    store: RunStore
    out: Path
    files_only: bool
    repository: Repository | None


def find_stray_files(branch: Branch) -> tuple[Problem, ...]:
    """Return the problems of changed YAML files that are in no cluster's folder."""
    try:
        refuse_stray_files(branch.desired_state)
    except InvalidDesiredState as invalid:
        changed = {f"{branch.prefix}{path}" for path in branch.list_changed()}
        found = _below_root(branch, invalid.problems)
        return tuple(problem for problem in found if problem.file in changed)
    return ()


def describe_astray_files(branch: Branch) -> tuple[str, ...]:
    """Return a note on each changed quotas file outside the desired state: no run reads it."""
    found = find_astray_files(branch.desired_state, cluster_folders(branch.desired_state))
    root = branch.repository.root()
    changed = replace(branch.repository, folder=root).changed_since(branch.base) if found else ()
    return tuple(
        f"{code(file)}: quotas outside {code(f'{branch.prefix}{folder.name}')}, so no run reads "
        "them. Move the file there."
        for path, folder in found
        if (file := str(path.relative_to(root))) in changed
    )


def _below_root(branch: Branch, problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """Return problems by place, at changed lines, with paths that code hosts need."""
    top = f"{branch.desired_state}/"
    placed = (
        dataclasses.replace(problem, file=f"{branch.prefix}{problem.file.removeprefix(top)}")
        for problem in branch.place_problems(problems)
    )
    return tuple(sorted(placed, key=attrgetter("file", "line", "column")))


def review_branch(branch: Branch, shared: ReviewOptions) -> Iterator[ClusterReview]:
    """Yield the review of each cluster with changed files, own or shared ones, by name."""
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
            head=heads.get(name),
            merged=merge.files.get(name) if merge else None,
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


def _list_clusters(branch: Branch, folders: set[str], paths: Iterable[str]) -> set[str]:
    """Return the clusters of changed files, and those that use a changed shared file."""
    changed = [path.partition("/") for path in paths]
    tops = {top for top, below, _ in changed if below or top in folders}
    if SHARED in tops:
        files = {path for top, _, path in changed if top == SHARED}
        tops |= find_clusters_that_use(branch.desired_state, folders, files)
    return tops - {SHARED}


def _ask_for_folder(branch: Branch, found: ClusterReview) -> Iterator[str]:
    """Yield a note on new users that another cluster's files have, unless this cluster knows them.

    Somebody may have edited the wrong folder.
    """
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


def _list_doubts(base: BaseFiles | None, doubt: Unjudged | None) -> tuple[Unjudged, ...]:
    """Return why the changes of a cluster cannot be judged, as far as Git shows it."""
    if base is None or not base.invalid:
        return (doubt,) if doubt else ()
    what = "the files of the merge base are invalid"
    remedy = "Compare with an earlier commit whose files are valid: --base COMMIT."
    return (Unjudged(what, base.invalid, remedy), *([doubt] if doubt else []))


def _refuse_crossed(branch: Branch) -> str:
    """Return a note that no merge was made; CannotJudge if the merge base depends on it."""
    why = "Git is older than 2.38, so the result of the merge was not read"
    if branch.is_crossed:
        raise CannotJudge(
            f"{branch.target_name} and HEAD have several merge bases, and {why}",
            f"Merge {branch.target_name} into this branch, and run the review again.",
        )
    return f"{why}."


def _review_one(branch: Branch, shared: ReviewOptions, found: ClusterReview) -> ClusterReview:
    place = open_place(shared.out / CLUSTERS / found.cluster)
    folder = RunFolder.start(place, cluster=found.cluster, commit=None, only_read=shared.store)
    folder = folder.with_cache()
    with connect_once(folder.policy, find_connection) as connect:
        run = Run(
            folder=folder,
            cluster_folder=branch.desired_state / found.cluster,
            connect=connect,
            skip_invalid=False,
        )
        return review_cluster(run, found, files_only=shared.files_only)
