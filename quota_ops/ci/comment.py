"""The comment on a pull request: created once, and then updated in place."""

import json
from collections.abc import Iterator, Mapping
from http.client import HTTPMessage
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from quota_ops.ci.platform import GITHUB, Platform
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
        raise InvalidInput(f"--comment needs the variable {name}", "Set it to a token.")
    return environment[name] if platform.api else None


class StaleComment(InvalidInput):
    """A comment on an earlier commit may still be shown, because it was not replaced."""


def post_comment(platform: Platform, token: str, text: str, marker: str) -> str:
    """Replace the comment that begins with `marker`, or create it; return its address.

    Raises InvalidInput with the response of the platform; StaleComment unless there was no earlier
    comment.
    """
    is_new = False
    try:
        own = next((one for one in _list_comments(platform, token) if _begins(one, marker)), None)
        is_new = own is None
        return _write_comment(platform, token, text, own)
    except InvalidInput as error:
        if is_new:
            raise
        raise StaleComment(error.message, error.remedy) from error


def _write_comment(platform: Platform, token: str, text: str, own: Mapping[str, Any] | None) -> str:
    if own is None:
        found = _send(platform, token, "POST", platform.api, text)
    elif platform.name == GITHUB:
        address = f"{platform.api.rpartition('/issues/')[0]}/issues/comments/{own['id']}"
        found = _send(platform, token, "PATCH", address, text)
    else:
        found = _send(platform, token, "PUT", f"{platform.api}/{own['id']}", text)
    return str(found.get("html_url") or f"note {found.get('id')}")


def _begins(comment: Mapping[str, Any], marker: str) -> bool:
    return str(comment.get("body") or "").startswith(marker)


def _list_comments(platform: Platform, token: str) -> Iterator[dict[str, Any]]:
    for page in range(1, _MOST_PAGES + 1):
        found = _send(platform, token, "GET", f"{platform.api}?per_page={_PAGE}&page={page}")
        yield from found
        if len(found) < _PAGE:
            return


def _send(platform: Platform, token: str, method: str, address: str, text: str = "") -> Any:
    headers = {"Content-Type": "application/json", "User-Agent": "quota-ops"}
    if platform.name == GITHUB:
        headers |= {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
    else:
        headers |= {"PRIVATE-TOKEN": token}
    body = json.dumps({"body": text}).encode() if text else None
    if not address.startswith(("https://", "http://")):
        raise InvalidInput(f"the address of the API, {address}, is not one of HTTP")
    request = Request(address, body, headers, method=method)  # noqa: S310 - checked above
    try:
        with build_opener(_NoRedirect).open(request, timeout=_PATIENCE) as response:
            return json.load(response)
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
    return getattr(reason, "strerror", None) or str(reason)
