"""GitHub Actions, GitLab CI or neither, as their environment variables describe a job."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from quota_ops.model import code_host
from quota_ops.model.code_host import Repository
from quota_ops.model.errors import InvalidInput

GITHUB, GITLAB = "github", "gitlab"


class Platform(Struct, frozen=True):
    """A job of a CI platform; empty values outside of any.

    `targets` are the commits that the branch of a pull request is compared with, the first that
    exists; `head` is the commit that people see; `repository` is where they see its files.
    """

    name: str = ""
    targets: tuple[str, ...] = ()
    head: str | None = None
    repository: Repository | None = None
    summary: Path | None = None
    """The file that GitHub shows as the summary of the job."""
    outputs: Path | None = None
    """The file that receives the outputs of the step."""
    api: str = ""
    """The address of the pull request's comments in the API, if there is one."""
    user: str = ""
    """The address in the API that shows whose token a request has."""
    graphql: str = ""
    """The address of GitHub's GraphQL API, which shows that for every kind of token."""


def find_platform(environment: Mapping[str, str]) -> Platform:
    """Return the platform of the environment variables of this process."""
    if environment.get("GITHUB_ACTIONS") == "true":
        return _find_github(environment)
    if environment.get("GITLAB_CI") == "true":
        return _find_gitlab(environment)
    return Platform()


def _find_github(environment: Mapping[str, str]) -> Platform:
    event = _read_event(environment.get("GITHUB_EVENT_PATH"))
    pull = event.get("pull_request") or {}
    base_ref = environment.get("GITHUB_BASE_REF")
    server = environment.get("GITHUB_SERVER_URL", "https://github.com")
    repository = environment.get("GITHUB_REPOSITORY", "")
    group = event.get("merge_group") or {}
    named = (
        f"origin/{base_ref}" if base_ref else None,
        (pull.get("base") or {}).get("sha"),
        group.get("base_sha"),
        _find_before(event.get("before")),
    )
    api = environment.get("GITHUB_API_URL", "https://api.github.com")
    return Platform(
        GITHUB,
        tuple(filter(None, named)),
        (pull.get("head") or {}).get("sha") or environment.get("GITHUB_SHA"),
        Repository.on(code_host.GITHUB, f"{server}/{repository}") if repository else None,
        _find_path(environment, "GITHUB_STEP_SUMMARY"),
        _find_path(environment, "GITHUB_OUTPUT"),
        f"{api}/repos/{repository}/issues/{pull['number']}/comments" if "number" in pull else "",
        f"{api}/user",
        environment.get("GITHUB_GRAPHQL_URL", f"{api}/graphql"),
    )


def _find_gitlab(environment: Mapping[str, str]) -> Platform:
    variables = (
        "CI_MERGE_REQUEST_TARGET_BRANCH_SHA",  # only of a pipeline that merges before it runs
        "CI_MERGE_REQUEST_DIFF_BASE_SHA",
    )
    branch = environment.get("CI_MERGE_REQUEST_TARGET_BRANCH_NAME") or environment.get(
        "CI_DEFAULT_BRANCH"
    )
    is_merge_request = "CI_MERGE_REQUEST_IID" in environment
    named = [environment.get(variable) for variable in variables]
    named += [None if is_merge_request else _find_before(environment.get("CI_COMMIT_BEFORE_SHA"))]
    named += [f"origin/{branch}" if branch else None]
    project, number = environment.get("CI_PROJECT_URL"), environment.get("CI_MERGE_REQUEST_IID")
    api, identity = environment.get("CI_API_V4_URL"), environment.get("CI_PROJECT_ID")
    return Platform(
        GITLAB,
        tuple(filter(None, named)),
        environment.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA") or environment.get("CI_COMMIT_SHA"),
        Repository.on(code_host.GITLAB, project) if project else None,
        api=f"{api}/projects/{identity}/merge_requests/{number}/notes" if api and number else "",
        user=f"{api}/user" if api else "",
    )


def _find_before(commit: str | None) -> str | None:
    """Return the commit that a branch had before a push; None for a new branch."""
    return commit if commit and commit.strip("0") else None


def _find_path(environment: Mapping[str, str], name: str) -> Path | None:
    return Path(environment[name]) if environment.get(name) else None


def _read_event(path: str | None) -> dict[str, Any]:
    if not path:
        return {}
    try:
        event = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInput(f"the event file {path} of GitHub cannot be read: {error}") from None
    return event if isinstance(event, dict) else {}
