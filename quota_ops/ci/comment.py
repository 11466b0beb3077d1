"""The comment on a pull request: created once, and then updated in place."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http.client import HTTPMessage
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from quota_ops.ci.platform import GITHUB, GITLAB, Platform
from quota_ops.connections.deadlines import call_within
from quota_ops.model.errors import InvalidInput

_PATIENCE = 20.0
"""Seconds that one request may take."""
_PAGE, _MOST_PAGES = 100, 30
_REMEDY = {
    401: "The token is invalid or has expired.",
    403: "GitHub: the job needs `permissions: {pull-requests: write}`, which pull requests from "
    "forks do not get. GitLab: the token needs the scope api.",
    404: "The token cannot see this pull request.",
}


class _NoRedirect(HTTPRedirectHandler):
    """Follow no redirect, which would send the token to another address."""

    def redirect_request(  # noqa: PLR0917 - as urllib calls it
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        """Return None, so that the redirect is an error."""


def find_token(platform: Platform, environment: Mapping[str, str]) -> str | None:
    """Return the token of a platform; None in a job of no pull request.

    Raises InvalidInput outside of a CI platform, or without a token.
    """
    if not platform.name:
        raise InvalidInput(
            "--comment needs a pull request in GitHub Actions or a merge request in GitLab CI",
            "Leave it out: --out FOLDER writes the comment to a file.",
        )
    name = "GITHUB_TOKEN" if platform.name == GITHUB else "GITLAB_TOKEN"
    if platform.api and not environment.get(name):
        raise InvalidInput(
            f"--comment needs a token in the environment variable {name}", _TOKENS[platform.name]
        )
    return environment[name] if platform.api else None


_TOKENS = {
    GITHUB: "In GitHub Actions: env: GITHUB_TOKEN: ${{ github.token }}, with the permission "
    "pull-requests: write.",
    GITLAB: "In GitLab: a project access token with the scope api.",
}


def post_comment(platform: Platform, token: str, text: str, marker: str) -> str:
    """Replace the comment of this token's user that begins with `marker`, or create it.

    Anybody can write a comment that begins with it, so the author counts too. Returns the address
    of the comment. Raises InvalidInput with the response of the platform.
    """
    author = _find_author(platform, token)
    earlier = next(
        (
            comment
            for comment in _list_comments(platform, token)
            if _author_of(platform, comment) == author
            and str(comment.get("body") or "").startswith(marker)
        ),
        None,
    )
    body = {"body": text}
    if earlier is None:
        found = _send(platform, token, "POST", platform.api, body)
    elif platform.name == GITHUB:
        address = f"{platform.api.rpartition('/issues/')[0]}/issues/comments/{earlier['id']}"
        found = _send(platform, token, "PATCH", address, body)
    else:
        found = _send(platform, token, "PUT", f"{platform.api}/{earlier['id']}", body)
    return str(found.get("html_url") or f"note {found.get('id')}")


def _find_author(platform: Platform, token: str) -> Any:
    """Return the login of the token's user on GitHub, or its id on GitLab.

    The token of a job of GitHub Actions may not read `/user`, but GraphQL's `viewer`. Other hosts
    that run such jobs have no GraphQL.
    """
    if platform.name == GITHUB:
        with suppress(InvalidInput):
            found = _send(platform, token, "POST", platform.graphql, {"query": "{viewer{login}}"})
            if login := (found.get("data") or {}).get("viewer", {}).get("login"):
                return login
    return _send(platform, token, "GET", platform.user)[
        "login" if platform.name == GITHUB else "id"
    ]


def _author_of(platform: Platform, comment: Mapping[str, Any]) -> Any:
    is_github = platform.name == GITHUB
    author = comment.get("user" if is_github else "author") or {}  # null: a deleted account
    return author.get("login" if is_github else "id")


def _list_comments(platform: Platform, token: str) -> Iterator[dict[str, Any]]:
    for page in range(1, _MOST_PAGES + 1):
        found = _send(platform, token, "GET", f"{platform.api}?per_page={_PAGE}&page={page}")
        yield from found
        if len(found) < _PAGE:
            return


def _send(
    platform: Platform,
    token: str,
    method: str,
    address: str,
    values: Mapping[str, str] | None = None,
) -> Any:
    headers = {"Content-Type": "application/json", "User-Agent": "quota-ops"}
    if platform.name == GITHUB:
        headers |= {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
    else:
        headers |= {"PRIVATE-TOKEN": token}
    body = json.dumps(values).encode() if values else None
    if not address.startswith(("https://", "http://")):
        raise InvalidInput(f"the address of the API is not an HTTP address: {address}")
    request = Request(address, body, headers, method=method)  # noqa: S310 - checked above

    def load() -> Any:
        with build_opener(_NoRedirect).open(request, timeout=_PATIENCE) as response:
            return json.load(response)

    try:
        return call_within(_PATIENCE, load)  # each byte renews the timeout of urllib
    except HTTPError as error:
        raise InvalidInput(
            f"the comment was not written: {method} {address} failed with {error.code} "
            f"{error.reason}",
            _REMEDY.get(error.code),
        ) from None
    except (OSError, ValueError) as error:  # ValueError: the response is not JSON
        raise InvalidInput(
            f"the comment was not written: {method} {address} failed: {_explain(error)}",
            "Check that this job reaches that address, and run it again. Its log has the comment.",
        ) from None


def _explain(error: Exception) -> str:
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(reason, ValueError) and not isinstance(reason, OSError):
        return "the response is not JSON"
    if isinstance(reason, TimeoutError):
        return f"there was no complete response within {_PATIENCE:g} s"
    return getattr(reason, "strerror", None) or str(reason)
