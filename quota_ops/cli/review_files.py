"""The files of a review, and where a CI platform shows them."""

from pathlib import Path

import click

from quota_ops.ci.platform import GITLAB, Platform
from quota_ops.model.review import Review
from quota_ops.report.review.comment import GITHUB_LIMIT, GITLAB_LIMIT, as_comment

SUMMARY_LIMIT = 1_000_000
"""Bytes; GitHub rejects a step summary of more than 1 MiB."""


def publish_review(review: Review, platform: Platform, folder: Path, *, is_kept: bool) -> None:
    """Print the review, write its files, and add it to the summary of a job on GitHub."""
    comment = as_comment(review, GITLAB_LIMIT if platform.name == GITLAB else GITHUB_LIMIT)
    (folder / "comment.md").write_text(comment, encoding="utf-8")
    click.echo(comment.partition("\n")[2], nl=False)
    if is_kept:
        click.echo(f"\nreview: {folder}")
    if platform.summary:
        with platform.summary.open("a", encoding="utf-8") as summary:
            summary.write(as_comment(review, SUMMARY_LIMIT // 4) + "\n")
