"""The command `review`: what a branch changes on the clusters, for its pull request."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from msgspec.structs import replace

from quota_ops.cli import options
from quota_ops.model.errors import InvalidInput


@options.command("""
  quota-ops review                       the branch, compared with its merge base
  quota-ops review --base origin/main
  quota-ops review --files-only          without the cluster, for example for a fork
  quota-ops review --out review          keep the comment, the reports and the annotations""")
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
@options.refuse_idle("--run-store", "Leave it out: no ledger is read.", beside=("--files-only",))
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
    from quota_ops.ci.platform import GITLAB, find_platform
    from quota_ops.cli import review_files
    from quota_ops.desired.git.branch import USUAL_TARGETS, Branch
    from quota_ops.model.runs.review import Links, Review
    from quota_ops.report.review.comment import GITHUB_LIMIT, GITLAB_LIMIT, as_comment
    from quota_ops.runs.branch_review import (
        ReviewOptions,
        describe_astray_files,
        find_stray_files,
        review_branch,
    )
    from quota_ops.stages.use.recorded import read_group_use
    from quota_ops.store.places.run_store import find_run_store

    platform = find_platform(os.environ)
    token = find_token(platform, os.environ) if comment else None
    with _open_folder(out) as folder:
        with (
            review_files.publish_failure(platform, token, folder),
            review_files.without_workflow_commands(platform),
        ):
            targets = (base,) if base else platform.targets or USUAL_TARGETS
            branch = Branch.find(desired_state, targets)
            head, shown_at = platform.head or branch.head, platform.repository
            store = find_run_store(run_store)
            branch = replace(branch, find_use=partial(read_group_use, store))
            shared = ReviewOptions(store, folder, files_only, shown_at)
            found = Review(
                clusters=tuple(review_branch(branch, shared)),
                base=branch.base,
                head=head,
                links=Links(shown_at, head, branch.base) if shown_at else None,
                problems=(*find_stray_files(branch), *branch.find_code_owner_problems()),
                notes=describe_astray_files(branch),
                is_merged=branch.head == branch.base,
            )
            code = found.exit_code(fail_on_guards=fail_on_guards)
            limit = GITLAB_LIMIT if platform.name == GITLAB else GITHUB_LIMIT
            text = as_comment(found, limit)
            click.echo(text.partition("\n")[2], nl=False)
            if token is not None:
                code = max(code, review_files.post_review(platform, token, text))
            review_files.write_review(found, text, folder, code)
            if out is not None:
                click.echo(f"\nreview: {folder}")
        review_files.publish_review(found, platform, folder, code)
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
