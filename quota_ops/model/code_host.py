"""Where a code host shows a repository: the page of a commit, and the line of a file in it."""

import re
from typing import NamedTuple, Self
from urllib.parse import quote, urlsplit

from msgspec import Struct


class Host(NamedTuple):
    """The addresses of a kind of code host below that of a repository, and names of such hosts."""

    names: tuple[str, ...]
    commit: str
    line: str
    compare: str


GITHUB = Host(
    ("github",), "/commit/{commit}", "/blob/{commit}/{path}#L{line}", "/compare/{since}...{commit}"
)
GITLAB = Host(
    ("gitlab",),
    "/-/commit/{commit}",
    "/-/blob/{commit}/{path}#L{line}",
    "/-/compare/{since}...{commit}",
)
GITEA = Host(
    ("gitea", "forgejo", "codeberg"),
    "/commit/{commit}",
    "/src/commit/{commit}/{path}#L{line}",
    "/compare/{since}...{commit}",
)
BITBUCKET = Host(
    ("bitbucket",),
    "/commits/{commit}",
    "/src/{commit}/{path}#lines-{line}",
    "/branches/compare/{commit}..{since}",
)
_HOSTS = (GITLAB, GITHUB, GITEA, BITBUCKET)
_ADDRESS = re.compile(r"https?://[^\s\"'<>\\^`|]+")
_LONGEST = 500
_PARTS = 2
"""A repository's address has a host, an owner and a name; on GitLab, groups are nested."""
_BELOW_GITLAB = frozenset({"-", "blob", "tree"})
"""Names that GitLab reserves for pages below that of a repository."""
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_FRAGMENT = re.compile("#[^#{]*{line}$")
_PLACEHOLDERS = ("{commit}", "{path}", "{line}")


class Repository(Struct, frozen=True):
    """A repository on a code host: the address of a line and, if known, of commits.

    All have `{commit}`; `line` also has `{path}`, below the root of the repository, and `{line}`;
    `compare` also has `{since}`.
    """

    line: str
    commit: str | None = None
    compare: str | None = None

    @classmethod
    def on(cls, host: Host, address: str) -> Self:
        """Return the repository at an address of a kind of host."""
        return cls(*(address + end for end in (host.line, host.commit, host.compare)))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the web address of a repository, or that of a line with placeholders.

        ValueError with a sentence if it is neither; no sentence repeats a password.
        """
        address = text.rstrip("/").removesuffix(".git")
        name = _check_address(address)
        if "{" in address or "}" in address:
            _check_placeholders(address)
            host = next((host for host in _HOSTS if address.endswith(host.line)), None)
            return cls.on(host, address.removesuffix(host.line)) if host else cls(address)
        labels = name.split(".")
        host = next((host for host in _HOSTS if not {*host.names}.isdisjoint(labels)), None)
        if host is None:
            raise ValueError(f"The name of {name} does not show which kind of code host it is.")
        _check_first_page(host, address)
        return cls.on(host, address)

    def find_line(self, commit: str, path: str, line: int | None) -> str:
        """Return the address of a line of a file in a commit; of the file without a line."""
        known = self.line if line else _FRAGMENT.sub("", self.line)
        values = {"commit": commit, "path": _quote(path), "line": str(line or 1)}
        return _fill(known, values)

    def find_start(self, commit: str, folder: str) -> str:
        """Return how the address of every file below a folder begins; `folder` ends with `/`."""
        start = re.split("{path}|{line}", self.line, maxsplit=1)[0]
        return _fill(start, {"commit": commit}) + _quote(folder)

    def find_commit(self, commit: str | None) -> str:
        """Return the address of a commit; empty if it is none, or the address is not known."""
        known = self.commit if is_commit_id(commit) else None
        return _fill(known, {"commit": commit or ""}) if known else ""

    def find_comparison(self, since: str | None, commit: str | None) -> str:
        """Return the address of the comparison of two commits; empty if it is not known."""
        known = self.compare if is_commit_id(since) and is_commit_id(commit) else None
        return _fill(known, {"since": since or "", "commit": commit or ""}) if known else ""


def is_commit_id(commit: str | None) -> bool:
    """Return whether a text is the id of a commit, which a person may have given."""
    return bool(commit and _COMMIT.fullmatch(commit))


def _quote(path: str) -> str:
    return quote(path, errors="replace")


def _fill(known: str, values: dict[str, str]) -> str:
    return re.sub(r"{(\w+)}", lambda found: values[found[1]], known)


def _check_address(address: str) -> str:
    """Return the name of the host.

    Raises ValueError if this is no web address of something there.
    """
    if not address.isascii() or len(address) > _LONGEST or not _ADDRESS.fullmatch(address):
        raise ValueError("This is not the web address of a repository.")
    try:
        parts = urlsplit(address)
        name, _ = parts.hostname, parts.port
    except ValueError:
        name = None
    if not name or not parts.path.strip("/"):
        raise ValueError("This is not the web address of a repository.")
    if "@" in parts.netloc:
        raise ValueError("The address has a user name or a password, which reports would show.")
    if "{" not in address and (parts.query or parts.fragment):
        raise ValueError("This is not the web address of a repository: it has a '?' or a '#'.")
    return name


def _check_first_page(host: Host, address: str) -> None:
    """Raise ValueError for a page above or below that of a repository, where links lead nowhere."""
    parts = urlsplit(address).path.split("/")[1:]
    is_number_right = len(parts) >= _PARTS if host is GITLAB else len(parts) == _PARTS
    if not is_number_right or not all(parts) or not _BELOW_GITLAB.isdisjoint(parts[_PARTS:]):
        known = f"{'GROUP' if host is GITLAB else 'OWNER'}/REPOSITORY"
        raise ValueError(
            f"This is not the web address of a repository, which ends with /{known} on this host."
        )


def _check_placeholders(address: str) -> None:
    rest = address
    for placeholder in _PLACEHOLDERS:
        rest = rest.replace(placeholder, "")
    missing = [placeholder for placeholder in _PLACEHOLDERS[:2] if placeholder not in address]
    if "{" in rest or "}" in rest:
        raise ValueError(f"The only placeholders are {', '.join(_PLACEHOLDERS)}.")
    if missing:
        raise ValueError(f"The address of a line needs {' and '.join(missing)}.")
    if "{" in urlsplit(address).netloc:
        raise ValueError("A placeholder cannot be in the name of the host.")
