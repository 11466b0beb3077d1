"""The files of a review, and where a CI platform shows them."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from uuid import uuid4

import click

from quota_ops.ci.comment import post_comment
from quota_ops.ci.platform import GITHUB, Platform
from quota_ops.model.errors import InvalidInput, QuotaOpsError
from quota_ops.model.runs.review import Review
from quota_ops.report.review.annotations import (
    as_code_quality,
    as_sarif,
    as_workflow_commands,
    list_annotations,
)
from quota_ops.report.review.comment import MARKER, as_comment, as_failure
from quota_ops.report.review.json_review import as_json

SUMMARY_LIMIT = 250_000
"""Characters, of one to four bytes; GitHub rejects a step summary of more than 1 MiB."""
COMMENT, JSON = "comment.md", "review.json"
SARIF, CODE_QUALITY = "review.sarif", "code-quality.json"


@contextmanager
def without_workflow_commands(platform: Platform) -> Iterator[None]:
    """Let GitHub take no text that is printed within the block for a workflow command.

    After an error this also covers the error, which is printed when the command has ended.
    """
    if platform.name != GITHUB:
        yield
        return
    token = uuid4().hex
    click.echo(f"::stop-commands::{token}")
    try:
        yield
    except BaseException:
        root = click.get_current_context().find_root()
        root.call_on_close(lambda: click.echo(f"::{token}::"))
        raise
    click.echo(f"::{token}::")


def write_review(review: Review, comment: str, folder: Path, code: int) -> None:
    """Write comment.md, review.json and both kinds of annotations."""
    annotations = list_annotations(review)
    for name, text in (
        (COMMENT, comment),
        (JSON, as_json(review, code)),
        (SARIF, as_sarif(annotations, version("quota-ops"))),
        (CODE_QUALITY, as_code_quality(annotations)),
    ):
        (folder / name).write_text(text, "utf-8", "backslashreplace")


def publish_review(review: Review, platform: Platform, folder: Path, code: int) -> None:
    """Add the review to the summary of a job on GitHub, its lines and the outputs of its step."""
    if platform.summary:
        with platform.summary.open("a", encoding="utf-8") as summary:
            summary.write(as_comment(review, SUMMARY_LIMIT) + "\n")
    if platform.outputs:
        files = {"comment": COMMENT, "json": JSON, "sarif": SARIF, "code-quality": CODE_QUALITY}
        values = {name: folder.resolve() / file for name, file in files.items()}
        with platform.outputs.open("a", encoding="utf-8") as outputs:
            outputs.writelines(f"{name}={path}\n" for name, path in values.items())
            outputs.write(f"folder={folder.resolve()}\nexit-code={code}\n")
    if platform.name == GITHUB:
        for command in as_workflow_commands(list_annotations(review)):
            click.echo(command)


@contextmanager
def publish_failure(platform: Platform, token: str | None, folder: Path) -> Iterator[None]:
    """Replace the comment if the block fails: the one on an earlier commit would be believed."""
    try:
        yield
    except Exception as error:
        is_expected = isinstance(error, QuotaOpsError)
        why = str(error) if is_expected else f"unexpected error: {type(error).__name__}"
        text = as_failure(why, platform.head)
        (folder / COMMENT).write_text(text, "utf-8", "backslashreplace")
        if platform.summary:
            with platform.summary.open("a", encoding="utf-8") as summary:
                summary.write(text)
        if token is not None:
            post_review(platform, token, text)
        raise


def post_review(platform: Platform, token: str, comment: str) -> int:
    """Create or update the comment, and return 0 or the exit code of the error that it prints.

    Without a new comment, people still read the verdict on an earlier commit.
    """
    try:
        address = post_comment(platform, token, comment, MARKER)
    except InvalidInput as error:
        click.echo(str(error), err=True)
        return error.exit_code
    click.echo(f"comment: {address}")
    return 0
